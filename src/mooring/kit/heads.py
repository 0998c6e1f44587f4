"""MOVED."""

from mooring.kit.http_head import HEAD_BYTES_MAX as HEAD_BYTES_MAX
from mooring.kit.http_head import Head as Head
from mooring.kit.http_head import HeadError as HeadError
from mooring.kit.http_head import parse_head as parse_head
from mooring.kit.http_head import read_head as read_head

__all__ = ["HEAD_BYTES_MAX", "Head", "HeadError", "parse_head", "read_head"]
