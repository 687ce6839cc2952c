"""What was said, as a client sends it: its own items or messages become turns of user and assistant, with the parts
that a session keeps. Pure; files that come inside are left to be stored."""

import base64
import binascii
from collections.abc import Mapping
from dataclasses import field
from typing import Any, Final, Literal

from holdfast.core.ids import FileId
from holdfast.core.parts import Json, Part, Reasoning, Text, Tool
from holdfast.core.values import dataclass
from holdfast.faces.openai import look
from holdfast.faces.openai.errors import Wrong, unsupported

_KINDS: Final[Mapping[str, str]] = {
    "input_text": "text",
    "output_text": "text",
    "text": "text",
    "refusal": "text",
    "summary_text": "text",
    "reasoning_text": "text",
    "input_image": "image",
    "image_url": "image",
    "input_file": "file",
    "file": "file",
}
_ENDINGS: Final = {"image/png": ".png", "image/jpeg": ".jpg", "image/gif": ".gif", "image/webp": ".webp"}


@dataclass(frozen=True, slots=True)
class Upload:
    """A file that came inside the call."""

    param: str
    name: str
    media_type: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Known:
    """A file that was uploaded before."""

    param: str
    file_id: FileId


Piece = Part | Upload | Known


@dataclass
class Draft:
    role: Literal["user", "assistant"]
    pieces: list[Piece] = field(default_factory=list)


@dataclass
class Script:
    """Grows as items are read. Neighbours of one role are one message; results of the client's tools are the user's."""

    param: str
    """Of the list that is read."""
    calls: dict[str, str] = field(default_factory=dict)
    """Names of the calls that may be answered, by call id; those of earlier turns are put in by the caller."""
    system: list[str] = field(default_factory=list)
    moved: list[str] = field(default_factory=list)
    """Instructions that came after something was said. They go to the front: a session has no place for them."""
    drafts: list[Draft] = field(default_factory=list)

    def instruct(self, text: str, param: str) -> None:
        if self.drafts:
            self.moved.append(param)
        self.system.append(text)

    def say(self, role: Literal["user", "assistant"], *pieces: Piece) -> None:
        if not self.drafts or self.drafts[-1].role != role:
            self.drafts.append(Draft(role))
        self.drafts[-1].pieces += pieces

    def call(self, call_id: str, name: str, arguments: str) -> None:
        self.calls[call_id] = name
        self.say("assistant", Tool(call_id, name, arguments, "not_run"))

    def result(self, call_id: str, output: Json, param: str) -> None:
        if call_id not in self.calls:
            raise Wrong(param, f"No tool call found for the output with call id '{call_id[:100]}'.")
        self.say("user", Tool(call_id, self.calls[call_id], {}, "done", output))

    def ended(self) -> tuple[list[Draft], Draft]:
        """What came before, and what is to be answered."""
        if not self.drafts:
            raise Wrong(self.param, f"'{self.param}' has nothing to answer: say something as the user.")
        *past, last = self.drafts
        if last.role != "user":
            raise Wrong(self.param, f"The last of '{self.param}' has to come from the user or from a tool.")
        if not any(not isinstance(piece, Text) or piece.text for piece in last.pieces):
            raise Wrong(self.param, f"The last of '{self.param}' is empty.")
        return past, last


def content(given: Json, param: str) -> list[Piece]:
    """A text, or a list of texts, images and files."""
    if isinstance(given, str):
        return [Text(given)]
    return [
        _piece(look.thing(item, f"{param}[{n}]"), f"{param}[{n}]") for n, item in enumerate(look.things(given, param))
    ]


def words(given: Json, param: str) -> str:
    """The same where only texts can be."""
    pieces = content(given, param)
    for n, piece in enumerate(pieces):
        if not isinstance(piece, Text):
            raise unsupported(f"{param}[{n}]", "Only text can stand here.")
    return "".join(piece.text for piece in pieces if isinstance(piece, Text))


def thought(text: str) -> list[Piece]:
    return [Reasoning(text)] if text else []


def _piece(item: dict[str, Any], param: str) -> Piece:
    kind = look.text(item.get("type"), f"{param}.type")
    match _KINDS.get(kind):
        case "text":
            name = "refusal" if kind == "refusal" else "text"
            return Text(look.text(item.get(name), f"{param}.{name}"))
        case "image":
            return _image(item, param)
        case "file":
            return _file(item, param)
        case _:
            raise unsupported(f"{param}.type", f"Texts, images and files are taken, not '{kind[:50]}'.")


def _image(item: dict[str, Any], param: str) -> Piece:
    place, url = f"{param}.image_url", item.get("image_url")
    if isinstance(url, dict):  # the chat format has it one level deeper
        place, url = f"{place}.url", url.get("url")
    if url is None and item.get("file_id") is not None:
        return _known(item, param)
    kind, data = _data_url(look.text(url, place), place)
    return Upload(place, f"image{_ENDINGS.get(kind, '')}", kind, data)


def _file(item: dict[str, Any], param: str) -> Piece:
    if isinstance(item.get("file"), dict):
        item, param = item["file"], f"{param}.file"
    if item.get("file_data") is None and item.get("file_id") is not None:
        return _known(item, param)
    if item.get("file_url") is not None:
        raise unsupported(f"{param}.file_url", "Nothing is fetched for you; send the contents as 'file_data'.")
    name = look.optional_text(item, "filename", param) or "file"
    kind, data = _data_url(look.text(item.get("file_data"), f"{param}.file_data"), f"{param}.file_data", bare=True)
    return Upload(f"{param}.file_data", name, kind, data)


def _known(item: dict[str, Any], param: str) -> Known:
    return Known(f"{param}.file_id", FileId(look.text(item["file_id"], f"{param}.file_id")))


def _data_url(url: str, param: str, *, bare: bool = False) -> tuple[str, bytes]:
    """`bare`: base64 alone will do."""
    head, comma, body = url.partition(",")
    if not url.startswith("data:"):
        if not bare or comma:
            raise unsupported(param, "Nothing is fetched for you; send the contents as a data: URL.")
        head, body = "data:;base64", url
    try:
        if not head.endswith(";base64"):
            raise ValueError
        return head.removeprefix("data:").partition(";")[0], base64.b64decode(body, validate=True)
    except (ValueError, binascii.Error):
        raise Wrong(param, f"'{param}' is not valid base64 data.") from None
