"""Pages of items, bounded in bytes. Of a branch, messages outside the page are not read."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from typing import Any, Literal

from anyio import to_thread
from starlette.responses import Response

from holdfast.core.ids import MessageId, RunId, SessionId
from holdfast.core.session import Message
from holdfast.engine.messages import MAX_PAGE_BYTES
from holdfast.ports.store import PathEntry
from holdfast.server.context import ApiContext
from holdfast.server.openai import ids, input_items
from holdfast.server.openai.errors import ParameterError
from holdfast.server.openai.json_bytes import dump

Order = Literal["asc", "desc"]
Item = Mapping[str, Any]  # It has an `id`
ListItems = Callable[[Sequence[Message]], Sequence[Item]]
FindItem = Callable[[Sequence[PathEntry], str], int]


class ItemPage:
    """Collects items until there are `limit`, or more would be larger than about 8 MB."""

    def __init__(self, limit: int) -> None:
        self.has_more = False
        self._limit = limit
        self._size = 0
        self._names: list[str] = []
        self._items: list[bytes] = []

    def add(self, name: str, item: bytes) -> bool:
        """False: it does not fit, and the page is complete."""
        self._size += len(item)
        self.has_more = len(self._items) == self._limit or (bool(self._items) and self._size > MAX_PAGE_BYTES)
        if not self.has_more:
            self._names.append(name)
            self._items.append(item)
        return not self.has_more

    def render(self) -> bytes:
        first, last = (self._names[0], self._names[-1]) if self._names else (None, None)
        about = {"object": "list", "first_id": first, "last_id": last, "has_more": self.has_more}
        return b'%s,"data":[%s]}' % (dump(about)[:-1], b",".join(self._items))


def find_item(path: Sequence[PathEntry], item: str) -> int:
    """Where the message is that has the item, if any has it; else the length of the path."""
    holder = item.partition("_")[2].rpartition("_")[0]  # the run or message that `input_items` and `ids.item_id` name
    for n, entry in enumerate(path):
        if entry.role == "user":
            if item == entry.id or holder == entry.id:
                return n
        elif holder == ids.item_holder(entry.run_id or RunId(entry.id)):
            return n
    return len(path)


async def list_branch(
    api: ApiContext,
    sid: SessionId,
    end: MessageId | None,
    limit: int,
    order: Order,
    after: str | None,
    list_items: ListItems = input_items.list_items,
    find: FindItem = find_item,
) -> Response:
    """The items of the messages up to `end`. A page ends before `limit` where it would be larger than about 8 MB."""
    path = [] if end is None else await api.engine.messages.path_entries(sid, end)
    path = path if order == "asc" else path[::-1]
    if after is not None:
        path = path[find(path, after) :]
    items = ItemList(limit, list_items, order, after)
    async with aclosing(api.engine.messages.read_all(sid, [entry.id for entry in path])) as batches:
        async for messages in batches:
            if not await to_thread.run_sync(items.add, messages):
                break
    return Response(await to_thread.run_sync(items.render), media_type="application/json")


class ItemList:
    """A page of the items of messages, which come in the order of the list; the first has the item `after`."""

    def __init__(
        self,
        limit: int,
        list_items: ListItems = input_items.list_items,
        order: Order = "asc",
        after: str | None = None,
    ) -> None:
        self._page = ItemPage(limit)
        self._list_items = list_items
        self._step = 1 if order == "asc" else -1
        self._after, self._is_after = after, after is None

    def add(self, messages: Iterable[Message]) -> bool:
        """False: the page is complete."""
        for message in messages:
            items = self._list_items([message])[:: self._step]
            if not self._is_after:
                names = [item["id"] for item in items]
                if self._after not in names:
                    return False
                items, self._is_after = items[names.index(self._after) + 1 :], True
            if not all(self._page.add(item["id"], dump(item)) for item in items):
                return False
        return True

    def render(self) -> bytes:
        if not self._is_after:
            raise ParameterError("after", f"The list has no item '{(self._after or '')[:100]}'.")
        return self._page.render()
