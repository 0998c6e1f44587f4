r"""Distinguishes JSON from YAML and reads a stream, as kubectl does; reads JSON itself.

0. One plain JSON object, which most input is, is decoded at once.
1. A stream that begins with `{"` or `{}`, spaces aside, is read as JSON: one value, or several.
2. If that fails, the stream is read as YAML from that document on, because `{"a": b}` is YAML too,
   and so is everything after a `---`. If it is neither, the JSON error is reported.
3. Everything else is YAML.

msgspec decodes a plain JSON object several times as fast as the careful reader, but detects neither
duplicates nor limits. Counting bytes, which is fast too, replaces both:

1. A colon follows each key, and is otherwise only in strings. Encoded again, the tree has the same
   strings, but each key once; so if the number of colons is the same, no key came twice.
2. Of the brackets alone, each removal of all `{}` and `[]` removes the innermost level. If some
   remain, there are brackets in strings; then, as in every other doubt, the careful reader decides.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import islice
from json import JSONDecodeError, JSONDecoder
from typing import NamedTuple

import msgspec

from moorage.api.documents.document import (
    DEFAULT_LIMITS,
    START,
    Document,
    DocumentStream,
    Duplicate,
    Limits,
    PlacedError,
    Position,
    TextPart,
    Tree,
    decode_text,
    shifted,
)
from moorage.api.documents.json_scan import (
    JsonPositions,
    check_bounds,
    has_surely_few_values,
    is_surely_bounded,
    json_duplicates,
    may_hold_long_number,
)
from moorage.api.documents.scalars import CORE, NumberText, ScalarRefusedError, Schema
from moorage.api.documents.yaml_reader import yaml_documents
from moorage.api.field_path import Segment

_SPACE = re.compile(r"\s*+")
# To a YAML reader `...` ends the document, and so it does here.
_SPACE_AFTER_JSON = re.compile(r"\s*+(?:\.\.\.(?!\S)\s*+)?")
_JSON_OBJECT = re.compile(r'\{\s*+["}]')
# What YAML allows after a JSON value: a separator, a comment, `{a: b}`.
_YAML_AFTER_JSON = ("---", "#", "{")


def read(
    data: bytes, *, source: str, limits: Limits = DEFAULT_LIMITS, schema: Schema = CORE
) -> Iterator[Document]:
    """Yield the documents of a stream of YAML or JSON as they are read.

    Documents before a faulty one are yielded before DocumentError is raised.
    """
    if len(data) > limits.bytes_max:
        fact = f"{len(data)} bytes are more than the {limits.bytes_max} that are read"
        raise PlacedError(source, None, fact)
    if document := plain_document(data, source=source, limits=limits):
        yield document
        return
    text, fault = decode_text(data, source=source)
    stream = DocumentStream(text, source, limits, schema)
    start = _skip(_SPACE, text, 0)
    if _JSON_OBJECT.match(text, start):
        yield from _json_documents(stream, start)
    elif start < len(text):
        yield from yaml_documents(stream, start=0, count=0)
    if fault is not None:
        raise fault


def _json_documents(stream: DocumentStream, start: int) -> Iterator[Document]:
    reader = JsonReader(stream)
    count = 0
    while _JSON_OBJECT.match(stream.text, start):
        try:
            document, end = reader.read(start, count)
        except NotJsonError as error:
            yield from _as_yaml(stream, start, count, error)
            return
        count += 1
        stream.check_count(count, start)
        yield document
        start = _skip(_SPACE_AFTER_JSON, stream.text, end)
    if stream.text.startswith(_YAML_AFTER_JSON, start):
        yield from yaml_documents(stream, start=start, count=count)
    elif start < len(stream.text):
        fact = f"found {stream.text[start]!r} after a JSON value: expected `{{` or a `---` line"
        raise stream.fault(start, fact)


def _as_yaml(
    stream: DocumentStream, start: int, count: int, error: NotJsonError
) -> Iterator[Document]:
    """Read text that is not JSON as YAML; if the first document fails, raise the better error."""
    if error.is_final:
        raise error.fault
    documents = yaml_documents(stream, start=start, count=count)
    try:
        first = next(documents)
    except PlacedError as yaml_fault:
        raise error.fault if error.is_placed else yaml_fault from None
    yield first
    yield from documents


def _skip(pattern: re.Pattern[str], text: str, start: int) -> int:
    found = pattern.match(text, start)
    return found.end() if found else start


# --- JSON -----------------------------------------------------------------------------------------

# The pattern matches whole escapes, so that the `u` of `\\\\ud800` is not a surrogate.
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
    yaml: None = None

    @property
    def line(self) -> int:
        """The first line of the document."""
        return self.start_position.line

    @property
    def json(self) -> bytes:
        """The document's own bytes."""
        return self.text[self.start : self.end].encode()

    def locate(self, segments: tuple[Segment, ...]) -> Position:
        """Return the position of a field, or of its deepest existing ancestor."""
        return self._position(self._places.find(segments))

    def duplicates(self, limit: int) -> tuple[Duplicate, ...]:
        """Return the first duplicate keys."""
        found = json_duplicates(self.text, self.start, self.end)
        return tuple(
            Duplicate(duplicate.segments, self._position(duplicate.start))
            for duplicate in islice(found, limit)
        )

    @cached_property
    def _places(self) -> JsonPositions:
        return JsonPositions(self.text, self.start)

    @cached_property
    def _line_starts(self) -> array[int]:
        breaks = re.compile("\n").finditer(self.text, self.start, self.end)
        return array("q", [self.start, *(found.end() for found in breaks)])

    def _position(self, index: int) -> Position:
        line = bisect_right(self._line_starts, index) - 1
        return shifted(self.start_position, line, index - self._line_starts[line])


