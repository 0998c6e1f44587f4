"""Streams and their documents: bounds, text, trees, positions in the text, and items of lists.

Text is UTF-8, or UTF-16 with a byte order mark.

# part: a section of text that a parser sees as its whole input, and where it begins in its source
# spot: the position of one value, with the spots of the values inside it
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Protocol, TypeAlias

from moorage.api.documents.scalars import Schema
from moorage.api.errors import DocumentError
from moorage.api.field_path import MapKey, Segment

Tree: TypeAlias = "dict[str, Tree] | list[Tree] | str | int | float | bool | None"


class Origin(Protocol):
    """The text of a document."""

    @property
    def line(self) -> int:
        """The first line of the document."""

    @property
    def json(self) -> bytes | None:
        """The document's own bytes if they are JSON."""

    @property
    def yaml(self) -> str | None:
        """The document's own text, from the end of the one before, if it is YAML."""

    def locate(self, segments: tuple[Segment, ...]) -> Position:
        """Return the position of a field, or of its deepest existing ancestor."""


@dataclass(frozen=True, slots=True)
class Document:
    """A value read from a stream.

    tree        dicts, lists and scalars; a number that is not an integer is a NumberText
    source      the name of the stream
    index       number of the document in the stream, from 0; empty documents are not counted
    duplicates  keys that were set twice in one mapping; the tree has the last value
    within      the path of the tree in its document, () unless it was an item of a list
    """

    tree: Tree
    source: str
    index: int
    duplicates: tuple[Duplicate, ...]
    origin: Origin = field(repr=False, compare=False)
    within: tuple[Segment, ...] = ()

    @property
    def line(self) -> int:
        """The first line, from 1."""
        return self.locate(()).line if self.within else self.origin.line

    @property
    def reading(self) -> Any:
        """The object of the tree, if it was read together with its text; else None."""
        return None

    @property
    def raw(self) -> bytes | None:
        """The JSON text of exactly this tree, for a typed decoder; None for YAML and items."""
        return None if self.within else self.origin.json

    @property
    def text(self) -> str | None:
        """The YAML text of exactly this tree, with comments before it; None for JSON and items."""
        return None if self.within else self.origin.yaml

    def locate(self, segments: tuple[Segment, ...]) -> Position:
        """Return the position of a field, or of its deepest existing ancestor."""
        return self.origin.locate(self.within + segments)


def expand_lists(document: Document) -> Iterator[Document]:
    """Yield the objects of a list (`kind: List`, `kind: ResourceClaimList`), also of nested lists.

    Any other document is yielded unchanged. An item of a typed list without a type gets the list's
    apiVersion and its kind without `List`. Positions and duplicates of an item are those in the
    whole text.
    """
    tree = document.tree
    if not isinstance(tree, dict):
        yield document
        return
    items = list_items(tree)
    if items is None:
        yield document
        return
    for index, item in enumerate(items):
        yield from expand_lists(_item(document, with_type(item, tree), index))


def list_items(tree: dict[str, Tree]) -> list[Tree] | None:
    """Return the items if the object is a list."""
    kind = tree.get("kind")
    if not isinstance(kind, str) or not kind.endswith("List"):
        return None
    items = tree.get("items", False)
    if items is None:
        return []
    return items if isinstance(items, list) else None


def with_type(item: Tree, listed: dict[str, Tree]) -> Tree:
    """Return an item with the type that its list implies."""
    kind = str(listed["kind"]).removesuffix("List")
    if not isinstance(item, dict) or not kind:
        return item
    inherited: dict[str, Tree] = {}
    if not item.get("apiVersion") and "apiVersion" in listed:
        inherited["apiVersion"] = listed["apiVersion"]
    if not item.get("kind"):
        inherited["kind"] = kind
    return {**item, **inherited} if inherited else item


def _item(document: Document, tree: Tree, index: int) -> Document:
    here: tuple[Segment, ...] = ("items", index)
    inside = tuple(
        Duplicate(duplicate.segments[2:], duplicate.position)
        for duplicate in document.duplicates
        if duplicate.segments[:2] == here
    )
    return replace(document, tree=tree, duplicates=inside, within=document.within + here)


# --- positions ------------------------------------------------------------------------------------


class Position(NamedTuple):
    """A line and a column, in characters from 1."""

    line: int
    column: int


START = Position(1, 1)


class Duplicate(NamedTuple):
    """A mapping key that was set before; `position` is the later one, whose value won."""

    segments: tuple[Segment, ...]
    position: Position


