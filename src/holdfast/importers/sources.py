"""The applications that chats can be imported from, how to tell their files apart, and the conversion of a whole source
into our export format. Blocking: call it on a worker thread."""

import codecs
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, Final, Literal

from holdfast.core.errors import InvalidInputError
from holdfast.importers import chatgpt, claude, hermes, hermes_webui, librechat, open_webui
from holdfast.importers.json_objects import read_objects
from holdfast.importers.session_builder import SessionBuilder, Skip
from holdfast.importers.source_files import SourceFiles

SourceApp = Literal["hermes", "hermes-webui", "chatgpt", "claude", "open-webui", "librechat"]
MAX_SKIPPED: Final = 1000  # Reasons that are kept; more are only counted
_SNIFFED: Final = 20  # Objects of a list that are looked at
_HOLDFAST: Final = b'"holdfast-session"'

_READERS: Final[Mapping[SourceApp, Callable[[SourceFiles, Skip], Iterator[SessionBuilder]]]] = {
    "hermes": hermes.read,
    "hermes-webui": hermes_webui.read,
    "chatgpt": chatgpt.read,
    "claude": claude.read,
    "open-webui": open_webui.read,
    "librechat": librechat.read,
}


@dataclass(slots=True)
class ConversionReport:
    app: SourceApp
    sessions: int = 0
    skipped: list[tuple[str, str]] = field(default_factory=list)  # Items and reasons
    skipped_count: int = 0

    def skip(self, item: str, reason: str) -> None:
        self.skipped_count += 1
        if len(self.skipped) < MAX_SKIPPED:
            self.skipped.append((item[:300], reason[:300]))


def is_holdfast_export(file: BinaryIO) -> bool:
    """Whether the file, read from its beginning, is an export of Holdfast, or was meant to be one."""
    start = file.readline(64 * 1024)
    return _HOLDFAST in start


def convert(
    path: Path,
    app: SourceApp | None,
    write_section: Callable[[Iterable[bytes]], object],
    progress: Callable[[int, int], object],
    shown_as: str | None = None,
    *,
    check: Callable[[], object] = lambda: None,
) -> ConversionReport:
    """Writes every session as a section of our export format. Raises InvalidInputError, which names the file, the place
    in it and what was expected; then what was written is of no use. So it is when `check`, which is called often while
    the source is read, raises something."""
    with closing(SourceFiles(path, shown_as, check=check)) as files:
        report = ConversionReport(app or detect(files))
        files.done = 0
        for builder in _READERS[report.app](files, report.skip):
            progress(min(files.done, files.total), files.total)
            if builder.is_empty:
                report.skip(builder.label, "it has no messages")
                continue
            write_section(_checked(builder.lines(), check))
            report.sessions += 1
        if not report.sessions and not report.skipped_count:
            raise InvalidInputError(files.shown_as, f"has no chats of {report.app}")
        return report


def _checked(lines: Iterable[bytes], check: Callable[[], object]) -> Iterator[bytes]:
    for line in lines:
        check()
        yield line


def detect(files: SourceFiles) -> SourceApp:
    """Raises InvalidInputError if it is none of them."""
    if files.path.is_dir() and (files.path / hermes.STATE).is_file():
        return "hermes"
    if not files.path.is_dir() and not files.is_archive and hermes.is_sqlite(files.path):
        return "hermes"
    names = [name for name in files.names if chatgpt.NAMES.search(name)]
    names = names or hermes_webui.WebUiStore(files).session_names
    for name in names[:_SNIFFED]:
        if (app := _detect_json(files, name)) is not None:
            return app
    raise InvalidInputError(
        files.shown_as,
        f"is not a chat export that Holdfast recognizes. If it is one, say of which app: {', '.join(_READERS)}",
    )


def _detect_json(files: SourceFiles, name: str) -> SourceApp | None:
    with files.open(name) as stream:
        start = stream.read(1024).removeprefix(codecs.BOM_UTF8).lstrip()
        if start and start[:1] not in (b"[", b"{"):
            return None
    with files.open(name) as stream:
        for _, item in islice(read_objects(stream, files.label(name)), _SNIFFED):
            if (app := _app_of(item)) is not None:
                return app
    return None


def _app_of(item: Mapping[str, Any]) -> SourceApp | None:
    chat = item.get("chat", item)
    if "mapping" in item or ("conversation_id" in item and "create_time" in item):
        return "chatgpt"
    if "chat_messages" in item:
        return "claude"
    if isinstance(chat, dict) and isinstance(chat.get("history"), dict):
        return "open-webui"
    if "conversationId" in item:
        return "librechat"
    if "session_id" in item and "messages" in item:
        return "hermes-webui"
    if "messages" in item and "source" in item and "id" in item:
        return "hermes"
    return None
