"""Converts HTML to text for a model: headings, lists, links and preformatted text, without scripts and styles. Pure. It
does not evaluate styles, so hidden text is included."""

import re
from typing import Final
from urllib.parse import urljoin

from holdfast.tools.fetch.html_tokens import EndTag, StartTag, Text, tokenize

_SKIPPED: Final = frozenset({"script", "style", "template", "svg", "canvas", "iframe", "object", "select", "button"})
# fmt: off
_BLOCKS: Final = frozenset({
    "address", "article", "aside", "blockquote", "body", "dd", "details", "div", "dl", "dt", "fieldset",
    "figcaption", "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "li", "main",
    "nav", "ol", "p", "pre", "section", "summary", "table", "tbody", "thead", "tr", "ul",
})
# fmt: on
_PARAGRAPHS: Final = frozenset(["blockquote", "h1", "h2", "h3", "h4", "h5", "h6", "p", "pre", "table", "ul", "ol"])
_HEADINGS: Final = {f"h{n}": "#" * n + " " for n in range(1, 7)}
_MAX_ADDRESS: Final = 2000  # Characters of a link's address; a longer one is left out
_MAX_ADDRESSES: Final = 500_000  # Characters of all addresses: relative links can be far shorter than their addresses


def to_text(html: str, base: str = "") -> tuple[str, str]:
    """The title and the text, in time proportional to the length. `base` resolves relative links."""
    writer = _TextWriter(base)
    for token in tokenize(html):
        match token:
            case Text(text):
                writer.add_text(text)
            case StartTag():
                writer.start(token)
            case EndTag(tag):
                writer.end(tag)
    text = "".join(writer.pieces)
    text = re.sub(r"(?<![ \t])[ \t]++\n", "\n", text)  # without the lookbehind, each space of a run starts a new try
    text = re.sub(r"\n{3,}", "\n\n", text)
    return " ".join("".join(writer.title).split()), text.strip()


class _TextWriter:
    def __init__(self, base: str) -> None:
        self.pieces: list[str] = []
        self.title: list[str] = []
        self._base = base if len(base) <= _MAX_ADDRESS else ""
        self._skipping = 0
        self._in_title = False
        self._preformatted = 0
        self._link: tuple[str, int] | None = None  # The open link: its address, and the index where its text starts
        self._address_room = _MAX_ADDRESSES

    def start(self, token: StartTag) -> None:
        tag = token.name
        if tag in _SKIPPED:
            self._skipping += not token.self_closing
        elif tag == "title":
            self._in_title = not self._skipping
        elif self._skipping:
            return
        elif tag == "br":
            self.pieces.append("\n")
        elif tag == "a":
            self._close_link()  # links do not nest
            self._link = (token.attribute("href"), len(self.pieces))
        elif tag == "img" and (alt := token.attribute("alt")):
            self._add_words(f"[image: {alt}]")
        elif tag in ("td", "th"):
            self.pieces.append("\t")
        elif tag in _BLOCKS:
            self._break(tag)
            self._preformatted += tag == "pre"
            self.pieces.append(_HEADINGS.get(tag, "- " if tag == "li" else ""))

    def end(self, tag: str) -> None:
        if tag in _SKIPPED:
            self._skipping = max(0, self._skipping - 1)
        elif tag == "title":
            self._in_title = False
        elif self._skipping:
            return
        elif tag == "a":
            self._close_link()
        elif tag in _BLOCKS:
            self._break(tag)
            if tag == "pre":
                self._preformatted = max(0, self._preformatted - 1)

    def add_text(self, text: str) -> None:
        if self._in_title:
            self.title.append(text)
        elif self._preformatted and not self._skipping:
            self.pieces.append(text)
        elif not self._skipping:
            self._add_words(text)

    def _add_words(self, text: str) -> None:
        words = re.sub(r"\s+", " ", text)
        at_start = not self.pieces or self.pieces[-1].endswith(("\n", " ", "\t"))
        self.pieces.append(words.lstrip() if at_start else words)

    def _break(self, tag: str) -> None:
        self.pieces.append("\n\n" if tag in _PARAGRAPHS else "\n")

    def _close_link(self) -> None:
        if self._link is None:
            return
        (address, begin), self._link = self._link, None
        words = "".join(self.pieces[begin:]).strip()
        if not words or self._address_room <= 0 or not 0 < len(address) <= _MAX_ADDRESS:
            return
        if address.startswith(("#", "javascript:", "data:")):
            return
        try:
            whole = urljoin(self._base, address)
        except ValueError:
            return
        self._address_room -= len(whole)
        self.pieces.append(f" ({whole})" if whole != words else "")
