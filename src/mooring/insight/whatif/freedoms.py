"""Which devices are free, without and with changes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator

from msgspec import Struct

from mooring.insight.devices import Holdings, State
from mooring.insight.devices.counting import Counts, by_node, count

_NONE = Counts(Counter())


class Freedom(Struct, frozen=True, rename="camel"):
    """How many devices of a driver a node has, and how many are free."""

    node: str
    driver: str
    total_before: int
    total_after: int
    free_before: int
    free_after: int
    is_cordoned: bool = False  # with the changes: what is free there is for no new pod

    @property
    def is_changed(self) -> bool:
        """Whether the changes make a difference."""
        return (self.total_before, self.free_before) != (self.total_after, self.free_after)


def freedoms(before: Holdings, after: Holdings, cordoned: Collection[str]) -> Iterator[Freedom]:
    """Give the numbers of devices by node and driver; some nodes are cordoned."""
    old, new = count(before.devices, by_node), count(after.devices, by_node)
    for key in sorted({*old, *new}):
        was, is_ = old.get(key, _NONE), new.get(key, _NONE)
        node, driver = key
        yield Freedom(
            node=node,
            driver=driver,
            total_before=was.total,
            total_after=is_.total,
            free_before=was.of(State.FREE),
            free_after=is_.of(State.FREE),
            is_cordoned=node in cordoned,
        )


def missing_in(holdings: Holdings) -> dict[str, tuple[str, ...]]:
    """Return the devices that claims have and no slice has, with these claims."""
    return {
        str(each.id): tuple(str(holder.claim) for holder in (*each.holders, *each.admins))
        for each in holdings.devices
        if each.state is State.MISSING
    }
