"""Values as messages and formatted strings show them, which is as Go prints them."""

from __future__ import annotations

from typing import Any, Final

from mooring.cel.lang.numbers import double_text
from mooring.cel.lang.values import Optional, TypeValue, key_value

_ESCAPES: Final = {
    "\a": r"\a", "\b": r"\b", "\f": r"\f", "\n": r"\n", "\r": r"\r", "\t": r"\t", "\v": r"\v",
    "\\": r"\\", '"': r"\"",
}  # fmt: skip
# Bytes that are no UTF-8 are kept in strings as Python's surrogateescape keeps them.
_STRAY_BYTES: Final = range(0xDC80, 0xDD00)


def quoted(text: str) -> str:
    """Return the text between double quotes, with what cannot be seen escaped."""
    if text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    return '"' + "".join(map(_escaped, text)) + '"'


def shown(value: Any) -> str:
    """Return a value as error messages show it."""
    match value:
        case None:
            return "0"
        case bool():
            return "true" if value else "false"
        case int():
            return str(int(value))
        case float():
            return double_text(value)
        case bytes():
            return f"[{' '.join(map(str, value))}]"
        case list() | tuple():
            return f"[{', '.join(map(shown, value))}]"
        case dict():
            entries = (f"{shown(key_value(key))}: {shown(item)}" for key, item in value.items())
            return f"{{{', '.join(entries)}}}"
        case Optional():
            return f"optional({shown(value.value)})" if value.has_value else "optional.none()"
        case TypeValue():
            return value.name
        case _:
            return str(value)


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
