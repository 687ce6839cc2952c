"""Writes a session as one HTML file for people to read, print or share. It runs no scripts and loads nothing: images
are in the file. Which messages: `engine.export_import`; the same as Markdown: `core.markdown_export`."""

import json
import re
from collections.abc import MutableMapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, Final, assert_never

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markdown_it.utils import OptionsDict

from holdfast.core.export_format import iso_timestamp
from holdfast.core.markdown_export import NOTICES
from holdfast.core.parts import (
    FilePart,
    Json,
    Part,
    PlanPart,
    ReasoningPart,
    RememberedPart,
    SteeredPart,
    TextPart,
    ToolPart,
)
from holdfast.core.session import Message, Session
from holdfast.core.size_text import size_text

IMAGES: Final = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
"""The content security policy of the file, also where it is opened from a disk."""
_MAX_RENDERED: Final = 200_000  # Characters of a message that are read as Markdown; other texts are shown as they are
_MAX_VALUE: Final = 20_000  # Characters of arguments and results of tools
_DATA: Final = "application/octet-stream"
_CONTENT: Final = re.compile(rb"\0(file_[0-9A-Za-z_-]+)\0")

_STYLE: Final = """
:root { color-scheme: light dark; --line: light-dark(#dbd6ca, #2d3b45); --muted: light-dark(#55626c, #9db0ba);
  --soft: light-dark(#e6eeec, #1c3238); --code: light-dark(#f6f4ef, #0c1318); }
body { max-width: 46rem; margin: 0 auto; padding: 2rem 1rem; font: 16px/1.6 system-ui, sans-serif;
  color: light-dark(#14212b, #e8e4da); background: light-dark(#fff, #10181e); overflow-wrap: anywhere; }
header { padding-bottom: 1rem; border-bottom: 1px solid var(--line); }
h1, h2, h3, h4, h5, h6 { margin: 1.25rem 0 .5rem; font-size: 1rem; line-height: 1.3; }
article h1 { font-size: 1.35rem; } article h2 { font-size: 1.2rem; } article h3 { font-size: 1.05rem; }
header h1 { margin: 0; font-size: 1.75rem; }
article .author { margin: 0 0 .25rem; font-size: .85rem; font-weight: 600; color: var(--muted); }
header p, time, .notice, figcaption, .file { color: var(--muted); font-size: .85rem; margin: 0; }
.file:last-child { padding-bottom: .6rem; }
article { margin-top: 1.5rem; }
article.user > div { padding: .25rem 1rem; border-radius: 12px; background: var(--soft); }
article p, ul, ol { margin: .5rem 0; } .plain { white-space: pre-wrap; }
pre { padding: .75rem; border: 1px solid var(--line); border-radius: 8px; background: var(--code); overflow-x: auto;
  font-size: .85rem; white-space: pre-wrap; } code { font-family: ui-monospace, monospace; }
img { max-width: 100%; border-radius: 8px; } figure { margin: .5rem 0; }
.table { margin: .75rem 0; overflow-x: auto; } table { border-collapse: collapse; }
th, td { padding: .3rem .6rem; border: 1px solid var(--line); overflow-wrap: normal; text-align: start; }
blockquote { margin-inline: 0; padding-inline-start: 1rem; border-inline-start: 3px solid var(--line); }
details { margin: .5rem 0; padding: .3rem .75rem; border: 1px solid var(--line); border-radius: 8px; }
summary { color: var(--muted); cursor: pointer; } a { color: light-dark(#0b6e6e, #4fc3bd); }
@media print { :root { color-scheme: light; } body { max-width: none; padding: 0; font-size: 11pt; }
  .table { overflow: visible; } h1, h2, h3, h4, h5, h6 { break-after: avoid; }
  pre, img, tr, blockquote { break-inside: avoid; } }
"""


@dataclass(frozen=True, slots=True)
class IncludedParts:
    """What is written of messages besides their texts."""

    reasoning: bool = True
    tools: bool = True  # With plans and what they returned
    files: bool = True  # Images, and the names of other files
    downloads: bool = False  # The contents of other files too
    private: bool = True  # Memories, and messages of errors, which may name servers


EVERYTHING: Final = IncludedParts()


def write_heading(session: Session, shared_at: float | None = None, style: str = "") -> str:
    """`shared_at`: it is a snapshot that was made then, and search engines must leave it out."""
    title = write_text(session.title or "Conversation")
    day = iso_timestamp(session.created_at)[:10]
    robots = ""
    if shared_at is not None:
        day = f"{day} · Snapshot shared on {iso_timestamp(shared_at)[:10]}"
        robots = '<meta name="robots" content="noindex, nofollow">\n<meta name="referrer" content="no-referrer">\n'
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(POLICY)}">\n'
        f"{robots}<title>{title}</title>\n<style>{_STYLE}{style}</style>\n</head>\n<body>\n"
        f'<header><h1 dir="auto">{title}</h1><p>{day}</p></header>\n<main>\n'
    )


def write_end() -> str:
    return "</main>\n</body>\n</html>\n"


