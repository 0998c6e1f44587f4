"""Checks the built pages: all links and anchors work, and no page loads anything from other hosts.

Zensical checks links between pages before it builds. This module checks the result: pictures,
files, anchors, the search index, and all elements that would make a browser contact another host.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

# Elements whose address a browser loads by itself. Only people follow other links.
LOADED = {
    "audio": ("src",),
    "embed": ("src",),
    "iframe": ("src",),
    "image": ("href", "xlink:href"),
    "img": ("src", "srcset"),
    "input": ("src",),
    "link": ("href",),
    "object": ("data",),
    "script": ("src",),
    "source": ("src", "srcset"),
    "track": ("src",),
    "use": ("href", "xlink:href"),
    "video": ("src", "poster"),
}
# These name a page, but load nothing.
NAMING = {"alternate", "canonical", "next", "prev"}

_STYLE_URL = re.compile(r"(?:url\(|@import)\s*['\"]?\s*(?:https?:)?//[^)'\"\s]+")


class Page(HTMLParser):
    """The anchors and links of a page, and the addresses that it makes a browser load."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.has_fence = False
        self.feed(text)

    def handle_data(self, data: str) -> None:
        """Record a code fence that was not recognized."""
        self.has_fence |= "```" in data

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Record the anchors and addresses of an element."""
        given = {name: value or "" for name, value in attrs}
        self.anchors |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        if tag == "link" and NAMING & set(given.get("rel", "").split()):
            return
        for name in LOADED.get(tag, ()):
            if name in given:
                self.loads += _addresses(given[name]) if name == "srcset" else [given[name]]


def _addresses(sources: str) -> list[str]:
    return [each.split()[0] for each in sources.split(",") if each.strip()]


def problems(site: Path) -> list[str]:
    """Return a line for each problem of a site."""
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.html"))}
    found = [
        f"{path.relative_to(site)}: {problem}"
        for path, page in pages.items()
        for problem in _page_problems(site, path, page, pages)
    ]
    return found + _style_problems(site) + _search_problems(site, set(pages))


def _page_problems(site: Path, path: Path, page: Page, pages: dict[Path, Page]) -> Iterator[str]:
    if page.has_fence:
        yield "shows ```: a block of code was not understood"
    for address in page.loads:
        if _is_elsewhere(address):
            yield f"loads {address} from another host"
    for address in [*page.links, *page.loads]:
        parts = urlsplit(address)
        if parts.scheme or parts.netloc:
            continue
        target = _target(site, path, unquote(parts.path))
        if target is None:
            yield f"{address} leads nowhere"
            continue
        anchors = pages[target].anchors if target in pages else set()
        if parts.fragment and target in pages and unquote(parts.fragment) not in anchors:
            yield f"{address} names no anchor"


def _is_elsewhere(address: str) -> bool:
    parts = urlsplit(address)
    return bool(parts.netloc) or parts.scheme not in ("", "data")


def _target(site: Path, page: Path, path: str) -> Path | None:
    """Return the file of an address, or None if the site does not have it."""
    if not path:
        return page
    base = site if path.startswith("/") else page.parent
    target = (base / path.lstrip("/")).resolve()
    if target.is_dir():
        target /= "index.html"
    return target if target.is_file() and target.is_relative_to(site.resolve()) else None


def _style_problems(site: Path) -> list[str]:
    return [
        f"{path.relative_to(site)}: loads {found[0]}"
        for path in sorted([*site.rglob("*.css"), *site.rglob("*.svg")])
        for found in _STYLE_URL.finditer(path.read_text(encoding="utf-8"))
    ]


def _search_problems(site: Path, pages: set[Path]) -> list[str]:
    """Return problems of the search index: missing pages, and entries without a page."""
    index = json.loads((site / "search.json").read_text(encoding="utf-8"))
    known = {
        site / (unquote(urlsplit(item["location"]).path) or "index.html") for item in index["items"]
    }
    missing = sorted(pages - known - {site / "404.html"})
    return [
        *(f"search.json: {path.relative_to(site)} is missing" for path in missing),
        *(f"search.json: {path} is no page" for path in sorted(known - pages)),
    ]
