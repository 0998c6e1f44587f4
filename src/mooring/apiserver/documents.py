"""MOVED."""

from mooring.apiserver.http.messages import Document as Document  # noqa
from mooring.apiserver.http.messages import JSON as JSON  # noqa
from mooring.apiserver.http.messages import content_hash as content_hash  # noqa

__all__ = ["Document", "JSON", "content_hash"]  # noqa
