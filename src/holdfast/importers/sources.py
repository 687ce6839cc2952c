"""The applications that chats can be imported from, how to tell their files apart, and the conversion of a whole source
into our export format. Blocking: call it on a worker thread. What an import adds to a chat that was imported before:
`engine.transactions.imports.merge`."""

import codecs
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from itertools import islice
from mimetypes import guess_type
from pathlib import Path
from typing import Any, BinaryIO, Final, Literal

from holdfast.core.errors import InvalidInputError
from holdfast.core.image_types import image_type
from holdfast.importers import chatgpt, claude, hermes, hermes_webui, librechat, open_webui
from holdfast.importers.scratch import Scratch
from holdfast.importers.session_builder import SessionBuilder, Skip
from holdfast.importers.source_files import SourceFiles

SourceApp = Literal["hermes", "hermes-webui", "chatgpt", "claude", "open-webui", "librechat"]
MAX_SKIPPED: Final = 1000  # Reasons that are kept; more are only counted
_SNIFFED: Final = 20  # Objects of a list that are looked at
_START: Final = 64  # Bytes that tell an image
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


_NAMES: Final[Mapping[SourceApp, str]] = {
    "hermes": "Hermes Agent",
    "hermes-webui": "Hermes WebUI",
    "chatgpt": "ChatGPT",
    "claude": "Claude",
    "open-webui": "Open WebUI",
    "librechat": "LibreChat",
}
_MEDIA: Final = {"image": "an image", "audio": "a sound file", "video": "a video"}
_CHATS: Final = (".json", ".jsonl", ".db")  # How the names of files with chats end


class NoExportError(InvalidInputError):
    template = "{field} {problem}"


class WrongSourceError(InvalidInputError):
    """`app` is the source to choose; None: that of Holdfast's own exports, which are detected."""

    template = "{field} looks like {problem}. {advice}"
    app: SourceApp | None
    advice: str


class UnrecognizedFileError(InvalidInputError):
    template = "Couldn't recognize {field}. If it is a chat export, choose its source and try again"
    problem: str = "is not a chat export that Holdfast recognizes"


def convert(
    path: Path,
    app: SourceApp | None,
    write_section: Callable[[Iterable[bytes]], object],
    progress: Callable[[int, int], object],
    shown_as: str | None = None,
    *,
    check: Callable[[], object] = lambda: None,
    scratch: Scratch | None = None,
) -> ConversionReport:
    """Writes every session as a section of our export format. Raises InvalidInputError, which names the file, the place
    in it and what was expected; then what was written is of no use. So it is when `check`, which is called often while
    the source is read, raises something. StorageError: what was read cannot be kept."""
    try:
        return _convert(path, app, write_section, progress, shown_as, check, scratch)
    except OSError as error:
        raise InvalidInputError(shown_as or str(path), f"cannot be read: {error.strerror or error}") from None


def _convert(
    path: Path,
    app: SourceApp | None,
    write_section: Callable[[Iterable[bytes]], object],
    progress: Callable[[int, int], object],
    shown_as: str | None,
    check: Callable[[], object],
    scratch: Scratch | None,
) -> ConversionReport:
    with closing(SourceFiles(path, shown_as, check=check, scratch=scratch)) as files:
        report = ConversionReport(app or detect(files))
        files.done = 0
        try:
            for builder in _READERS[report.app](files, report.skip):
                progress(min(files.done, files.total), files.total)
                if builder.is_empty:
                    report.skip(builder.label, "it has no messages")
                    continue
                write_section(_checked(builder.lines(), check))
                report.sessions += 1
        except InvalidInputError:
            if not report.sessions:
                _require_source(files, report.app)
            raise
        if not report.sessions:
            _require_source(files, report.app)
            if not report.skipped_count:
                raise InvalidInputError(files.shown_as, f"has no chats of {_NAMES[report.app]}")
        return report


def _require_source(files: SourceFiles, app: SourceApp) -> None:
    """Raises NoExportError or WrongSourceError if a source without any chats of this application is recognized."""
    _require_export(files)
    if not files.is_archive and files.path.is_file():
        with files.path.open("rb") as file:
            if is_holdfast_export(file):
                raise WrongSourceError(files.shown_as, "a Holdfast export", None, "Choose “Detect source” for it")
    try:
        found = detect(files)
    except InvalidInputError:
        return
    if found != app:
        name = _NAMES[found]
        kind = f"{'an' if name[0] in 'AEIOU' else 'a'} {name} export"
        raise WrongSourceError(files.shown_as, kind, found, f"Choose {name} as the source")


def _require_export(files: SourceFiles) -> None:
    """Raises NoExportError for a file that is known to be something else."""
    if files.path.is_dir():
        return
    if files.is_archive:
        if not any(name.lower().endswith(_CHATS) for name in files.names):
            raise NoExportError(files.shown_as, "contains no chats")
        return
    with files.path.open("rb") as file:
        kind = image_type(file.read(_START)) or guess_type(files.shown_as)[0] or ""
    if kind == "application/pdf":
        raise NoExportError(files.shown_as, "is a PDF file, not a chat export")
    if (media := _MEDIA.get(kind.partition("/")[0])) is not None:
        raise NoExportError(files.shown_as, f"is {media}, not a chat export")


def _checked(lines: Iterable[bytes], check: Callable[[], object]) -> Iterator[bytes]:
    for line in lines:
        check()
        yield line


def detect(files: SourceFiles) -> SourceApp:
    """Raises UnrecognizedFileError if it is none of them."""
    if files.path.is_dir() and (files.path / hermes.STATE).is_file():
        return "hermes"
    if not files.path.is_dir() and not files.is_archive and hermes.is_sqlite(files.path):
        return "hermes"
    names = [name for name in files.names if chatgpt.NAMES.search(name)]
    names = names or hermes_webui.WebUiStore(files).session_names
    for name in names[:_SNIFFED]:
        if (app := _detect_json(files, name)) is not None:
            return app
    _require_export(files)
    raise UnrecognizedFileError(files.shown_as)


def _detect_json(files: SourceFiles, name: str) -> SourceApp | None:
    with files.open(name) as stream:
        start = stream.read(1024).removeprefix(codecs.BOM_UTF8).lstrip()
        if start and start[:1] not in (b"[", b"{"):
            return None
    with closing(files.read_objects(name)) as items:
        for _, item in islice(items, _SNIFFED):
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
