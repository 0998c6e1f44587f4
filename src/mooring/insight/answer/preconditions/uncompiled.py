"""CEL expressions that do not compile: what was probably meant."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from mooring.insight.messages import nearest

# Amounts and versions are compared by a function, not by an operator.
_COMPARED: Final = re.compile(r'([\w.\[\]"/-]+)\s*(>=|<=|>|<)\s*((?:quantity|semver)\("[^"]*"\))')
_COMPARED_TEXT: Final = re.compile(r'(device\.capacity\[[^\]]+\]\.\w+)\s*(>=|<=|>|<)\s*"([^"]*)"')
_MEMBERS: Final = ("attributes", "capacity", "driver", "allowMultipleAllocations")
_FUNCTIONS: Final = ("device", "quantity", "semver", "isQuantity", "isSemver")
# What people write by habit from other languages.
_OPERATORS: Final = (
    (r"(?<![=!<>])=(?![=~])", "=="),
    (r"===", "=="),
    (r"(?<!&)&(?!&)", "&&"),
    (r"(?<!\|)\|(?!\|)", "||"),
    (r"\band\b", "&&"),
    (r"\bor\b", "||"),
    (r"\bnot\b\s*", "!"),
    (r"<>", "!="),
    (r"\bTrue\b", "true"),
    (r"\bFalse\b", "false"),
)


def difference(old: str, new: str) -> tuple[str, str]:
    """Return the words in which two texts differ."""
    before, after = old.split(), new.split()
    start = _common(before, after)
    end = _common(before[start:][::-1], after[start:][::-1])
    return " ".join(before[start : len(before) - end]), " ".join(after[start : len(after) - end])


def _common(first: Sequence[str], second: Sequence[str]) -> int:
    """Return how many words two texts begin with alike."""
    pairs = enumerate(zip(first, second, strict=False))
    return next((number for number, (a, b) in pairs if a != b), min(len(first), len(second)))


def corrected(written: str, detail: str) -> str:
    """Return an expression without the usual mistakes; strings are left as they are."""
    if "no matching overload" in detail:
        compared = _COMPARED.sub(r"\1.compareTo(\3) \2 0", written)
        return _COMPARED_TEXT.sub(r'\1.compareTo(quantity("\3")) \2 0', compared)
    for pattern, known in (
        (r"undeclared reference to '(\w+)'", _FUNCTIONS),
        (r"undefined field '(\w+)'", _MEMBERS),
    ):
        if found := re.search(pattern, detail):
            meant = nearest(found[1], known)
            if meant is not None:
                return re.sub(rf"\b{found[1]}\b", meant, written)
    parts = re.split(r"(\"[^\"]*\"|'[^']*')", written)
    for index in range(0, len(parts), 2):
        for pattern, replacement in _OPERATORS:
            parts[index] = re.sub(pattern, replacement, parts[index])
    return "".join(parts)
