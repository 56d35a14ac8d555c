"""A page read strictly: every element closed in order, every id once, nothing fetched from elsewhere."""

from __future__ import annotations

import re
from html.parser import HTMLParser

VOID = {"meta", "link", "img", "br"}
ADDRESSES = {"href", "src", "srcset", "action", "data", "poster", "xlink:href"}


class Page(HTMLParser):
    """What a page holds.

    Attributes:
        text: the words one reads, without styles and scripts.
        elements: (name, attributes) in order.
        scripts: the contents of script elements.
        problems: what is wrong with the page.
    """

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.text, self.problems = "", list[str]()
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.scripts: list[str] = []
        self._open: list[str] = []
        self.feed(html)
        self.close()
        self.problems += [f"<{name}> is never closed" for name in self._open]
        ids = [attributes["id"] for _, attributes in self.elements if "id" in attributes]
        self.problems += [f"id {one} is there twice" for one in set(ids) if ids.count(one) > 1]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._element(tag, attrs)
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._element(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        if not self._open or self._open[-1] != tag:
            self.problems.append(f"</{tag}> closes {self._open[-1:]}")
        else:
            self._open.pop()

    def handle_data(self, data: str) -> None:
        within = self._open[-1] if self._open else ""
        if within == "script":
            self.scripts.append(data)
        elif within == "style":
            if re.search(r"url\(|@import", data):
                self.problems.append("the style sheet fetches something")
        else:
            self.text += data

    def _element(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in attrs}
        self.elements.append((tag, attributes))
        for name, value in attributes.items():
            if name in ADDRESSES and not value.startswith(("data:", "#")):
                self.problems.append(f"<{tag} {name}={value[:60]}> needs another file")
            if name.startswith("on") or "url(" in value:
                self.problems.append(f"<{tag} {name}={value[:60]}>")

    def of(self, tag: str, **wanted: str) -> list[dict[str, str]]:
        """The attributes of the elements of a name, with those attributes."""
        return [a for t, a in self.elements if t == tag and wanted.items() <= a.items()]

    def ids(self) -> set[str]:
        return {attributes["id"] for _, attributes in self.elements if "id" in attributes}
