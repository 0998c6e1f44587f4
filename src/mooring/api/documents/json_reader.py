"""Read one JSON value after another from a stream."""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from json import JSONDecodeError, JSONDecoder
from typing import NamedTuple

from mooring.api.documents.document import Document, Tree
from mooring.api.documents.json_marks import JsonPlaces, json_duplicates
from mooring.api.documents.json_structure import check, is_surely_bounded
from mooring.api.documents.numbers import NumberText, ScalarRefusedError
from mooring.api.documents.places import START, Duplicate, Part, PlacedError, Position, shifted
from mooring.api.documents.stream import Stream
from mooring.api.fieldpath import Segment

# An escape is read as a whole, so that the `u` of `\\\\ud800` is no surrogate.
_ESCAPE = re.compile(
    r"""\\(?: u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}
    |         (?P<lone>u[dD][89a-fA-F][0-9a-fA-F]{2})
    |         . )""",
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True)
class JsonOrigin:
    """The characters of a JSON document in its stream."""

    text: str
    start: int
    end: int
    start_position: Position

    @property
    def line(self) -> int:
        """The first line of the document."""
        return self.start_position.line

    @property
    def json(self) -> bytes:
        """The document's own bytes."""
        return self.text[self.start : self.end].encode()

    def locate(self, segments: tuple[Segment, ...]) -> Position:
        """Return the place of a field, or of its deepest ancestor that exists."""
        return self._position(self._places.find(segments))

    def duplicates(self, limit: int) -> tuple[Duplicate, ...]:
        """Return the first duplicate keys."""
        found = json_duplicates(self.text, self.start, self.end)
        return tuple(
            Duplicate(duplicate.segments, self._position(duplicate.start))
            for duplicate in islice(found, limit)
        )

    @cached_property
    def _places(self) -> JsonPlaces:
        return JsonPlaces(self.text, self.start)

    @cached_property
    def _line_starts(self) -> array[int]:
        breaks = re.compile("\n").finditer(self.text, self.start, self.end)
        return array("q", [self.start, *(found.end() for found in breaks)])

    def _position(self, index: int) -> Position:
        line = bisect_right(self._line_starts, index) - 1
        return shifted(self.start_position, line, index - self._line_starts[line])


class NotJsonError(Exception):
    """Text that is not JSON; `is_final` if it cannot be YAML either."""

    def __init__(self, fault: PlacedError, *, is_final: bool, is_placed: bool = True) -> None:
        super().__init__(fault)
        self.fault = fault
        self.is_final = is_final
        self.is_placed = is_placed


class JsonRead(NamedTuple):
    """A document and the character after it."""

    document: Document
    end: int


class JsonReader:
    """Reads the JSON values of one stream."""

    def __init__(self, stream: Stream) -> None:
        self._stream = replace(stream, text=_without_lone_surrogates(stream.text))
        self._is_bounded = is_surely_bounded(self._stream)
        self._has_duplicates = False
        self._nodes = 0
        # The last known place: counting lines from the top for each document would be quadratic.
        self._known = (0, START)
        self._decoder = JSONDecoder(
            object_pairs_hook=self._object, parse_float=NumberText, parse_constant=_refuse
        )

    def read(self, start: int, index: int) -> JsonRead:
        """Return the value that starts at a character, as the document with this number."""
        self._has_duplicates = False
        tree, end = self._decode(start)
        origin = JsonOrigin(self._stream.text, start, end, self._position(start))
        limit = self._stream.limits.duplicates_max if self._has_duplicates else 0
        duplicates = origin.duplicates(limit)
        return JsonRead(Document(tree, self._stream.source, index, duplicates, origin), end)

    def _decode(self, start: int) -> tuple[Tree, int]:
        stream = self._stream
        if not self._is_bounded:
            self._nodes = check(stream, start, self._nodes)
        try:
            tree, end = self._decoder.raw_decode(stream.text, start)
        except JSONDecodeError as error:
            fault = stream.fault(error.pos, _fact(error))
            raise NotJsonError(fault, is_final=_is_cut_off(error)) from None
        except ScalarRefusedError as refused:
            fault = stream.fault(start, str(refused))
            raise NotJsonError(fault, is_final=False, is_placed=False) from None
        except RecursionError:
            raise stream.fault(start, "nested too deep for the stack that is left") from None
        return tree, end

    def _position(self, index: int) -> Position:
        known, position = self._known
        found = Part(self._stream.text[known:index], position).end
        self._known = (index, found)
        return found

    def _object(self, pairs: list[tuple[str, Tree]]) -> dict[str, Tree]:
        found = dict(pairs)
        if len(found) != len(pairs):
            self._has_duplicates = True
        return found


def _fact(error: JSONDecodeError) -> str:
    words = error.msg.removesuffix(" at").removesuffix(" starting")
    words = words[:1].lower() + words[1:]
    return f"invalid JSON: {'unexpected end: ' if _is_at_end(error) else ''}{words}"


def _is_cut_off(error: JSONDecodeError) -> bool:
    return _is_at_end(error) or error.msg.startswith("Unterminated string")


def _is_at_end(error: JSONDecodeError) -> bool:
    return not error.doc[error.pos :].strip()


def _refuse(name: str) -> Tree:
    raise ScalarRefusedError(f"{name} is not a JSON number")


def _without_lone_surrogates(text: str) -> str:
    r"""Return the text with `\ufffd` for halves of characters, as Go reads them."""
    if "\\ud" not in text and "\\uD" not in text:
        return text
    return _ESCAPE.sub(lambda found: "\\ufffd" if found["lone"] else found[0], text)
