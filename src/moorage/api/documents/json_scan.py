"""Scans of JSON text: bounds before it is decoded; positions and duplicate keys afterwards.

The standard library's decoder recurses and has no limits. Two checks, both linear, come first:

1. `is_surely_bounded` scans the whole text at the speed of C and errs on the safe side;
2. where it doubts, `check_bounds` scans one document and reports where it exceeds a limit.

Positions are character indexes here: lines are counted only on request.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator
from itertools import accumulate
from json import JSONDecoder, loads
from typing import NamedTuple

from moorage.api.documents.document import DocumentStream, PlacedError
from moorage.api.documents.scalars import DIGITS_MAX, too_long
from moorage.api.field_path import MapKey, Segment

_CHUNK_BYTES = 256 * 1024
_BRACKETS = b"[]{}"
_NOT_BRACKETS = bytes(code for code in range(256) if code not in _BRACKETS)
_STEPS = bytes.maketrans(_BRACKETS, b"\x01\xff\x01\xff")
_DIGITS_AS_ZERO = bytes.maketrans(b"123456789", b"000000000")
_STRIDE_BYTES = 16
_LONG_NUMBER = b"0" * ((DIGITS_MAX + 1) // _STRIDE_BYTES)

_BOUND_TOKEN = re.compile(
    r"""(?P<text>"[^"\\]*+(?:\\.[^"\\]*+)*+")
    |   (?P<open>[\[{])
    |   (?P<close>[\]}])
    |   (?P<comma>,)
    |   (?P<digits>[0-9]++)""",
    re.VERBOSE | re.DOTALL,
)


def is_surely_bounded(stream: DocumentStream) -> bool:
    """Return whether nothing in the text can exceed a limit."""
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


def has_surely_few_values(data: bytes, values_max: int) -> bool:
    """Return whether JSON text has at most so many values; in strings, signs count as well."""
    # A value follows a comma or an opening bracket, or is the only one.
    return len(data) < values_max or sum(map(data.count, (b",", b"[", b"{"))) < values_max


def has_few_values(data: bytes, values_max: int) -> bool:
    """Return whether JSON text has at most so many values."""
    if has_surely_few_values(data, values_max):
        return True
    return sum(sum(map(o.count, (b",", b"[", b"{"))) for o in _outside_strings(data)) < values_max


def may_hold_long_number(data: bytes) -> bool:
    """Return whether a number may have too many digits; False is certain."""
    # A long run of digits shows in a sample, which is much faster to scan than all bytes.
    return _LONG_NUMBER in data[::_STRIDE_BYTES].translate(_DIGITS_AS_ZERO)


def _outside_strings(data: bytes) -> Iterator[bytes]:
    """Yield the text outside of quotes, in pieces."""
    if b"\\" in data:
        data = data.replace(b"\\\\", b"").replace(b'\\"', b"")
    is_inside = 0
    for start in range(0, len(data), _CHUNK_BYTES):
        pieces = data[start : start + _CHUNK_BYTES].split(b'"')
        yield b"".join(pieces[is_inside::2])
        is_inside ^= (len(pieces) - 1) & 1


def check_bounds(stream: DocumentStream, start: int, nodes: int) -> int:
    """Reject the JSON value that starts at a character if it exceeds a limit.

    `nodes` is the number of values before it; the number after it is returned.
    """
    depth = 0
    for token in _BOUND_TOKEN.finditer(stream.text, start):
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


def _long_number(stream: DocumentStream, token: re.Match[str]) -> PlacedError:
    return stream.fault(token.start(), str(too_long(token.group())))


# --- positions ------------------------------------------------------------------------------------

_GAP = re.compile(r"[\s,]*+")
_COLON = re.compile(r"\s*+:\s*+")
_KEY_TOKEN = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[\[\]{}]|[^\s,:\[\]{}"]++', re.DOTALL)


class _Child(NamedTuple):
    """The index of a member of a collection (of its key if it has one), and of its value."""

    start: int
    value: int


class JsonPositions:
    """The positions of the values in one valid JSON text.

    A collection is scanned when a position below it is requested: the standard library's decoder
    steps over its members, much faster than code of our own. The result is kept.
    """

    def __init__(self, text: str, start: int) -> None:
        self._text = text
        self._start = start
        self._decode = JSONDecoder().raw_decode
        self._children: dict[int, dict[str | int, _Child]] = {}

    def find(self, segments: tuple[Segment, ...]) -> int:
        """Return the index of a field, or of its deepest existing ancestor."""
        here = _Child(self._start, self._start)
        for segment in segments:
            name = segment.name if isinstance(segment, MapKey) else segment
            child = self._inside(here.value).get(name)
            if child is None:
                break
            here = child
        return here.start

    def _inside(self, start: int) -> dict[str | int, _Child]:
        """Return the members of the value that starts at a character."""
        if start not in self._children:
            match self._text[start]:
                case "{":
                    self._children[start] = dict(self._members(start))
                case "[":
                    self._children[start] = dict(enumerate(self._items(start)))
                case _:
                    self._children[start] = {}
        return self._children[start]

    def _members(self, start: int) -> Iterator[tuple[str, _Child]]:
        place = self._skip(_GAP, start + 1)
        while self._text[place] != "}":
            key, end = self._decode(self._text, place)
            value = self._skip(_COLON, end)
            yield key, _Child(place, value)
            place = self._after(value)

    def _items(self, start: int) -> Iterator[_Child]:
        place = self._skip(_GAP, start + 1)
        while self._text[place] != "]":
            yield _Child(place, place)
            place = self._after(place)

    def _after(self, value: int) -> int:
        _, end = self._decode(self._text, value)
        return self._skip(_GAP, end)

    def _skip(self, pattern: re.Pattern[str], start: int) -> int:
        found = pattern.match(self._text, start)
        assert found is not None
        return found.end()


class JsonDuplicate(NamedTuple):
    """A key that was set before in its object, and the index where it is set again."""

    segments: tuple[Segment, ...]
    start: int


def json_duplicates(text: str, start: int, end: int) -> Iterator[JsonDuplicate]:
    """Yield the duplicate keys of the JSON value between two indexes.

    # path: the key or index of the next value, for each open collection
    # seen: the keys of each open collection so far, None for a list
    """
    path: list[Segment] = []
    seen: list[set[str] | None] = []
    expects_key = False
    for token in _KEY_TOKEN.finditer(text, start, end):
        word = token.group()
        if expects_key and word != "}":
            key: str = loads(word)
            path[-1] = key
            keys = seen[-1]
            assert keys is not None
            if key in keys:
                yield JsonDuplicate(tuple(path), token.start())
            keys.add(key)
            expects_key = False
        elif word in ("{", "["):
            path.append(0)
            seen.append(set() if word == "{" else None)
            expects_key = word == "{"
        else:
            if word in ("}", "]"):
                path.pop()
                seen.pop()
            if path and isinstance(last := path[-1], int):
                path[-1] = last + 1
            expects_key = bool(seen) and seen[-1] is not None
