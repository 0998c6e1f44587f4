"""Colours of owners: told apart by people who see colours differently, black text readable on all.

A style is a colour and a pattern. An owner's name decides where the search for a style that is
still free begins, so an owner keeps its colour from picture to picture unless another has it.
Once all are taken, owners with the same colour and pattern are told apart by their names.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple
from zlib import crc32

from mooring.insight.topology.owners import Owner

# The scheme "light" of Paul Tol, made for cells with black text; its grey and olive are left out.
COLOURS = (
    "#77aadd",
    "#ee8866",
    "#eedd88",
    "#ffaabb",
    "#44bb99",
    "#bbcc33",
    "#99ddff",
)
# Lines over the colour; the first is none.
PATTERNS = (
    "",
    "M0 8L8 0M-2 2L2 -2M6 10L10 6",
    "M0 4H8",
    "M0 0L8 8M-2 6L2 10M6 -2L10 2",
    "M4 0V8",
)
TEXT = "#14171a"


class Style(NamedTuple):
    """How what an owner has is filled: numbers of a colour and of a pattern."""

    colour: int
    pattern: int


def styles_of(owners: Iterable[Owner]) -> dict[Owner, Style]:
    """Return the style of each owner."""
    free = [set(range(len(COLOURS))) for _ in PATTERNS]
    found: dict[Owner, Style] = {}
    for index, owner in enumerate(sorted(owners)):
        pattern = index // len(COLOURS) % len(PATTERNS)
        if not free[pattern]:
            free[pattern] = set(range(len(COLOURS)))
        wanted = crc32(str(owner).encode("utf-8", "surrogatepass")) % len(COLOURS)
        colour = min(free[pattern], key=lambda each: (each - wanted) % len(COLOURS))
        free[pattern].discard(colour)
        found[owner] = Style(colour, pattern)
    return found
