"""Text from outside, made fit for a picture: nothing that is not to be seen, and no overflow.

Names are set in a font whose characters all have one width, so their length can be told.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

LENGTH_MAX = 512  # of one name in a tooltip; Kubernetes' own are shorter
CHARACTER_WIDTH = 0.62  # of the font size; the widest of the fonts we ask for
_ODD = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
_ESCAPES = str.maketrans(
    {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;", "\n": "&#10;"}
)


def clean(text: str) -> str:
    """Return the text in one line, with a mark for each character that is not to be shown."""
    shown = text[:LENGTH_MAX] + ("…" if len(text) > LENGTH_MAX else "")
    if shown.isascii() and shown.isprintable():
        return shown
    return "".join("\ufffd" if unicodedata.category(each) in _ODD else each for each in shown)


def escaped(text: str) -> str:
    """Return the text for use between tags and in attributes."""
    return text.translate(_ESCAPES)


def fitted(text: str, width: int, font_size: int) -> str:
    """Return the clean text, with its middle left out if it is wider than there is room."""
    text = clean(text)
    room = int(width / (font_size * CHARACTER_WIDTH))
    if columns(text) <= room:
        return text
    if room <= 1:
        return "…" if room == 1 else ""
    tail = _taken(text[::-1], (room - 1) // 2)[::-1]
    head = _taken(text, room - 1 - columns(tail))
    return f"{head}…{tail}"


def columns(text: str) -> int:
    """Return how wide the text is, in characters of the font; those of other fonts may take two."""
    if text.isascii():
        return len(text)
    return sum(1 if each < "\u0250" or each == "…" else 2 for each in text)


def joined(parts: Sequence[str], width: int, font_size: int) -> str:
    """Return as many parts as there is room for, and how many there are besides."""
    text = ""
    for index, part in enumerate(map(clean, parts)):
        longer = f"{text} · {part}" if text else part
        left = len(parts) - index - 1
        more = f" · {left} more" if left else ""
        if (columns(longer) + columns(more)) * font_size * CHARACTER_WIDTH > width:
            return f"{text} · {left + 1} more" if text else fitted(part, width, font_size)
        text = longer
    return text


def _taken(text: str, room: int) -> str:
    """Return the beginning of the text that has room."""
    used = 0
    for index, each in enumerate(text):
        used += columns(each)
        if used > room:
            return text[:index]
    return text


def counted(number: int, noun: str) -> str:
    """Return a number of things in words: 1 device, 2,000 devices."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def listed(names: Sequence[str], limit: int) -> str:
    """Return some names, and how many more there are."""
    more = f", {len(names) - limit:,} more" if len(names) > limit else ""
    return ", ".join(names[:limit]) + more
