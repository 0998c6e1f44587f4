"""One input: its bounds, its text, and how to read it.

Text is UTF-8, or UTF-16 with a byte order mark.
"""

from __future__ import annotations

import codecs
from dataclasses import dataclass
from typing import NamedTuple

from mooring.api.documents.document import PlacedError, position_of
from mooring.api.documents.scalars import Schema

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
    """

    bytes_max: int = 64 * 1024 * 1024
    documents_max: int = 100_000
    depth_max: int = 100
    nodes_max: int = 5_000_000
    aliased_nodes_max: int = 400_000
    duplicates_max: int = 100

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
