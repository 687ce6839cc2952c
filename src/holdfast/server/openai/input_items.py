"""Input items of responses and messages of chat completions: read into turns of a session, and listed again from its
messages. Pure; the caller stores the files that a request contains."""

import base64
import binascii
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, assert_never

from holdfast.core.ids import FileId, RunId
from holdfast.core.parts import FilePart, Json, Part, ReasoningPart, TextPart, ToolPart
from holdfast.core.session import Message
from holdfast.server.openai import schemas as s
from holdfast.server.openai.client_tools import custom_arguments, flat_name
from holdfast.server.openai.errors import ParameterError, missing, unsupported
from holdfast.server.openai.json_bytes import as_text
from holdfast.server.openai.response_object import render_parts

_EXTENSIONS: Final = {"image/png": ".png", "image/jpeg": ".jpg", "image/gif": ".gif", "image/webp": ".webp"}


@dataclass(frozen=True, slots=True)
class InlineFile:
    """A file whose contents are in the call. `param` is the path of its contents there."""

    param: str
    name: str
    media_type: str
    data: bytes


@dataclass(frozen=True, slots=True)
class UploadedFile:
    """A file that was uploaded before."""

    param: str
    file_id: FileId


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """A file that the call names by URL."""

    param: str
    url: str


DraftPart = Part | InlineFile | UploadedFile | RemoteFile


@dataclass(slots=True)
class DraftTurn:
    role: Literal["user", "assistant"]
    parts: list[DraftPart] = field(default_factory=list)
    has_text: bool = False  # It has a message, so another one is another turn
    has_open_calls: bool = False  # Calls that the client has run or will run


@dataclass(slots=True)
class TurnBuilder:
    """Collects what a call brings. Each message is a turn of its own; calls belong to the turn of the message before
    them, and results of the client's tools are the user's."""

    param: str  # The name of the list that is read, for error messages
    calls: dict[str, str] = field(default_factory=dict)
    """Names of the tool calls that may be answered, by call id; the caller adds those of earlier turns."""
    instructions: list[str] = field(default_factory=list)
    reported: list[str] = field(default_factory=list)
    """Paths of what the model sees otherwise: instructions in mid-conversation, which are moved to its beginning, as a
    session has no place for them, and files in the outputs of tools."""
    turns: list[DraftTurn] = field(default_factory=list)

    def add_instruction(self, text: str, param: str) -> None:
        if self.turns:
            self.reported.append(param)
        self.instructions.append(text)

    def add_user(self, *parts: DraftPart) -> None:
        """A user message. It may follow tool results in their turn."""
        turn = self._turn("user", new=self._last_has_text)
        turn.parts += parts
        turn.has_text = True

    def begin_answer(self) -> None:
        """What follows is a message of its own, unless calls before it wait for results, which follow a whole turn."""
        self._turn("assistant", new=not (self.turns and self.turns[-1].has_open_calls))

    def add_answer(self, part: DraftPart) -> None:
        """Text or reasoning of an answer; after text, another answer begins."""
        turn = self._turn("assistant", new=self._last_has_text and not self.turns[-1].has_open_calls)
        turn.parts.append(part)
        turn.has_text = turn.has_text or isinstance(part, TextPart)

    def add_call(self, call: ToolPart) -> None:
        self.calls[call.call_id] = call.name
        turn = self._turn("assistant")
        turn.parts.append(call)
        turn.has_open_calls = turn.has_open_calls or call.state == "not_run"

    def add_result(self, call_id: str, output: str, param: str) -> None:
        if call_id not in self.calls:
            raise ParameterError(param, f"No tool call found for the output with call id '{call_id[:100]}'.")
        self._turn("user").parts.append(ToolPart(call_id, self.calls[call_id], {}, "done", output))

    @property
    def _last_has_text(self) -> bool:
        return bool(self.turns) and self.turns[-1].has_text

    def _turn(self, role: Literal["user", "assistant"], *, new: bool = False) -> DraftTurn:
        """The last turn if it has this role, or a new one."""
        if new or not self.turns or self.turns[-1].role != role:
            self.turns.append(DraftTurn(role))
        return self.turns[-1]

    def finish(self) -> tuple[list[DraftTurn], DraftTurn]:
        """The earlier turns, and the one to be answered."""
        if not self.turns:
            raise ParameterError(self.param, f"'{self.param}' has no user message to answer.")
        *past, last = self.turns
        if last.role != "user":
            raise ParameterError(self.param, f"'{self.param}' must end with a user message or a tool output.")
        if not any(not isinstance(part, TextPart) or part.text for part in last.parts):
            raise ParameterError(self.param, f"The last message of '{self.param}' is empty.")
        return past, last


