"""Converts HTML to text for a model: headings, lists, links and preformatted text, without scripts and styles. Pure. It
does not evaluate styles, so hidden text is included."""

import re
from html.parser import HTMLParser
from typing import Final
from urllib.parse import urljoin

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


def to_text(html: str, base: str = "") -> tuple[str, str]:
    """The title and the text. `base` resolves relative links."""
    reader = _Reader(base)
    reader.feed(html)
    reader.close()
    text = "".join(reader.pieces)
    text = re.sub(r"[ \t]+\n", "\n", text)
    text = re.sub(r"\n{3,}", "\n\n", text)
    return " ".join("".join(reader.title).split()), text.strip()


class _Reader(HTMLParser):
    def __init__(self, base: str) -> None:
        super().__init__(convert_charrefs=True)
        self.pieces: list[str] = []
        self.title: list[str] = []
        self._base = base
        self._skipping = 0
        self._in_title = False
        self._preformatted = 0
        self._links: list[tuple[str | None, int]] = []  # address, and the index where its text starts

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _SKIPPED:
            self._skipping += 1
        elif tag == "title":
            self._in_title = True
        elif self._skipping:
            return
        elif tag == "br":
            self.pieces.append("\n")
        elif tag == "a":
            self._links.append((dict(attrs).get("href"), len(self.pieces)))
        elif tag == "img" and (alt := dict(attrs).get("alt")):
            self._words(f"[image: {alt}]")
        elif tag in ("td", "th"):
            self.pieces.append("\t")
        elif tag in _BLOCKS:
            self._break(tag)
            self._preformatted += tag == "pre"
            self.pieces.append(_HEADINGS.get(tag, "- " if tag == "li" else ""))

    def handle_endtag(self, tag: str) -> None:
        if tag in _SKIPPED:
            self._skipping = max(0, self._skipping - 1)
        elif tag == "title":
            self._in_title = False
        elif self._skipping:
            return
        elif tag == "a" and self._links:
            self._close_link(*self._links.pop())
        elif tag in _BLOCKS:
            self._break(tag)
            if tag == "pre":
                self._preformatted = max(0, self._preformatted - 1)

    def handle_data(self, data: str) -> None:
        if self._in_title:
            self.title.append(data)
        elif self._preformatted and not self._skipping:
            self.pieces.append(data)
        elif not self._skipping:
            self._words(data)

    def _words(self, data: str) -> None:
        text = re.sub(r"\s+", " ", data)
        at_start = not self.pieces or self.pieces[-1].endswith(("\n", " ", "\t"))
        self.pieces.append(text.lstrip() if at_start else text)

    def _break(self, tag: str) -> None:
        self.pieces.append("\n\n" if tag in _PARAGRAPHS else "\n")

    def _close_link(self, address: str | None, begin: int) -> None:
        words = "".join(self.pieces[begin:]).strip()
        if address is None or not words or address.startswith(("#", "javascript:", "data:")):
            return
        try:
            whole = urljoin(self._base, address)
        except ValueError:
            return
        self.pieces.append(f" ({whole})" if whole != words else "")
