"""Writes exports of many messages, one format each, as the applications write them."""

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from tests.importers.hermes_home import HermesHome, call, write_webui

WORDS: Final = "The tide comes in twice a day, and every harbor master knows its hours by heart. "
START: Final = 1_700_000_000
_NOBODY: Final = "00000000-0000-0000-0000-000000000000"


def write_export(app: str, path: Path, chats: int, turns: int) -> Path:
    """An export of `chats` conversations with `turns` questions and as many answers each; the path to import."""
    path.mkdir(exist_ok=True)
    return _WRITERS[app](path, chats, turns)


def _say(chat: int, turn: int, role: str) -> str:
    return f"{role} {chat}.{turn}: " + WORDS * (4 if role == "answer" else 1)


def _turns(chat: int, turns: int) -> Iterator[tuple[str, str, str]]:
    """The id of a turn, its question and its answer."""
    for turn in range(turns):
        yield f"{chat}-{turn}", _say(chat, turn, "question"), _say(chat, turn, "answer")


def _write_list(path: Path, items: Iterator[Mapping[str, Any]]) -> Path:
    """A JSON list, of which one item is in memory at a time."""
    with path.open("w") as file:
        for n, item in enumerate(items):
            file.write("[" if n == 0 else ",\n")
            json.dump(item, file)
        file.write("]")
    return path


def _chatgpt(path: Path, chats: int, turns: int) -> Path:
    def conversation(chat: int) -> Mapping[str, Any]:
        mapping: dict[str, Any] = {"root": {"id": "root", "message": None, "parent": None, "children": ["q0"]}}
        before = "root"
        for n, (_, question, answer) in enumerate(_turns(chat, turns)):
            for mid, role, text in ((f"q{n}", "user", question), (f"a{n}", "assistant", answer)):
                message = {
                    "id": mid,
                    "author": {"role": role, "name": None, "metadata": {}},
                    "create_time": START + n,
                    "content": {"content_type": "text", "parts": [text]},
                    "status": "finished_successfully",
                    "metadata": {"model_slug": "m"},
                    "recipient": "all",
                }
                mapping[mid] = {"id": mid, "message": message, "parent": before, "children": []}
                mapping[before]["children"] = [mid]
                before = mid
        about = {"title": f"Chat {chat}", "create_time": START + chat, "update_time": START + chat}
        return {"conversation_id": f"c{chat}", **about, "current_node": before, "mapping": mapping}

    return _write_list(path / "conversations.json", (conversation(chat) for chat in range(chats)))


def _claude(path: Path, chats: int, turns: int) -> Path:
    def conversation(chat: int) -> Mapping[str, Any]:
        messages = [
            {
                "uuid": f"{sender}-{tid}",
                "sender": sender,
                "text": text,
                "content": [{"type": "text", "text": text}],
                "created_at": "2026-01-01T00:00:00Z",
                "attachments": [],
                "files": [],
            }
            for tid, question, answer in _turns(chat, turns)
            for sender, text in (("human", question), ("assistant", answer))
        ]
        return {
            "uuid": f"c{chat}",
            "name": f"Chat {chat}",
            "created_at": "2026-01-01T00:00:00Z",
            "chat_messages": messages,
        }

    return _write_list(path / "conversations.json", (conversation(chat) for chat in range(chats)))


def _open_webui(path: Path, chats: int, turns: int) -> Path:
    def conversation(chat: int) -> Mapping[str, Any]:
        messages: dict[str, Any] = {}
        before = None
        for tid, question, answer in _turns(chat, turns):
            for role, text in (("user", question), ("assistant", answer)):
                mid = f"{role}-{tid}"
                if before is not None:
                    messages[before]["childrenIds"] = [mid]
                messages[mid] = {
                    "id": mid,
                    "parentId": before,
                    "childrenIds": [],
                    "role": role,
                    "content": text,
                    "timestamp": START,
                }
                before = mid
        inside = {"title": f"Chat {chat}", "models": ["m"], "history": {"messages": messages, "currentId": before}}
        return {"id": f"c{chat}", "title": f"Chat {chat}", "chat": inside, "created_at": START + chat}

    return _write_list(path / "chats.json", (conversation(chat) for chat in range(chats)))


def _librechat(path: Path, chats: int, turns: int) -> Path:
    folder = path / "librechat"
    folder.mkdir()
    for chat in range(chats):
        before, messages = _NOBODY, []
        for tid, question, answer in _turns(chat, turns):
            for role, text in (("user", question), ("assistant", answer)):
                mid = f"{role}-{tid}"
                messages.append(
                    {
                        "messageId": mid,
                        "parentMessageId": before,
                        "isCreatedByUser": role == "user",
                        "text": text,
                        "createdAt": "2026-01-01T00:00:00Z",
                    }
                )
                before = mid
        about = {"conversationId": f"c{chat}", "title": f"Chat {chat}", "recursive": False, "branches": True}
        (folder / f"{chat}.json").write_text(json.dumps({**about, "messages": messages}))
    return folder


def _hermes(path: Path, chats: int, turns: int) -> Path:
    """With a tool in each answer, so that it has three rows."""
    home = HermesHome(path / "hermes")
    rows: list[tuple[Any, ...]] = []
    for chat in range(chats):
        sid = home.session(f"20260101_000000_{chat:06x}", title=f"Chat {chat}")
        for tid, question, answer in _turns(chat, turns):
            calls = json.dumps([call(f"call-{tid}", command="ls")])
            rows.append((sid, "user", question, None, None, START))
            rows.append((sid, "assistant", "", calls, None, START))
            rows.append((sid, "tool", "a.txt", None, f"call-{tid}", START))
            rows.append((sid, "assistant", answer, None, None, START))
    home.database.executemany(
        "INSERT INTO messages (session_id, role, content, tool_calls, tool_call_id, timestamp) VALUES (?,?,?,?,?,?)",
        rows,
    )
    home.database.commit()
    home.close()
    return home.path


def _hermes_webui(path: Path, chats: int, turns: int) -> Path:
    root = path / "webui"
    for chat in range(chats):
        messages = [
            {"role": role, "content": text, "timestamp": START}
            for _, question, answer in _turns(chat, turns)
            for role, text in (("user", question), ("assistant", answer))
        ]
        write_webui(
            root, {"session_id": f"{chat:012x}", "title": f"Chat {chat}", "created_at": START, "messages": messages}
        )
    return root


_WRITERS: Final[Mapping[str, Callable[[Path, int, int], Path]]] = {
    "chatgpt": _chatgpt,
    "claude": _claude,
    "open-webui": _open_webui,
    "librechat": _librechat,
    "hermes": _hermes,
    "hermes-webui": _hermes_webui,
}
APPS: Final = tuple(_WRITERS)
