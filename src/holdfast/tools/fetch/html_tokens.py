"""Splits HTML into tags and text, as the HTML standard's tokenizer does: what is not closed extends to the end of the
page. So no part is read twice, and the time is proportional to the length, whatever the page contains."""

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

_TAG_NAME: Final = re.compile(r"</?+([a-zA-Z][^\s/>]*+)")
_ATTRIBUTE: Final = re.compile(
    r"""[\s/]*+([^\s/>][^\s/>=]*+)"""
    r"""(?:\s*+=\s*+(?:"(?P<double>[^"]*+)(?:"|\Z)|'(?P<single>[^']*+)(?:'|\Z)|(?P<bare>[^\s>]*+)))?+"""
)
_TAG_END: Final = re.compile(r"[\s/]*+(?:>|\Z)")
_REFERENCE: Final = re.compile(r"&(?:#[0-9]{1,7}+|#[xX][0-9a-fA-F]{1,6}+|[a-zA-Z][a-zA-Z0-9]{1,31}+);?+")
_KEPT_ATTRIBUTES: Final = 100  # Of one tag; later ones are skipped

_RAW: Final = {
    name: re.compile(rf"</{name}(?=[\s/>])", re.IGNORECASE)
    for name in ("script", "style", "iframe", "noembed", "noframes", "xmp", "title", "textarea")
}
"""Elements whose content has no tags, and the pattern of their end."""
_WITH_REFERENCES: Final = frozenset({"title", "textarea"})


@dataclass(frozen=True, slots=True)
class Text:
    text: str


@dataclass(frozen=True, slots=True)
class StartTag:
    name: str  # In lower case
    attributes: dict[str, str]  # Undecoded values by lower-case name
    self_closing: bool

    def attribute(self, name: str) -> str:
        return _decode_references(self.attributes.get(name, ""))


@dataclass(frozen=True, slots=True)
class EndTag:
    name: str


def tokenize(page: str) -> Iterator[Text | StartTag | EndTag]:
    """Comments, declarations and processing instructions are left out."""
    at, text_from, size = 0, 0, len(page)
    while (at := page.find("<", at)) >= 0:
        tag = _TAG_NAME.match(page, at)
        if tag is None and page[at + 1 : at + 2] not in ("!", "?", "/"):
            at += 1  # a plain "<"
            continue
        if text_from < at:
            yield Text(_decode_references(page[text_from:at]))
        if tag is None:
            at = text_from = _end_of_comment(page, at)
            continue
        attributes, at = _read_attributes(page, tag.end())
        if at > size:
            return  # an unterminated tag at the end of the page
        name = tag[1].lower()
        if page[tag.start() + 1] == "/":
            yield EndTag(name)
        else:
            yield StartTag(name, attributes, page[at - 2] == "/")
            if name in _RAW:
                closing = _RAW[name].search(page, at)
                end = size if closing is None else closing.start()
                raw = page[at:end]
                yield Text(_decode_references(raw) if name in _WITH_REFERENCES else raw)
                at = end
        text_from = at
    if text_from < size:
        yield Text(_decode_references(page[text_from:]))


def _read_attributes(page: str, at: int) -> tuple[dict[str, str], int]:
    """The attributes of a tag, and the position after its ">"; beyond the page's end if there is none."""
    attributes: dict[str, str] = {}
    while (end := _TAG_END.match(page, at)) is None:
        found = _ATTRIBUTE.match(page, at)
        assert found is not None  # one of the two patterns matches at every position
        if len(attributes) < _KEPT_ATTRIBUTES:
            value = found["double"] or found["single"] or found["bare"] or ""
            attributes.setdefault(found[1].lower(), value)
        at = found.end()
    return attributes, end.end() if page[end.end() - 1] == ">" else len(page) + 1


def _end_of_comment(page: str, at: int) -> int:
    is_comment = page.startswith("<!--", at)
    if is_comment and page.startswith((">", "->"), at + 4):
        return page.index(">", at) + 1
    closing = "-->" if is_comment else ">"
    end = page.find(closing, at + (4 if is_comment else 2))
    return len(page) if end < 0 else end + len(closing)


def _decode_references(text: str) -> str:
    return _REFERENCE.sub(lambda found: html.unescape(found[0]), text) if "&" in text else text
