"""Builds the trees of a YAML stream from the events of a parser.

The stack of open collections is our own, so the limits bound the depth, not Python's stack. Each
event does one of four things:

1. a scalar (or an alias of one) in a mapping that expects a key becomes that key;
2. the start of a collection opens a frame;
3. any other node (scalar, alias, end of a collection) is a value and goes into the top frame,
4. or, if no frame is open, is the tree of the document.

# frame: a list or mapping that is still being filled
# anchor: a node with a name (&name), copied for every alias (*name)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from sys import intern
from typing import NamedTuple, Protocol

from yaml.error import MarkedYAMLError, YAMLError
from yaml.events import (
    AliasEvent,
    CollectionEndEvent,
    CollectionStartEvent,
    DocumentEndEvent,
    DocumentStartEvent,
    Event,
    MappingStartEvent,
    ScalarEvent,
    StreamEndEvent,
)

from moorage.api.documents.document import Duplicate, Limits, PlacedError, Position, TextPart, Tree
from moorage.api.documents.scalars import (
    ScalarRefusedError,
    Schema,
    check_collection_tag,
    excerpt,
    is_merge,
    key_of,
    value_of,
)
from moorage.api.field_path import Segment


class Composed(NamedTuple):
    """A tree, its duplicate keys and the events that frame it."""

    tree: Tree
    duplicates: tuple[Duplicate, ...]
    start: Event
    root: Event
    end: Event


class _Anchor:
    """A named node; `size` counts its values and `height` the levels of collections in it."""

    __slots__ = ("event", "height", "is_open", "size", "value")

    def __init__(self, event: Event, value: Tree, *, size: int, is_open: bool) -> None:
        self.event = event
        self.value = value
        self.size = size
        self.height = 0
        self.is_open = is_open


class _Frame:
    """An open collection.

    key       of a mapping: the key of the next value, None while a key is expected
    merges    the next value is merged into the mapping
    merged    keys from a merge, which may be set again without being duplicates
    peak      the greatest depth reached below
    """

    __slots__ = ("anchor", "collection", "key", "merged", "merges", "peak")

    def __init__(self, collection: Tree, anchor: _Anchor | None, depth: int) -> None:
        self.collection = collection
        self.anchor = anchor
        self.key: str | None = None
        self.merges = False
        self.merged: set[str] = set()
        self.peak = depth

    @property
    def expects_key(self) -> bool:
        return self.key is None and not self.merges and type(self.collection) is dict


class TreeComposer:
    """The documents of one part of a stream, composed one at a time."""

    def __init__(self, part: TextPart, *, source: str, schema: Schema, limits: Limits) -> None:
        self._events = Events(part, source=source)
        self._schema = schema
        self._limits = limits
        self._nodes = 0
        self._begin()

    def _begin(self) -> None:
        self._stack: list[_Frame] = []
        self.anchors: dict[str, _Anchor] = {}
        self._aliased_nodes = 0
        self._duplicates: list[Duplicate] = []

    def documents(self) -> Iterator[Composed]:
        """Yield every document, empty ones too."""
        while not isinstance(event := self._events.next(), StreamEndEvent):
            if isinstance(event, DocumentStartEvent):
                yield self._document(event)

    def _document(self, start: Event) -> Composed:
        self._begin()
        root = self._events.next()
        tree = self._compose(root)
        end = self._events.next()
        assert isinstance(end, DocumentEndEvent)
        return Composed(tree, tuple(self._duplicates), start, root, end)

    def _compose(self, event: Event) -> Tree:
        """Return the tree that begins with an event."""
        stack, following = self._stack, self._events.next
        while True:
            if stack and stack[-1].expects_key and not isinstance(event, CollectionEndEvent):
                self._key(stack[-1], event)
            elif isinstance(event, CollectionStartEvent):
                self._open(event)
            else:
                value = self._value(event)
                if not stack:
                    return value
                self._put(stack[-1], value, event)
            event = following()

    # Values

    def _value(self, event: Event) -> Tree:
        if isinstance(event, ScalarEvent):
            return self._scalar(event)
        if isinstance(event, AliasEvent):
            return self._alias(event)
        return self._close()

    def _scalar(self, event: ScalarEvent) -> Tree:
        try:
            value = value_of(event, self._schema)
        except ScalarRefusedError as error:
            raise self._events.fault(event, str(error)) from None
        self._count(event)
        if event.anchor is not None:
            self.anchors[event.anchor] = _Anchor(event, value, size=1, is_open=False)
        return value

    def _open(self, event: CollectionStartEvent) -> None:
        is_mapping = isinstance(event, MappingStartEvent)
        try:
            check_collection_tag(event.tag, "map" if is_mapping else "seq")
        except ScalarRefusedError as error:
            raise self._events.fault(event, str(error)) from None
        self._count(event)
        depth = self._check_depth(event, 1)
        collection: Tree = {} if is_mapping else []
        anchor = None
        if event.anchor is not None:
            # The nodes counted so far; closing turns this into the anchor's own size.
            anchor = _Anchor(event, collection, size=self._nodes - 1, is_open=True)
            self.anchors[event.anchor] = anchor
        self._stack.append(_Frame(collection, anchor, depth))

    def _close(self) -> Tree:
        frame = self._stack.pop()
        depth = len(self._stack)
        if self._stack:
            self._stack[-1].peak = max(self._stack[-1].peak, frame.peak)
        if frame.anchor is not None:
            frame.anchor.size = self._nodes - frame.anchor.size
            frame.anchor.height = frame.peak - depth
            frame.anchor.is_open = False
        return frame.collection

    def _alias(self, event: AliasEvent) -> Tree:
        anchor = self._anchored(event)
        self._aliased_nodes += anchor.size
        if self._aliased_nodes > self._limits.aliased_nodes_max:
            raise self._events.fault(
                event,
                "document contains excessive aliasing: "
                f"more than {self._limits.aliased_nodes_max} values come from aliases",
            )
        self._count(event, anchor.size)
        depth = self._check_depth(event, anchor.height)
        if self._stack:
            self._stack[-1].peak = max(self._stack[-1].peak, depth)
        # A copy, as in Kubernetes: changing one must not change the other.
        return _copy(anchor.value)

    def _anchored(self, event: AliasEvent) -> _Anchor:
        name = event.anchor or ""
        anchor = self.anchors.get(name)
        if anchor is None:
            raise self._events.fault(event, f"unknown anchor '{excerpt(name)}' referenced")
        if anchor.is_open:
            raise self._events.fault(event, f"anchor '{excerpt(name)}' value contains itself")
        return anchor

    def _count(self, event: Event, size: int = 1) -> None:
        self._nodes += size
        if self._nodes > self._limits.nodes_max:
            raise self._events.fault(event, f"more than {self._limits.nodes_max} values")

    def _check_depth(self, event: Event, levels: int) -> int:
        depth = len(self._stack) + levels
        if depth > self._limits.depth_max:
            raise self._events.fault(
                event, f"nested more than {self._limits.depth_max} levels deep"
            )
        return depth

    # Into the frame on top

    def _put(self, frame: _Frame, value: Tree, event: Event) -> None:
        collection = frame.collection
        if frame.merges:
            self._merge(frame, value, event)
        elif isinstance(collection, dict):
            assert frame.key is not None
            collection[frame.key] = value
            frame.key = None
        else:
            assert isinstance(collection, list)
            collection.append(value)

    def _key(self, frame: _Frame, event: Event) -> None:
        """Make a node the key of the value that follows."""
        node = self._anchored(event).event if isinstance(event, AliasEvent) else event
        if isinstance(node, ScalarEvent):
            self._take_key(frame, node, event)
            return
        fact = f"a {'mapping' if isinstance(node, MappingStartEvent) else 'list'}"
        fact += " cannot be the key of a mapping"
        if self._events.text_around(event) == "{{":
            fact += "; is this a template that was not rendered?"
        raise self._events.fault(event, fact)

    def _take_key(self, frame: _Frame, event: ScalarEvent, place: Event) -> None:
        """Make a scalar the key of the value that follows; its place may be an alias."""
        if is_merge(event):
            frame.merges = True
            return
        try:
            key = intern(key_of(event, self._schema))
        except ScalarRefusedError as error:
            raise self._events.fault(place, str(error)) from None
        frame.key = key
        assert isinstance(frame.collection, dict)
        if key in frame.collection:
            self._note_duplicate(frame, key, place)
        if event.anchor is not None and event is place:
            # For an alias: the same scalar, this time as a value.
            self._scalar(event)

    def _note_duplicate(self, frame: _Frame, key: str, place: Event) -> None:
        if key in frame.merged:
            frame.merged.discard(key)
        elif len(self._duplicates) < self._limits.duplicates_max:
            self._duplicates.append(Duplicate(self._path(), self._events.position(place)))

    def _path(self) -> tuple[Segment, ...]:
        found: list[Segment] = []
        for frame in self._stack:
            if isinstance(frame.collection, list):
                found.append(len(frame.collection))
            elif frame.key is not None:
                found.append(frame.key)
        return tuple(found)

    def _merge(self, frame: _Frame, value: Tree, event: Event) -> None:
        """Set the keys of one mapping, or of several, of which the earlier ones win.

        As in Kubernetes, the order of the text decides: keys before `<<` are overwritten.
        """
        frame.merges = False
        several = isinstance(value, list) and not isinstance(event, AliasEvent)
        mappings = reversed(value) if several and isinstance(value, list) else [value]
        for mapping in mappings:
            if not isinstance(mapping, dict):
                raise self._events.fault(
                    event, "map merge requires map or sequence of maps as the value"
                )
            assert isinstance(frame.collection, dict)
            frame.collection.update(mapping)
            frame.merged.update(mapping)


def _copy(tree: Tree) -> Tree:
    if isinstance(tree, dict):
        return {key: _copy(value) for key, value in tree.items()}
    if isinstance(tree, list):
        return [_copy(value) for value in tree]
    return tree


# --- events, from libyaml's parser if available, else PyYAML's ------------------------------------


class Parser(Protocol):
    """A source of events."""

    def get_event(self) -> Event | None:
        """Return the next event, None after the last."""


def _fastest_parser() -> Callable[[str], Parser]:
    try:
        from yaml._yaml import CParser
    except ImportError:
        from yaml import SafeLoader

        return SafeLoader
    return CParser


class Events:
    """The events of one part of a stream, with their places in the stream."""

    new_parser: Callable[[str], Parser] = staticmethod(_fastest_parser())

    def __init__(self, part: TextPart, *, source: str) -> None:
        self.part = part
        self._source = source
        self._parser = self.new_parser(part.text)

    def next(self) -> Event:
        """Return the next event."""
        try:
            event = self._parser.get_event()
        except YAMLError as error:
            raise syntax_fault(error, self.part, self._source) from None
        assert event is not None, "read beyond the end of the stream"
        return event

    def position(self, event: Event) -> Position:
        """Return the position of an event."""
        mark = event.start_mark
        assert mark is not None
        return self.part.position(mark.line, mark.column)

    def text_around(self, event: Event) -> str:
        """Return the first character of an event and the one before it."""
        mark = event.start_mark
        assert mark is not None
        return self.part.text[max(mark.index - 1, 0) : mark.index + 1]

    def fault(self, event: Event, fact: str) -> PlacedError:
        """Return an error at the position of an event."""
        return PlacedError(self._source, self.position(event), fact)


class _Mark(Protocol):
    index: int
    line: int
    column: int


def syntax_fault(error: YAMLError, part: TextPart, source: str) -> PlacedError:
    """Return a parser's error with its position."""
    if not isinstance(error, MarkedYAMLError) or error.problem_mark is None:
        return PlacedError(source, None, " ".join(str(error).split()))
    problem, mark, context = error.problem or "", error.problem_mark, error.context_mark
    if "unexpected end of stream" in problem and context is not None:
        # The position of the open quote helps more than the position of the end.
        return PlacedError(source, _mark_position(context, part), "a quoted text is not closed")
    place = _mark_position(mark, part)
    if "cannot start any token" in problem:
        return PlacedError(source, place, _bad_token(part.text[mark.index : mark.index + 1]))
    words = ["unexpected end:"] if mark.index >= len(part.text.rstrip()) else []
    words += [problem, error.context or ""]
    if context is not None and (line := _mark_position(context, part).line) != place.line:
        words.append(f"that starts on line {line}")
    return PlacedError(source, place, " ".join(word for word in words if word))


def _bad_token(character: str) -> str:
    if character == "\t":
        return "found a tab where only spaces may be: indent with spaces"
    return f"found character {character!r} that cannot start any token: quote the text"


def _mark_position(mark: _Mark, part: TextPart) -> Position:
    # libyaml assumes a line break at the end.
    is_beyond = mark.index >= len(part.text)
    return part.end if is_beyond else part.position(mark.line, mark.column)
