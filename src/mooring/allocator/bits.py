"""Sets of positions as integers: bit p is set if position p is in the set."""

from __future__ import annotations

from collections.abc import Iterable


def bits(mask: int) -> list[int]:
    """Return the positions in a set, lowest first."""
    found = []
    while mask:
        low = mask & -mask
        found.append(low.bit_length() - 1)
        mask ^= low
    return found


def mask_of(positions: Iterable[int]) -> int:
    """Return the set of these positions."""
    mask = 0
    for position in positions:
        mask |= 1 << position
    return mask
