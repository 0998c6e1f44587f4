"""Who and what is in a topology, numbered and counted: for headings, tables and filters."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from mooring.insight.topology.model import Item, Topology
from mooring.insight.topology.owners import Owner
from mooring.insight.topology.palette import Style, styles_of


class Held(NamedTuple):
    """A device that an owner has, or some of it."""

    node: str  # "" for devices of no single node
    item: Item


class Census:
    """All owners, drivers and devices of a topology."""

    def __init__(self, topology: Topology) -> None:
        items = list(topology.items())
        self.devices = len(items)
        self.free = sum(item.is_free for item in items)
        self.drivers = {name: n for n, name in enumerate(sorted({i.driver for i in items}))}
        self.owners = {owner: number for number, owner in enumerate(topology.owners)}
        self.styles: dict[Owner, Style] = styles_of(topology.owners)
        self.held: defaultdict[Owner, list[Held]] = defaultdict(list)
        for machine in topology.machines:
            self._enter(machine.name, machine.items())
        for box in topology.elsewhere:
            self._enter("", box.items())

    def _enter(self, node: str, items: Iterable[Item]) -> None:
        for item in items:
            for owner in item.owners:
                self.held[owner].append(Held(node, item))


def free_by_driver(items: Iterable[Item]) -> list[tuple[str, int, int]]:
    """Return the drivers, with how many devices are free and how many there are."""
    total: Counter[str] = Counter()
    free: Counter[str] = Counter()
    for item in items:
        total[item.driver] += 1
        free[item.driver] += item.is_free
    return [(driver, free[driver], total[driver]) for driver in sorted(total)]
