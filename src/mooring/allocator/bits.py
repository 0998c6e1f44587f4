"""Sets of positions as integers: bit p is set if position p is in the set."""

from __future__ import annotations


def bits(mask: int) -> list[int]:
    """Return the positions in a set, lowest first."""
    found = []
    while mask:
        low = mask & -mask
        found.append(low.bit_length() - 1)
        mask ^= low
    return found


def from_position(position: int) -> int:
    """Return the set of all positions from one on."""
    return -1 << position
