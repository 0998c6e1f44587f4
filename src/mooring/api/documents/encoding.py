"""From bytes to text: UTF-8, or UTF-16 that announces itself."""

from __future__ import annotations

import codecs
from typing import NamedTuple

from mooring.api.documents.places import PlacedError, position_of


class Decoded(NamedTuple):
    """The text before the first fault, ending with a whole document, and that fault."""

    text: str
    fault: PlacedError | None = None


def decode(data: bytes, *, source: str) -> Decoded:
    """Return the text of a stream, as far as it is text."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return _decode(data, "utf-16", source)
    return _decode(data.removeprefix(codecs.BOM_UTF8), "utf-8", source)


def before(text: str, index: int) -> str:
    """Return the documents that end before a character: all up to the last separator line."""
    return text[: text.rfind("\n---", 0, index) + 1]


def _decode(data: bytes, encoding: str, source: str) -> Decoded:
    try:
        return Decoded(data.decode(encoding))
    except UnicodeDecodeError as error:
        sound = data[: error.start].decode(encoding)
        fact = f"byte 0x{data[error.start]:02x} is not {encoding.upper()}: {error.reason}"
        fault = PlacedError(source, position_of(sound, len(sound)), fact)
        return Decoded(before(sound, len(sound)), fault)
