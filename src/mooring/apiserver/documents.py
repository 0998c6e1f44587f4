"""Documents that a server has ready: bytes with their type and a tag that tells their content."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

JSON = "application/json"


class Document(NamedTuple):
    """What is sent, and what is said of it in the headers."""

    body: bytes
    content_type: str = JSON
    etag: str = ""
    cache_control: str = "no-cache, private"

    def is_known(self, if_none_match: str) -> bool:
        """Return whether a client that names these tags has this very content."""
        tags = {tag.strip().removeprefix("W/") for tag in if_none_match.split(",")}
        return bool(self.etag) and ("*" in tags or self.etag in tags)

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers of the answer."""
        headers = {"Cache-Control": self.cache_control, "Content-Type": self.content_type}
        return {**headers, "ETag": self.etag, "Vary": "Accept"} if self.etag else headers


def content_hash(body: bytes) -> str:
    """Return what tells one content from another."""
    return hashlib.sha512(body).hexdigest().upper()


def plain(tree: Any) -> Document:
    """Return a JSON document that clients ask for anew each time."""
    return Document(msgspec.json.encode(tree))


def tagged(
    tree: Any, content_type: str = JSON, cache_control: str = "no-cache, private"
) -> Document:
    """Return a JSON document that clients may keep as long as its tag is the same."""
    body = msgspec.json.encode(tree)
    return Document(body, content_type, f'"{content_hash(body)}"', cache_control)
