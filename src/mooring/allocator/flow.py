"""Can every demand get its number of items, each item going to one demand? (Hall's condition)"""

from __future__ import annotations

from collections.abc import Sequence

Demand = tuple[int, int]  # how many, and the set of items that will do


def has_flow(demands: Sequence[Demand]) -> bool:
    """Return whether all demands can be met at once.

    1. Give each demand what is free, the narrowest first.
    2. For one that is short, look for a chain: it takes an item from another demand, that one from
       a third, … until one finds an item that is free.
    """
    order = sorted(demands, key=lambda demand: demand[1].bit_count())
    wants = [items for _, items in order]
    given: list[int] = []
    free = 0
    for items in wants:
        free |= items
    if free.bit_count() < sum(need for need, _ in order):
        return False
    short: list[tuple[int, int]] = []
    for number, (need, items) in enumerate(order):
        got, missing = _lowest(items & free, need)
        free ^= got
        given.append(got)
        if missing:
            short.append((number, missing))
    for number, missing in short:
        for _ in range(missing):
            item = _exchange(number, wants, given, free)
            if not item:
                return False
            free ^= item
    return True


def _lowest(items: int, need: int) -> tuple[int, int]:
    """Return the lowest items, as many as needed, and how many are missing."""
    if items.bit_count() <= need:
        return items, need - items.bit_count()
    got = 0
    for _ in range(need):
        low = items & -items
        got |= low
        items ^= low
    return got, 0


def _exchange(start: int, wants: Sequence[int], given: list[int], free: int) -> int:
    """Let a demand have one more item, through a chain of exchanges; return the free item used."""
    came_from: dict[int, tuple[int, int]] = {}  # demand: who takes which item from it
    queue = [start]
    for taker in queue:
        item = wants[taker] & free
        if item:
            found = item & -item
            item = found
            while taker != start:
                given[taker] |= item
                taker, item = came_from[taker][0], came_from[taker][1]
                # The item moves from the demand that got another one to the taker before it.
                for other, items in enumerate(given):
                    if items & item and other != taker:
                        given[other] = items ^ item
                        break
            given[start] |= item
            return found
        for other, items in enumerate(given):
            steal = items & wants[taker]
            if steal and other != start and other not in came_from:
                came_from[other] = (taker, steal & -steal)
                queue.append(other)
    return 0
