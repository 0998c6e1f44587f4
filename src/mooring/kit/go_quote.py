"""Texts as Go's `%q` prints them: messages of Kubernetes quote names and values so."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

_ESCAPES: Final = {
    "\a": r"\a", "\b": r"\b", "\f": r"\f", "\n": r"\n", "\r": r"\r", "\t": r"\t", "\v": r"\v",
    "\\": r"\\", '"': r"\"",
}  # fmt: skip
# Bytes that are not UTF-8 are kept in strings as Python's surrogateescape keeps them.
_STRAY_BYTES: Final = range(0xDC80, 0xDD00)


def go_quote(text: str) -> str:
    """Return a text in double quotes, with what cannot be seen escaped."""
    if text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    return '"' + "".join(map(_escaped, text)) + '"'


def go_quote_list(texts: Iterable[str]) -> str:
    """Return texts as `%q` prints a slice of strings: `["a" "b"]`."""
    return f"[{' '.join(map(go_quote, texts))}]"


def _escaped(character: str) -> str:
    known = _ESCAPES.get(character)
    if known is not None:
        return known
    if character.isprintable():
        return character
    code = ord(character)
    if code < 0x80:
        return f"\\x{code:02x}"
    if code in _STRAY_BYTES:
        return f"\\x{code & 0xFF:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