# ---- reading a response's input ----


def read_input(given: str | Sequence[s.InputItem], turns: TurnBuilder, referenced: Mapping[str, Part]) -> None:
    """`referenced`: the output items that are referred to, by id."""
    if isinstance(given, str):
        turns.add_user(TextPart(given))
        return
    for n, item in enumerate(given):
        _read_item(item, f"{turns.param}[{n}]", turns, referenced)


def _read_item(item: s.InputItem, param: str, turns: TurnBuilder, referenced: Mapping[str, Part]) -> None:
    match item:
        case s.MessageItem(role="assistant"):
            turns.add_answer(TextPart(_text(item.content, f"{param}.content")))
        case s.MessageItem(role="user"):
            turns.add_user(*_parts(item.content, f"{param}.content"))
        case s.MessageItem():
            turns.add_instruction(_text(item.content, f"{param}.content"), param)
        case s.FunctionCallItem():
            turns.add_call(ToolPart(item.call_id, flat_name(item.namespace, item.name), item.arguments, "not_run"))
        case s.CustomToolCallItem():
            name = flat_name(item.namespace, item.name)
            turns.add_call(ToolPart(item.call_id, name, custom_arguments(item.input), "not_run"))
        case s.FunctionCallOutputItem() | s.CustomToolCallOutputItem():
            turns.add_result(item.call_id, _output_text(item.output, param, turns), f"{param}.call_id")
        case s.AdditionalToolsItem():
            pass  # read with the other tools
        case s.ReasoningItem():
            for name, content in (("summary", item.summary), ("content", item.content)):
                if content and (text := _text(content, f"{param}.{name}")):
                    turns.add_answer(ReasoningPart(text))
        case s.McpCallItem():
            call = ToolPart(item.id, item.name, item.arguments, "done", item.output, bool(item.error))
            turns.add_call(call)
        case s.McpApprovalRequestItem():
            pass
        case s.McpApprovalResponseItem():
            reason = "Send it alone, with the 'previous_response_id' of the response that asks."
            raise unsupported(param, reason)
        case s.ItemReference():
            part = referenced[item.id]
            if isinstance(part, ToolPart):
                turns.add_call(part)
            else:
                turns.add_answer(part)
        case _:
            assert_never(item)


# ---- reading the messages of a chat completion ----


def read_messages(messages: Sequence[s.ChatMessage], turns: TurnBuilder) -> None:
    for n, message in enumerate(messages):
        param = f"messages[{n}]"
        match message:
            case s.ChatInputMessage(role="user"):
                turns.add_user(*_parts(message.content, f"{param}.content"))
            case s.ChatInputMessage():
                turns.add_instruction(_text(message.content, f"{param}.content"), param)
            case s.ChatAssistantMessage():
                _read_assistant(message, param, turns)
            case s.ChatToolResult():
                output = _text(message.content, f"{param}.content")
                turns.add_result(message.tool_call_id, output, f"{param}.tool_call_id")
            case _:
                assert_never(message)


def _read_assistant(message: s.ChatAssistantMessage, param: str, turns: TurnBuilder) -> None:
    if message.function_call is not None:
        raise unsupported(f"{param}.function_call", "Use 'tool_calls'.")
    content = message.content
    if content is None and not message.tool_calls:
        content = message.refusal
        if content is None:
            raise ParameterError(f"{param}.content", f"'{param}' has neither content nor tool calls.")
    turns.begin_answer()
    if message.reasoning_content:
        turns.add_answer(ReasoningPart(message.reasoning_content))
    if content is not None and (text := _text(content, f"{param}.content")):
        turns.add_answer(TextPart(text))
    for call in message.tool_calls or ():
        turns.add_call(ToolPart(call.id, call.function.name, call.function.arguments, "not_run"))


# ---- reading the content of a message ----


def _parts(content: s.Content, param: str) -> list[DraftPart]:
    if isinstance(content, str):
        return [TextPart(content)]
    return [_part(part, f"{param}[{n}]") for n, part in enumerate(content)]