class NotJsonError(Exception):
    """The text is not JSON; `is_final` if it cannot be YAML either."""

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

    def __init__(self, stream: DocumentStream) -> None:
        self._stream = replace(stream, text=_without_lone_surrogates(stream.text))
        self._is_bounded = is_surely_bounded(self._stream)
        self._has_duplicates = False
        self._nodes = 0
        # The last position: counting lines from the top for each document would be quadratic.
        self._last = (0, START)
        self._decoder = JSONDecoder(
            object_pairs_hook=self._object, parse_float=NumberText, parse_constant=_refuse
        )

    def read(self, start: int, index: int) -> JsonRead:
        """Read the value that starts at a character, as the document with this number."""
        self._has_duplicates = False
        tree, end = self._decode(start)
        origin = JsonOrigin(self._stream.text, start, end, self._position(start))
        limit = self._stream.limits.duplicates_max if self._has_duplicates else 0
        duplicates = origin.duplicates(limit)
        return JsonRead(Document(tree, self._stream.source, index, duplicates, origin), end)

    def _decode(self, start: int) -> tuple[Tree, int]:
        stream = self._stream
        if not self._is_bounded:
            self._nodes = check_bounds(stream, start, self._nodes)
        try:
            tree, end = self._decoder.raw_decode(stream.text, start)
        except JSONDecodeError as error:
            fault = stream.fault(error.pos, _fact(error))
            raise NotJsonError(fault, is_final=_is_cut_off(error)) from None
        except ScalarRefusedError as error:
            fault = stream.fault(start, str(error))
            raise NotJsonError(fault, is_final=False, is_placed=False) from None
        except RecursionError:
            raise stream.fault(start, "nested too deep for the stack that is left") from None
        return tree, end

    def _position(self, index: int) -> Position:
        last, position = self._last
        found = TextPart(self._stream.text[last:index], position).end
        self._last = (index, found)
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


# --- plain JSON -----------------------------------------------------------------------------------

PLAIN_MAX_BYTES = 1024 * 1024
REMEMBERED_MAX_BYTES = 4096

decode_plain = msgspec.json.Decoder(float_hook=NumberText).decode
_encode = msgspec.json.Encoder(enc_hook=float).encode  # NumberText is not a float to msgspec
_NOT_BRACKETS = bytes(code for code in range(256) if code not in b"[]{}")
_OBJECT_START = re.compile(rb'\{[ \t\r\n]*+"')
# Halves of characters, which Go replaces, and a colon in disguise, which would be miscounted.
_ODD_ESCAPES = (b"\\ud", b"\\uD", b"\\u003a", b"\\u003A")


def plain_document(data: bytes, *, source: str, limits: Limits) -> Document | None:
    """Return the only document of the bytes, or None if the careful reader must decide."""
    if len(data) > PLAIN_MAX_BYTES or not _OBJECT_START.match(data):
        return None
    if not has_surely_few_values(data, limits.nodes_max) or may_hold_long_number(data):
        return None
    if (tree := plain_object(data, limits.depth_max)) is None:
        return None
    text = data.decode()
    return Document(tree, source, 0, (), JsonOrigin(text, 0, len(text), START))


def plain_object(data: bytes, depth_max: int) -> dict[str, Tree] | None:
    """Return the object that JSON text is; None if some key may be there twice, and in doubt.

    The caller has made sure that no number is too long.
    """
    if b"\\u" in data and any(escape in data for escape in _ODD_ESCAPES):
        return None
    if not is_shallow(data, depth_max):
        return None
    try:
        tree = decode_plain(data)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None
    return tree if isinstance(tree, dict) and has_each_key_once(data, tree) else None


def has_each_key_once(data: bytes, tree: Tree) -> bool:
    """Return whether no map in JSON text, of which this is the tree, has a key twice."""
    return _encode(tree).count(b":") == data.count(b":")


def has_plain_bounds(data: bytes, limits: Limits = DEFAULT_LIMITS) -> bool:
    """Return whether bytes begin like a JSON object and surely exceed no limit."""
    return (
        data.startswith(b'{"')
        and has_surely_few_values(data, limits.nodes_max)
        and not may_hold_long_number(data)
        and is_shallow(data, limits.depth_max)
    )


def is_shallow(data: bytes, depth_max: int) -> bool:
    """Return whether JSON text is nested at most so deep; in doubt, it is not."""
    brackets = data.translate(None, _NOT_BRACKETS)
    if len(brackets) <= REMEMBERED_MAX_BYTES:
        return _close_again(brackets, depth_max)
    return _close(brackets, depth_max)


def _close(brackets: bytes, depth_max: int) -> bool:
    """Return whether all brackets close within a depth."""
    for _ in range(depth_max):
        if not brackets:
            return True
        # The points keep brackets that become empty only now for the next round.
        brackets = brackets.replace(b"{}", b".").replace(b"[]", b".").replace(b".", b"")
    return not brackets


# Objects of a kind mostly have the same brackets.
_close_again = lru_cache(maxsize=256)(_close)
