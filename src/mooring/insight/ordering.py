"""Names in the order that people expect: gpu-9 before gpu-10."""

from __future__ import annotations

import re

_DIGITS = re.compile(r"([0-9]+)")

Part = str | tuple[int, str]


def natural(text: str) -> tuple[list[Part], str]:
    """Return what to sort a name by; the name itself comes last, to tell 1 from 01."""
    parts: list[Part] = []
    for index, part in enumerate(_DIGITS.split(text)):
        digits = part.lstrip("0")
        # By length first, then by digits: a number may be too long to be read as one.
        parts.append((len(digits), digits) if index % 2 else part)
    return parts, text
