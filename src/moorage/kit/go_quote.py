"""Strings as Go's `%q` prints them, which is how Kubernetes quotes names and values in messages."""

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
    """Return a string in double quotes, with unprintable characters escaped."""
    if text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    return '"' + "".join(map(_escaped, text)) + '"'


def go_quote_list(texts: Iterable[str]) -> str:
    """Return strings as `%q` prints a slice of them: `["a" "b"]`."""
    return f"[{' '.join(map(go_quote, texts))}]"


def _escaped(character: str) -> str:
    escape = _ESCAPES.get(character)
    if escape is not None:
        return escape
    if character.isprintable():
        return character
    code = ord(character)
    if code < 0x80:
        return f"\\x{code:02x}"
    if code in _STRAY_BYTES:
        return f"\\x{code & 0xFF:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