def write_messages(messages: Sequence[Message], included: IncludedParts = EVERYTHING, note: str | None = None) -> bytes:
    """The messages as HTML, each with the `note`. `split_at_files` finds where the content of a file belongs."""
    return "".join(_message(message, included, note) for message in messages).encode("utf-8", "replace")


def split_at_files(html: bytes) -> list[bytes]:
    """Pieces of HTML and, between them, the ids of files whose content belongs there as base64."""
    return _CONTENT.split(html)


def write_author(message: Message) -> str:
    author = "You" if message.role == "user" else write_text(message.model or "") or "Assistant"
    at = iso_timestamp(message.created_at)
    return f'<h2 class="author">{author} · <time datetime="{at}">{at[:16].replace("T", " ")} UTC</time></h2>\n'


def write_ending(message: Message, included: IncludedParts) -> str:
    """Why an answer ends early, if it does."""
    notice = NOTICES.get(message.status, "")
    why = f" {message.error.message}" if message.error is not None and included.private else ""
    return f'<p class="notice">{write_text(notice + why)}</p>\n' if notice else ""


def _message(message: Message, included: IncludedParts, note: str | None) -> str:
    notice = f'<p class="notice">{write_text(note)}</p>\n' if note else ""
    writer = PartWriter(included, is_user=message.role == "user")
    parts = "".join(map(writer.write, message.parts))
    return (
        f'<article class="{message.role}">\n{write_author(message)}{notice}<div>\n{parts}</div>\n'
        f"{write_ending(message, included)}</article>\n"
    )


class PartWriter:
    """Writes the parts of one message. Its texts are rendered as Markdown up to `_MAX_RENDERED`. Raw HTML is text, and
    a remote image a link: opening the file must tell nobody."""

    def __init__(self, included: IncludedParts, *, is_user: bool = False) -> None:
        self._included = included
        self._is_user = is_user
        self._left = _MAX_RENDERED
        self._reader = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
        self._reader.add_render_rule("image", _image)
        self._reader.add_render_rule("table_open", _table_open)
        self._reader.add_render_rule("table_close", _table_close)

    def write(self, part: Part) -> str:
        included = self._included
        match part:
            case TextPart(text):
                return _plain(text) if self._is_user else self._render(text)
            case ReasoningPart(text):
                return write_details("Reasoning", self._render(text)) if included.reasoning and text.strip() else ""
            case ToolPart():
                if not included.tools:
                    return ""
                result = "" if part.result is None else write_value(part.result)
                return write_details(f"{part.name} ({part.state})", write_value(part.args) + result)
            case FilePart():
                return _file(part, included)
            case RememberedPart(items):
                texts = "".join(f"<p>{write_text(str(item.get('text', '')))}</p>" for item in items)
                return write_details("Memories", texts) if included.private else ""
            case PlanPart(entries):
                rows = (
                    f"<li>{'☑' if entry.status == 'completed' else '☐'} {write_text(entry.content)}</li>"
                    for entry in entries
                )
                return f"<ul>{''.join(rows)}</ul>\n" if included.tools else ""
            case SteeredPart(_, text):
                return f"<blockquote><p><b>You</b></p>{_plain(text)}</blockquote>\n"
            case _:
                assert_never(part)

    def _render(self, text: str) -> str:
        if len(text) > self._left:
            return _plain(text)
        self._left -= len(text)
        return f'<div dir="auto">{self._reader.render(text)}</div>\n'


def _file(part: FilePart, included: IncludedParts) -> str:
    if not included.files:
        return '<p class="file">A file that is not shared</p>\n'
    name, content = write_text(part.name), f"base64,\0{escape(part.file_id)}\0"
    if part.missing is None and part.media_type in IMAGES:
        image = f'<img src="data:{part.media_type};{content}" alt="{name}">'
        return f"<figure>{image}<figcaption>{name}</figcaption></figure>\n"
    if part.missing is None and included.downloads:
        name = f'<a download="{name}" href="data:{_DATA};{content}">{name}</a>'
    return f'<p class="file">{name} ({size_text(part.size)})</p>\n'


def write_text(text: str) -> str:
    return escape(text.replace("\0", "\ufffd"))


def _plain(text: str) -> str:
    return f'<p class="plain" dir="auto">{write_text(text)}</p>\n'


def write_value(value: Json) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=1)
    return f"<pre>{write_text(text[:_MAX_VALUE] + ('…' if len(text) > _MAX_VALUE else ''))}</pre>"


def write_details(summary: str, content: str) -> str:
    return f"<details><summary>{write_text(summary)}</summary>{content}</details>\n"


def _table_open(*_: object) -> str:
    """A wide table scrolls in an element of its own."""
    return '<div class="table"><table>\n'


def _table_close(*_: object) -> str:
    return "</table></div>\n"


def _image(
    renderer: RendererHTML, tokens: Sequence[Token], at: int, options: OptionsDict, env: MutableMapping[str, Any]
) -> str:
    token = tokens[at]
    source, name = escape(str(token.attrs.get("src", ""))), escape(token.content)
    if source.startswith("data:image/"):
        return f'<img src="{source}" alt="{name}">'
    return f'<a href="{source}" rel="noreferrer">{name or source}</a>'
