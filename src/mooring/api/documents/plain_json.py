r"""Read the most common input fast: one JSON object, whole, without escapes.

msgspec reads it several times as fast as the careful reader, but knows neither duplicates nor
limits. Both can be had from counting: in a text without backslashes, spaces taken out, `":` stands
once behind each key. (It may also stand at the beginning of a value; then there are more of them
than keys, and the careful reader looks.)
"""

from __future__ import annotations

from itertools import chain
from typing import Any

import msgspec

from mooring.api.documents.document import Document, Tree
from mooring.api.documents.json_reader import JsonOrigin
from mooring.api.documents.json_structure import DIGITS_AS_ZERO, LONG_NUMBER
from mooring.api.documents.limits import Limits
from mooring.api.documents.numbers import NumberText
from mooring.api.documents.places import START

PLAIN_MAX_BYTES = 1024 * 1024  # below this no text has more values than the limits allow

_decode = msgspec.json.Decoder(float_hook=NumberText).decode
_SPACE = b" \t\n\r"


def plain_document(data: bytes, *, source: str, limits: Limits) -> Document | None:
    """Return the one document that the bytes are, or None where the careful reader must look."""
    if not data.startswith(b'{"') or len(data) > min(PLAIN_MAX_BYTES, limits.nodes_max):
        return None
    outline = data.translate(DIGITS_AS_ZERO, _SPACE)
    if b"\\" in data or LONG_NUMBER in outline:
        return None
    try:
        tree = _decode(data)
        text = data.decode()
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None
    if _count_keys(tree, limits.depth_max) != outline.count(b'":'):
        return None
    return Document(tree, source, 0, (), JsonOrigin(text, 0, len(text), START))


def _count_keys(tree: Tree, depth_max: int) -> int | None:
    """Return the number of keys in the whole tree, or None if it is too deep."""
    keys = 0
    level: list[Any] = [tree]
    for _ in range(depth_max):
        maps = [container for container in level if type(container) is dict]
        lists = [container for container in level if type(container) is list]
        keys += sum(map(len, maps))
        values = chain(*map(dict.values, maps), *lists)
        level = [value for value in values if type(value) is dict or type(value) is list]
        if not level:
            return keys
    return None
