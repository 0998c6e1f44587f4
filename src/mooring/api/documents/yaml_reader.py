"""Read the documents of a YAML text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from yaml.events import Event

from mooring.api.documents.document import Document
from mooring.api.documents.encoding import before
from mooring.api.documents.places import (
    Part,
    PlacedError,
    Position,
    Spot,
    find,
    position_of,
)
from mooring.api.documents.schemas import Schema
from mooring.api.documents.stream import Stream
from mooring.api.documents.yaml_marks import yaml_spots
from mooring.api.documents.yaml_tree import Composed, TreeComposer
from mooring.api.fieldpath import Segment

# What YAML does not call printable.
_CONTROL = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
# At the start of a line parsers disagree about what a byte order mark is.
_STRAY_MARK = re.compile("(?<![^\n\r\x85\u2028\u2029])\ufeff")


@dataclass(frozen=True)
class YamlOrigin:
    """The lines of a YAML document in its stream."""

    text: str
    start: int
    end: int
    start_position: Position
    line: int
    schema: Schema
    json: None = None

    def locate(self, segments: tuple[Segment, ...]) -> Position:
        """Return the place of a field, or of its deepest ancestor that exists."""
        return find(self._spots, segments)

    @cached_property
    def _spots(self) -> Spot:
        part = Part(self.text[self.start : self.end], self.start_position)
        return yaml_spots(part, schema=self.schema)


def yaml_documents(stream: Stream, *, start: int, count: int) -> Iterator[Document]:
    """Yield the documents from a character of the stream on, numbered from `count`."""
    text, fault = _printable(stream, start)
    part = Part(text, position_of(stream.text, start))
    composer = TreeComposer(part, source=stream.source, schema=stream.schema, limits=stream.limits)
    seen = count
    for composed in composer.documents():
        seen += 1
        stream.check_count(seen, start + _index(composed.start))
        # Kubernetes skips documents without a value too.
        if composed.tree is not None:
            yield _document(stream, composed, part, start, count)
            count += 1
    if fault is not None:
        raise fault


def _printable(stream: Stream, start: int) -> tuple[str, PlacedError | None]:
    """Return the text up to the documents with a character that YAML forbids, and that fault."""
    bad = _first_forbidden(stream.text, start)
    if bad is None:
        return stream.text[start:], None
    fault = stream.fault(bad.start(), _forbidden_fact(bad.group()))
    return before(stream.text[start:], bad.start() - start), fault


def _first_forbidden(text: str, start: int) -> re.Match[str] | None:
    found = [_CONTROL.search(text, start)]
    if "\ufeff" in text:
        found.append(_STRAY_MARK.search(text, start))
    return min(filter(None, found), key=re.Match.start, default=None)


def _forbidden_fact(character: str) -> str:
    match character:
        case "\0":
            return "NUL character: this looks like binary data"
        case "\ufeff":
            return "byte order mark inside the text: were two files joined?"
    return f"control character U+{ord(character):04X} is not allowed"


def _document(stream: Stream, composed: Composed, part: Part, offset: int, index: int) -> Document:
    line, column = _place(composed.start)
    # From the start of the line: the indentation of the first line counts.
    origin = YamlOrigin(
        text=stream.text,
        start=offset + _index(composed.start) - column,
        end=offset + _end(composed.end),
        start_position=part.position(line, 0),
        line=part.position(*_place(composed.root)).line,
        schema=stream.schema,
    )
    return Document(composed.tree, stream.source, index, composed.duplicates, origin)


def _place(event: Event) -> tuple[int, int]:
    assert event.start_mark is not None
    return event.start_mark.line, event.start_mark.column


def _index(event: Event) -> int:
    assert event.start_mark is not None
    return event.start_mark.index


def _end(event: Event) -> int:
    assert event.end_mark is not None
    return event.end_mark.index
