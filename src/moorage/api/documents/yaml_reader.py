"""Reads the documents of a YAML text, and finds the positions of their values on request."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from yaml.events import (
    AliasEvent,
    CollectionEndEvent,
    DocumentStartEvent,
    Event,
    MappingStartEvent,
    NodeEvent,
    ScalarEvent,
    SequenceStartEvent,
)

from moorage.api.documents.document import (
    Document,
    DocumentStream,
    PlacedError,
    Position,
    SourceSpot,
    TextPart,
    documents_before,
    find_position,
    position_of,
)
from moorage.api.documents.scalars import Schema, is_merge, key_of
from moorage.api.documents.yaml_tree import Composed, Events, TreeComposer
from moorage.api.field_path import Segment

# Characters that YAML does not allow.
_CONTROL = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
# Parsers disagree about a byte order mark at the start of a line.
_STRAY_MARK = re.compile("(?<![^\n\r\x85\u2028\u2029])\ufeff")

# Lines that begin like a directive, or like the document that it is for.
_DIRECTIVE_OR_START = re.compile("(?<![^\n\r\x85\u2028\u2029])(%TAG|---)")


@dataclass(frozen=True)
class YamlOrigin:
    """The lines of a YAML document in its stream."""

    text: str
    before: int  # where the document before it ends; comments may follow
    start: int
    end: int
    start_position: Position
    line: int
    schema: Schema
    json: None = None

    @property
    def yaml(self) -> str:
        """The document's own text, from the end of the one before."""
        return self.text[self.before : self.end]

    def locate(self, segments: tuple[Segment, ...]) -> Position:
        """Return the position of a field, or of its deepest existing ancestor."""
        return find_position(self._spots, segments)

    @cached_property
    def _spots(self) -> SourceSpot:
        part = TextPart(self.text[self.start : self.end], self.start_position)
        return yaml_spots(part, schema=self.schema)


def yaml_documents(stream: DocumentStream, *, start: int, count: int) -> Iterator[Document]:
    """Yield the documents from a character of the stream on, numbered from `count`."""
    text, fault = _printable(stream, start)
    part = TextPart(text, position_of(stream.text, start))
    composer = TreeComposer(part, source=stream.source, schema=stream.schema, limits=stream.limits)
    seen, before = count, start
    for composed in composer.documents():
        seen += 1
        stream.check_count(seen, start + _index(composed.start))
        # Kubernetes skips documents without a value too.
        if composed.tree is not None:
            yield _document(stream, composed, part, start, count, before)
            count += 1
        before = start + _end(composed.end)
    if fault is not None:
        raise fault


def _printable(stream: DocumentStream, start: int) -> tuple[str, PlacedError | None]:
    """Return the documents before what must not reach the parser, and the error for that."""
    found: list[tuple[int, str]] = []
    if bad := _first_forbidden(stream.text, start):
        found.append((bad.start(), _forbidden_fact(bad.group())))
    if (index := _first_excess_directive(stream, start)) is not None:
        fact = f"more than {stream.limits.directives_max} %TAG directives for one document"
        found.append((index, fact))
    if not found:
        return stream.text[start:], None
    index, fact = min(found)
    return documents_before(stream.text[start:], index - start), stream.fault(index, fact)


def has_forbidden(stream: DocumentStream) -> bool:
    """Return whether a text has something that must not reach the parser."""
    return _printable(stream, 0)[1] is not None


def _first_excess_directive(stream: DocumentStream, start: int) -> int | None:
    """Return the index of the first %TAG directive beyond the limit for one document.

    libyaml compares each with all before it, so their number must be bound first.
    """
    if "%TAG" not in stream.text:
        return None
    count = 0
    for line in _DIRECTIVE_OR_START.finditer(stream.text, start):
        count = count + 1 if line[1] == "%TAG" else 0
        if count > stream.limits.directives_max:
            return line.start(1)
    return None


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


def _document(
    stream: DocumentStream,
    composed: Composed,
    part: TextPart,
    offset: int,
    index: int,
    before: int,
) -> Document:
    line, column = _place(composed.start)
    # From the start of the line: the indentation of the first line counts.
    origin = YamlOrigin(
        text=stream.text,
        before=before,
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


# --- positions ------------------------------------------------------------------------------------

# The document is known to be sound and not too deep, so a recursive descent is safe.


def yaml_spots(part: TextPart, *, schema: Schema) -> SourceSpot:
    """Return the spots of the only document of a part."""
    return _SpotFinder(part, schema).document()


class _SpotFinder:
    def __init__(self, part: TextPart, schema: Schema) -> None:
        self._events = Events(part, source="")
        self._schema = schema
        self._spots: dict[str, SourceSpot] = {}
        self._scalars: dict[str, ScalarEvent] = {}

    def document(self) -> SourceSpot:
        while not isinstance(self._events.next(), DocumentStartEvent):
            pass
        return self._spot(self._events.next())

    def _spot(self, event: Event) -> SourceSpot:
        """Return the spots of a node; an alias has those of its anchor."""
        position = self._events.position(event)
        if isinstance(event, AliasEvent):
            return SourceSpot(position, self._spots[event.anchor or ""].below)
        if isinstance(event, MappingStartEvent):
            fields: dict[str, SourceSpot] = {}
            spot = self._named(event, SourceSpot(position, fields))
            self._fill_mapping(fields)
            return spot
        if isinstance(event, SequenceStartEvent):
            items: list[SourceSpot] = []
            spot = self._named(event, SourceSpot(position, items))
            self._fill_list(items)
            return spot
        assert isinstance(event, ScalarEvent)
        return self._named(event, SourceSpot(position))

    def _named(self, event: NodeEvent, spot: SourceSpot) -> SourceSpot:
        # Before the nodes inside it, because an inner anchor of the same name overrides it.
        if event.anchor is not None:
            self._spots[event.anchor] = spot
            if isinstance(event, ScalarEvent):
                self._scalars[event.anchor] = event
        return spot

    def _fill_list(self, found: list[SourceSpot]) -> None:
        while not isinstance(event := self._events.next(), CollectionEndEvent):
            found.append(self._spot(event))

    def _fill_mapping(self, found: dict[str, SourceSpot]) -> None:
        while not isinstance(event := self._events.next(), CollectionEndEvent):
            spot = self._spot(event)
            scalar = self._scalar(event)
            value = self._spot(self._events.next())
            if is_merge(scalar):
                _merge(found, value)
            else:
                found[key_of(scalar, self._schema)] = SourceSpot(spot.position, value.below)

    def _scalar(self, event: Event) -> ScalarEvent:
        if isinstance(event, AliasEvent):
            return self._scalars[event.anchor or ""]
        assert isinstance(event, ScalarEvent)
        return event


def _merge(found: dict[str, SourceSpot], value: SourceSpot) -> None:
    mappings = reversed(value.below) if isinstance(value.below, list) else [value]
    for mapping in mappings:
        assert isinstance(mapping.below, dict)
        found.update(mapping.below)
