"""One answer of a model on its way into the record."""

import json
from collections.abc import Sequence
from typing import assert_never

from holdfast.agents.chat.calls import Wanted
from holdfast.agents.chat.joint import Joint
from holdfast.agents.chat.record import Record
from holdfast.agents.models.port import Answer, Delta, ToolCall
from holdfast.core.events import ReasoningDelta, TextDelta, ToolDelta, Usage


class Listening:
    """Takes deltas as they come. Call ids are made unique within the message: some servers count from zero again in
    each answer, and a call that was answered must not be mistaken for a new one."""

    def __init__(self, record: Record, joint: Joint) -> None:
        self._record = record
        self._joint = joint
        self._used = record.call_ids()
        self._ids: dict[str, str] = {}
        self._argued: set[str] = set()
        self.spoke = False

    async def hear(self, upstream: Answer) -> None:
        """All that it says. Iterated only where something has to be waited for; in between, deltas come by
        themselves."""
        async for deltas in upstream:
            if self.take(deltas):
                await upstream.follow(self.take)
            await self._record.room()

    def take(self, deltas: Sequence[Delta]) -> bool:
        """Whether there is room for more; otherwise the record's `room` is to be awaited."""
        if len(deltas) == 1 and self._joint.done and type(delta := deltas[0]) is TextDelta and delta.text:  # a token
            self.spoke = True
            return self._record.put(delta)
        room = True
        for delta in deltas:
            room = self._take(delta)
        return room

    def _take(self, delta: Delta) -> bool:
        match delta:
            case TextDelta(text):
                self.spoke = self.spoke or bool(text)
                return self._say(self._joint.take(text))
            case ReasoningDelta():
                self.spoke = True
                return self._record.put(delta)
            case ToolDelta(call_id, name, args):
                self.spoke = True
                self._say(self._joint.end())
                if args:
                    self._argued.add(call_id)
                return self._record.put(ToolDelta(self._id(call_id), name, args))
            case Usage():
                return self._record.put(delta)
            case _:
                assert_never(delta)

    async def end(self, calls: Sequence[ToolCall]) -> list[Wanted]:
        """The calls to be answered. What of one did not come as deltas is written down now, so that all are known, and
        known as complete, before the first of them runs."""
        self._say(self._joint.end())
        await self._record.room()
        wanted: list[Wanted] = []
        for call in calls:
            name = None if call.call_id in self._ids else call.name
            call_id = self._id(call.call_id)
            if call.call_id not in self._argued:
                text = call.args if isinstance(call.args, str) else json.dumps(call.args)
                await self._record.write(ToolDelta(call_id, name, text))
            wanted.append(Wanted(call_id, call.name, call.args, call.provider, call.invalid))
        self.spoke = self.spoke or bool(wanted)
        return wanted

    def _say(self, text: str) -> bool:
        return not text or self._record.put(TextDelta(text))

    def _id(self, call_id: str) -> str:
        if call_id not in self._ids:
            fresh, n = call_id, 1
            while fresh in self._used:
                n += 1
                fresh = f"{call_id}_{n}"
            self._used.add(fresh)
            self._ids[call_id] = fresh
        return self._ids[call_id]
