"""Find the places of values and of duplicate keys in a JSON text that was read before.

Places are numbers of characters here: lines are only counted for what somebody asks for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from json import JSONDecoder, loads
from typing import NamedTuple

from mooring.api.fieldpath import Key, Segment

_GAP = re.compile(r"[\s,]*+")
_COLON = re.compile(r"\s*+:\s*+")
_TOKEN = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[\[\]{}]|[^\s,:\[\]{}"]++', re.DOTALL)


class _Child(NamedTuple):
    """Where a member of a collection is written (its key if it has one), and where its value is."""

    place: int
    value: int


class JsonPlaces:
    """The places of the values in one sound JSON text.

    A collection is looked into when somebody asks for a place below it: the standard library's
    decoder steps over its members, much faster than a walk of our own. What was found is kept.
    """

    def __init__(self, text: str, start: int) -> None:
        self._text = text
        self._start = start
        self._decode = JSONDecoder().raw_decode
        self._children: dict[int, dict[str | int, _Child]] = {}

    def find(self, segments: tuple[Segment, ...]) -> int:
        """Return the character of a field, or of its deepest ancestor that exists."""
        here = _Child(self._start, self._start)
        for segment in segments:
            name = segment.name if isinstance(segment, Key) else segment
            child = self._inside(here.value).get(name)
            if child is None:
                break
            here = child
        return here.place

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
    """A key that was set before in its object, and the character where it is set again."""

    segments: tuple[Segment, ...]
    start: int


def json_duplicates(text: str, start: int, end: int) -> Iterator[JsonDuplicate]:
    """Yield the duplicate keys of the JSON value between two characters.

    # path: the key or index of the value that comes next, for each open collection
    # seen: the keys of each open collection so far, None for a list
    """
    path: list[Segment] = []
    seen: list[set[str] | None] = []
    expects_key = False
    for token in _TOKEN.finditer(text, start, end):
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
