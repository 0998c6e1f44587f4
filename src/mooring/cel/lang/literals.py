"""What literals stand for.

The tokenizer has seen to the form, so what is left to refuse is what cannot be said: numbers that
do not fit, code points that do not exist, `\\u` in bytes.
"""

from __future__ import annotations

import re
from math import isinf
from typing import Final

from mooring.cel.lang.values import INT_MAX, INT_MIN, UINT_MAX, UInt

# More digits fit no number of 64 bits; Python would take long, or refuse, to read them.
_DIGITS_MAX: Final = 20

_ESCAPE = re.compile(r"\\(?:[xX](..)|u(....)|U(........)|([0-3]..)|(.))", re.DOTALL)
_SIMPLE: Final = dict(zip("abfnrtv", "\a\b\f\n\r\t\v", strict=True))


class LiteralError(ValueError):
    """A literal that stands for nothing."""


def parse_int(text: str) -> int:
    """Return the number of `123`, `-123`, `0xff`, `-0xff`."""
    value = _whole(text.removeprefix("-"))
    if value is not None and text.startswith("-"):
        value = -value
    if value is None or not INT_MIN <= value <= INT_MAX:
        raise LiteralError("invalid int literal")
    return value


def parse_uint(text: str) -> UInt:
    """Return the number of `123u`, `0xffu`."""
    value = _whole(text[:-1])
    if value is None or value > UINT_MAX:
        raise LiteralError("invalid uint literal")
    return UInt(value)


def parse_double(text: str) -> float:
    """Return the number of `1.5`, `-.5`, `1e3`; what is too small is 0."""
    value = float(text)
    if isinf(value):
        raise LiteralError("invalid double literal")
    return value


def parse_string(text: str) -> str:
    """Return the text of a string literal in any of its forms."""
    is_raw, body = _unquote(text)
    if is_raw or "\\" not in body:
        return body
    return _ESCAPE.sub(_character, body)


def parse_bytes(text: str) -> bytes:
    """Return the bytes of `b"..."`; `\\x` and octal escapes are bytes, all else is UTF-8."""
    is_raw, body = _unquote(text[1:])
    if is_raw or "\\" not in body:
        return body.encode(errors="surrogatepass")
    out, position = bytearray(), 0
    for match in _ESCAPE.finditer(body):
        out += body[position : match.start()].encode(errors="surrogatepass")
        out += _byte(match)
        position = match.end()
    return bytes(out + body[position:].encode(errors="surrogatepass"))


def _whole(text: str) -> int | None:
    """Return a number without sign, or None if it has too many digits."""
    is_hex = text.startswith("0x")
    digits = (text[2:] if is_hex else text).lstrip("0")
    if len(digits) > _DIGITS_MAX:
        return None
    return int(digits or "0", 16 if is_hex else 10)


def _unquote(text: str) -> tuple[bool, str]:
    """Return whether a literal is raw, and what is between its quotes; lines end with \\n."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    is_raw = text[0] in "rR"
    if is_raw:
        text = text[1:]
    width = 3 if len(text) >= 6 and text.startswith(("'''", '"""')) else 1
    return is_raw, text[width:-width]


def _character(match: re.Match[str]) -> str:
    """Return the character of an escape in a string."""
    code = _code_point(match)
    if code is None:
        return _SIMPLE.get(match[5], match[5])
    if code > 0x10FFFF or 0xD800 <= code < 0xE000:
        raise LiteralError("invalid unicode code point")
    return chr(code)


def _byte(match: re.Match[str]) -> bytes:
    """Return the byte of an escape in bytes."""
    if match[2] or match[3]:
        raise LiteralError("unable to unescape string")
    code = _code_point(match)
    return _SIMPLE.get(match[5], match[5]).encode() if code is None else bytes((code,))


def _code_point(match: re.Match[str]) -> int | None:
    """Return the number that an escape gives, or None for one like `\\n`."""
    if octal := match[4]:
        return int(octal, 8)
    digits = match[1] or match[2] or match[3]
    return int(digits, 16) if digits else None
