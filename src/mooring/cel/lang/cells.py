"""Cells: the values at the end of constant paths, such as `device.attributes["a"].b`.

An expression that is evaluated for many values of a variable reads the same few paths of each.
Who evaluates it may keep the values of a path together, in a column, and code for many evaluations
then reads the columns and never looks at the variable. Which paths may be kept so is a property of
the variable, and declared by patterns.

Wherever a pattern fits, two things hold for all values of the variable: every key but the last
leads to a map, and in a column ABSENT stands where the last key leads nowhere.

# path: the name of a variable and keys that follow it; the name alone is the variable itself
# pattern: a path in which None stands for any key
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import takewhile

from mooring.cel.lang.attributes import Qualifier

Path = tuple[str, ...]
Pattern = tuple[str | None, ...]


def longest_cell(
    variable: str, qualifiers: Sequence[Qualifier], patterns: Iterable[Pattern]
) -> Path | None:
    """Return the longest path that the qualifiers begin with and a pattern fits."""
    constant = takewhile(lambda q: q.computed is None and type(q.key) is str, qualifiers)
    path = (variable, *(q.key for q in constant))
    lengths = [len(pattern) for pattern in patterns if _fits(pattern, path)]
    return path[: max(lengths)] if lengths else None


def _fits(pattern: Pattern, path: Path) -> bool:
    """Tell whether a path begins with the pattern."""
    pairs = zip(pattern, path, strict=False)
    return len(pattern) <= len(path) and all(want in (None, key) for want, key in pairs)
