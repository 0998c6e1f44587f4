"""The files of the page, in a fixed table, so that names in requests never become paths."""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from hashlib import sha256
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Final, NamedTuple

TYPES: Final = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".json": "application/json",
}
INDEX: Final = "index.html"
DEPTH_MAX: Final = 4


class StaticFile(NamedTuple):
    """A file of the page."""

    content_type: str
    body: bytes
    packed: bytes
    etag: str


def static_files() -> Mapping[str, StaticFile]:
    """Return the files of the page by name: `vendor/preact.js`."""
    found: dict[str, StaticFile] = {}
    _collect(files("moorage.web") / "static", "", found, DEPTH_MAX)
    return found


def _collect(folder: Traversable, prefix: str, found: dict[str, StaticFile], depth: int) -> None:
    for each in sorted(folder.iterdir(), key=lambda entry: entry.name):
        suffix = "." + each.name.rpartition(".")[2]
        if each.is_dir() and depth:
            _collect(each, f"{prefix}{each.name}/", found, depth - 1)
        elif suffix in TYPES:
            body = each.read_bytes()
            etag = f'"{sha256(body).hexdigest()[:32]}"'
            packed = gzip.compress(body, mtime=0)
            found[f"{prefix}{each.name}"] = StaticFile(TYPES[suffix], body, packed, etag)
