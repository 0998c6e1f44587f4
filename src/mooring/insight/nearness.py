"""Did you mean …? The name that is most like another."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import SequenceMatcher
from typing import Final

LIKENESS_MIN: Final = 0.6
NAMES_TRIED_MAX: Final = 2000


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that is most like the given one, if any is; capitals do not count."""
    best, best_likeness = None, LIKENESS_MIN
    for candidate in sorted(set(known))[:NAMES_TRIED_MAX]:
        likeness = _likeness(name.lower(), candidate.lower())
        if candidate != name and likeness > best_likeness:
            best, best_likeness = candidate, likeness
    return best


def _likeness(a: str, b: str) -> float:
    matcher = SequenceMatcher(None, a, b, autojunk=False)
    # The quick estimates are upper bounds: most names are out after them.
    if min(matcher.real_quick_ratio(), matcher.quick_ratio()) <= LIKENESS_MIN:
        return 0.0
    return matcher.ratio()
