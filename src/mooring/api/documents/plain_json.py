r"""Read the most common input fast: one JSON object, whole, without characters given by number.

msgspec reads it several times as fast as the careful reader, but knows neither duplicates nor
limits. Both can be had by counting bytes, which is fast too:

1. In a text without `\u` a colon stands behind each key, and otherwise only in strings.
   Written out again, the tree has the same strings, but each key once; so if there are as many
   colons as before, no key came twice.
2. Of the brackets alone, each removal of all `{}` and `[]` takes away the innermost level. If some
   stay, there are brackets in strings; then, as in every other doubt, the careful reader looks.
"""

from __future__ import annotations

from functools import lru_cache

import msgspec

from mooring.api.documents.document import Document
from mooring.api.documents.json_reader import JsonOrigin
from mooring.api.documents.json_structure import may_hold_long_number
from mooring.api.documents.limits import Limits
from mooring.api.documents.numbers import NumberText
from mooring.api.documents.places import START

PLAIN_MAX_BYTES = 1024 * 1024  # below this no text has more values than the limits allow
REMEMBERED_MAX_BYTES = 4096

_decode = msgspec.json.Decoder(float_hook=NumberText).decode
_encode = msgspec.json.Encoder(enc_hook=float).encode  # NumberText is no float to msgspec
_NOT_BRACKETS = bytes(code for code in range(256) if code not in b"[]{}")


def plain_document(data: bytes, *, source: str, limits: Limits) -> Document | None:
    """Return the one document that the bytes are, or None where the careful reader must look."""
    if not data.startswith(b'{"') or len(data) > min(PLAIN_MAX_BYTES, limits.nodes_max):
        return None
    if b"\\u" in data or may_hold_long_number(data):
        return None
    if not _is_shallow(data, limits.depth_max):
        return None
    try:
        tree = _decode(data)
        text = data.decode()
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None
    if _encode(tree).count(b":") != data.count(b":"):
        return None
    return Document(tree, source, 0, (), JsonOrigin(text, 0, len(text), START))


def _is_shallow(data: bytes, depth_max: int) -> bool:
    brackets = data.translate(None, _NOT_BRACKETS)
    if len(brackets) <= REMEMBERED_MAX_BYTES:
        return _close_again(brackets, depth_max)
    return _close(brackets, depth_max)


def _close(brackets: bytes, depth_max: int) -> bool:
    """Tell whether all brackets close within a depth."""
    for _ in range(depth_max):
        if not brackets:
            return True
        # The points keep what becomes empty only now for the next round.
        brackets = brackets.replace(b"{}", b".").replace(b"[]", b".").replace(b".", b"")
    return not brackets


# Objects of a kind are mostly alike in their brackets.
_close_again = lru_cache(maxsize=256)(_close)