class PlacedError(DocumentError):
    """Text that cannot be read, with its position: `source:line:column: fact`."""

    def __init__(self, source: str, position: Position | None, fact: str) -> None:
        super().__init__(source, position, fact)
        self.source = source
        self.position = position
        self.fact = fact

    def __str__(self) -> str:
        if self.position is None:
            return f"{self.source}: {self.fact}"
        return f"{self.source}:{self.position.line}:{self.position.column}: {self.fact}"


@dataclass(frozen=True, slots=True)
class SourceSpot:
    """The position of a value: of its key if it has one, else of its first character."""

    position: Position
    below: dict[str, SourceSpot] | list[SourceSpot] | None = None


@dataclass(frozen=True, slots=True)
class TextPart:
    """A section of text and the position of its first character."""

    text: str
    start: Position = START

    def position(self, line: int, column: int) -> Position:
        """Return the position in the source of a line and column of this part, from 0."""
        return shifted(self.start, line, column)

    @property
    def end(self) -> Position:
        """The position after the last character."""
        last_break = self.text.rfind("\n")
        return self.position(self.text.count("\n"), len(self.text) - last_break - 1)


def shifted(start: Position, line: int, column: int) -> Position:
    """Return the position a number of lines and columns, from 0, after a start."""
    if line == 0:
        return Position(start.line, start.column + column)
    return Position(start.line + line, column + 1)


def position_of(text: str, index: int) -> Position:
    """Return the position of a character of a text."""
    return TextPart(text[:index]).end


def find_position(root: SourceSpot, segments: tuple[Segment, ...]) -> Position:
    """Return the position of a field, or of its deepest existing ancestor."""
    spot = root
    for segment in segments:
        inside = _step(spot, segment)
        if inside is None:
            break
        spot = inside
    return spot.position


def _step(spot: SourceSpot, segment: Segment) -> SourceSpot | None:
    below = spot.below
    name = segment.name if isinstance(segment, MapKey) else segment
    if isinstance(below, dict) and isinstance(name, str):
        return below.get(name)
    if isinstance(below, list) and isinstance(name, int) and 0 <= name < len(below):
        return below[name]
    return None


# --- the stream -----------------------------------------------------------------------------------


DEPTH_CEILING = 200
"""The standard library's JSON decoder and our own functions recurse, so depth has a hard bound."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds on one stream of documents.

    bytes_max          length of the whole input
    documents_max      documents in it, empty ones included
    depth_max          lists and mappings inside one another
    nodes_max          values in all documents together, aliases counted as written out
    aliased_nodes_max  values of one document that come from aliases (Kubernetes' own bound)
    duplicates_max     duplicate keys reported per document; the rest is dropped
    directives_max     %TAG directives of one document
    """

    bytes_max: int = 64 * 1024 * 1024
    documents_max: int = 100_000
    depth_max: int = 100
    nodes_max: int = 5_000_000
    aliased_nodes_max: int = 400_000
    duplicates_max: int = 100
    directives_max: int = 100

    def __post_init__(self) -> None:
        if not 1 <= self.depth_max <= DEPTH_CEILING:
            raise ValueError(f"depth_max must be between 1 and {DEPTH_CEILING}: {self.depth_max}")


DEFAULT_LIMITS = Limits()


@dataclass(frozen=True, slots=True)
class DocumentStream:
    """The text of one input, its name, and the rules for reading it."""

    text: str
    source: str
    limits: Limits
    schema: Schema

    def fault(self, index: int, fact: str) -> PlacedError:
        """Return an error at a character of the text."""
        return PlacedError(self.source, position_of(self.text, index), fact)

    def check_count(self, documents: int, index: int) -> None:
        """Reject more documents than the limits allow; the last starts at a character."""
        if documents > self.limits.documents_max:
            raise self.fault(index, f"more than {self.limits.documents_max} documents")


class DecodedText(NamedTuple):
    """The text before the first error, ending with a complete document, and that error."""

    text: str
    fault: PlacedError | None = None


def decode_text(data: bytes, *, source: str) -> DecodedText:
    """Return the text of a stream, as far as it can be decoded."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return _decode(data, "utf-16", source)
    return _decode(data.removeprefix(codecs.BOM_UTF8), "utf-8", source)


def documents_before(text: str, index: int) -> str:
    """Return the documents that end before a character: up to the last separator line."""
    return text[: text.rfind("\n---", 0, index) + 1]


def _decode(data: bytes, encoding: str, source: str) -> DecodedText:
    try:
        return DecodedText(data.decode(encoding))
    except UnicodeDecodeError as error:
        sound = data[: error.start].decode(encoding)
        fact = f"byte 0x{data[error.start]:02x} is not {encoding.upper()}: {error.reason}"
        fault = PlacedError(source, position_of(sound, len(sound)), fact)
        return DecodedText(documents_before(sound, len(sound)), fault)
