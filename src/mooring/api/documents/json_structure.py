"""Bound the depth and size of JSON text before anything is built from it.

The standard library's reader recurses and knows no limits. Two checks, both linear:

1. `is_surely_bounded` looks at the whole text at the speed of C and errs on the safe side;
2. where it doubts, `check` walks over one document and says where a limit is passed.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator
from itertools import accumulate

from mooring.api.documents.numbers import DIGITS_MAX, too_long
from mooring.api.documents.places import PlacedError
from mooring.api.documents.stream import Stream

_CHUNK_BYTES = 256 * 1024
_BRACKETS = b"[]{}"
_NOT_BRACKETS = bytes(code for code in range(256) if code not in _BRACKETS)
_STEPS = bytes.maketrans(_BRACKETS, b"\x01\xff\x01\xff")
_DIGITS_AS_ZERO = bytes.maketrans(b"123456789", b"000000000")
_STRIDE_BYTES = 16
_LONG_NUMBER = b"0" * ((DIGITS_MAX + 1) // _STRIDE_BYTES)

_TOKEN = re.compile(
    r"""(?P<text>"[^"\\]*+(?:\\.[^"\\]*+)*+")
    |   (?P<open>[\[{])
    |   (?P<close>[\]}])
    |   (?P<comma>,)
    |   (?P<digits>[0-9]++)""",
    re.VERBOSE | re.DOTALL,
)


def is_surely_bounded(stream: Stream) -> bool:
    """Tell whether nothing in the text can pass a limit."""
    data = stream.text.encode()
    if may_hold_long_number(data):
        return False
    depth = nodes = 0
    for outside in _outside_strings(data):
        steps = array("b", outside.translate(_STEPS, _NOT_BRACKETS))
        depths = list(accumulate(steps, initial=depth))
        depth = depths[-1]
        nodes += outside.count(b",") + len(steps)
        if max(depths) > stream.limits.depth_max or nodes > stream.limits.nodes_max:
            return False
    return True


def may_hold_long_number(data: bytes) -> bool:
    """Tell whether some number may have more digits than are read; False is certain."""
    # A run of so many digits shows in a sample, which is much faster to look at than all bytes.
    return _LONG_NUMBER in data[::_STRIDE_BYTES].translate(_DIGITS_AS_ZERO)


def _outside_strings(data: bytes) -> Iterator[bytes]:
    """Yield what stands outside of quotes, in pieces."""
    if b"\\" in data:
        data = data.replace(b"\\\\", b"").replace(b'\\"', b"")
    is_inside = 0
    for start in range(0, len(data), _CHUNK_BYTES):
        pieces = data[start : start + _CHUNK_BYTES].split(b'"')
        yield b"".join(pieces[is_inside::2])
        is_inside ^= (len(pieces) - 1) & 1


def check(stream: Stream, start: int, nodes: int) -> int:
    """Refuse the JSON value that starts at a character if it passes a limit.

    Takes the number of values before it and returns the number of values after it.
    """
    depth = 0
    for token in _TOKEN.finditer(stream.text, start):
        kind = token.lastgroup
        if kind == "open":
            depth += 1
            nodes += 1
        elif kind == "comma":
            nodes += 1
        elif kind == "close":
            depth -= 1
        elif kind == "digits" and len(token.group()) > DIGITS_MAX:
            raise _long_number(stream, token)
        if depth > stream.limits.depth_max:
            fact = f"nested more than {stream.limits.depth_max} levels deep"
            raise stream.fault(token.start(), fact)
        if nodes > stream.limits.nodes_max:
            raise stream.fault(token.start(), f"more than {stream.limits.nodes_max} values")
        if depth <= 0:
            break
    return nodes


def _long_number(stream: Stream, token: re.Match[str]) -> PlacedError:
    return stream.fault(token.start(), str(too_long(token.group())))