def _text(content: s.Content, param: str) -> str:
    """Content of which only text can be used."""
    if isinstance(content, str):
        return content
    texts: list[str] = []
    for n, part in enumerate(content):
        match part:
            case s.TextContentPart(text=text) | s.RefusalContentPart(refusal=text):
                texts.append(text)
            case _:
                raise unsupported(f"{param}[{n}]", "Only text is possible here.")
    return "".join(texts)


def _output_text(output: s.Content, param: str, turns: TurnBuilder) -> str:
    """The output of a tool. Images and files in it are named only, and reported: models are given text."""
    if isinstance(output, str):
        return output
    texts: list[str] = []
    for n, part in enumerate(output):
        match part:
            case s.TextContentPart(text=text) | s.RefusalContentPart(refusal=text):
                texts.append(text)
            case s.ImageContentPart() | s.FileContentPart():
                texts.append("[An image]" if isinstance(part, s.ImageContentPart) else "[A file]")
                turns.reported.append(f"{param}.output[{n}]")
            case _:
                assert_never(part)
    return "".join(texts)


def _part(part: s.ContentPart, param: str) -> DraftPart:
    match part:
        case s.TextContentPart(text=text) | s.RefusalContentPart(refusal=text):
            return TextPart(text)
        case s.ImageContentPart():
            return _image(part, param)
        case s.FileContentPart():
            return _file(part, param)
        case _:
            assert_never(part)


def _image(part: s.ImageContentPart, param: str) -> DraftPart:
    place, url = f"{param}.image_url", part.image_url
    if isinstance(url, s.ImageUrl):
        place, url = f"{place}.url", url.url
    if url is None:
        if part.file_id is None:
            raise missing(place)
        return UploadedFile(f"{param}.file_id", FileId(part.file_id))
    if not url.startswith("data:"):
        return RemoteFile(place, url)
    media_type, data = _decode_data_url(url, place)
    return InlineFile(place, f"image{_EXTENSIONS.get(media_type, '')}", media_type, data)


def _file(part: s.FileContentPart, param: str) -> DraftPart:
    source: s.FileSource = part
    if part.file is not None:
        source, param = part.file, f"{param}.file"
    if source.file_data is None and source.file_id is not None:
        return UploadedFile(f"{param}.file_id", FileId(source.file_id))
    if source.file_url is not None:
        return RemoteFile(f"{param}.file_url", source.file_url)
    place, data = f"{param}.file_data", source.file_data
    if data is None:
        raise missing(place)
    if not data.startswith("data:"):
        data = f"data:;base64,{data}"
    media_type, contents = _decode_data_url(data, place)
    return InlineFile(place, source.filename or "file", media_type, contents)


def _decode_data_url(url: str, param: str) -> tuple[str, bytes]:
    """The media type and the data of `data:image/png;base64,…`."""
    head, _, data = url.partition(",")
    try:
        if not head.endswith(";base64"):
            raise ValueError
        return head.removeprefix("data:").partition(";")[0], base64.b64decode(data, validate=True)
    except (ValueError, binascii.Error):
        raise ParameterError(param, f"'{param}' is not valid base64 data.") from None


# ---- listing ----


def list_items(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """What the model was shown, oldest first."""
    return [
        item
        for message in messages
        for item in (_user_items(message) if message.role == "user" else _assistant_items(message))
    ]


def _user_items(message: Message) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    content: list[dict[str, Json]] = []
    for index, part in enumerate(message.parts):
        match part:
            case ToolPart(call_id, _, _, _, result):
                output = {"type": "function_call_output", "call_id": call_id, "output": as_text(result)}
                items.append({"id": f"fco_{message.id}_{index}", "status": "completed", **output})
            case TextPart(text):
                content.append({"type": "input_text", "text": text})
            case FilePart(file_id, name, media_type):
                kind = "input_image" if media_type.startswith("image/") else "input_file"
                content.append({"type": kind, "file_id": file_id, "filename": name})
            case _:
                pass
    if content:
        about = {"id": message.id, "type": "message", "role": "user", "status": "completed"}
        items.append({**about, "content": content})
    return items


def _assistant_items(message: Message) -> list[dict[str, Any]]:
    server_tools = any(isinstance(part, ToolPart) and part.state != "not_run" for part in message.parts)
    run = message.run_id or RunId(message.id)
    items = render_parts(run, message.parts, complete=message.status == "complete", server_tools=server_tools)
    return [json.loads(item) for item in items]
