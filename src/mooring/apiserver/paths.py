"""MOVED."""

from mooring.apiserver.http.messages import Target as Target  # noqa
from mooring.apiserver.http.messages import parse_path as parse_path  # noqa

__all__ = ["Target", "parse_path"]  # noqa
