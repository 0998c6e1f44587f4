"""From a snapshot to its topology.

1. Pools give devices, claims give holds: together they are items.
2. What several devices of a node say is put together: which socket a NUMA node is in, and which
   NUMA node a PCIe root is in. A device that does not say where it is stands with its PCIe root.
3. Items go into boxes; partitions in one box become one unit.

Everything is sorted by name, numbers as numbers, so the order of objects does not matter.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from msgspec.structs import replace

from mooring.insight.snapshot import Snapshot
from mooring.insight.topology.holdings import DeviceKey, Hold, Holdings, Owner
from mooring.insight.topology.model import (
    Box,
    Item,
    Kind,
    Machine,
    Partitions,
    Topology,
    Unit,
    Use,
)
from mooring.insight.topology.places import Place, place_of
from mooring.insight.topology.supply import (
    Offer,
    Pool,
    Reach,
    TaintRules,
    capacities_of,
    needs_of,
    pools_of,
)

Key = TypeVar("Key", int, str)

NOT_PUBLISHED = "held, but published by no slice"
_NUMBER = re.compile(r"([0-9]{1,18})")


def topology(snapshot: Snapshot) -> Topology:
    """Return all machines and devices of a snapshot, and who has them."""
    holdings = Holdings(snapshot.claims)
    rules = TaintRules(snapshot.taint_rules)
    by_reach: defaultdict[Reach, list[Item]] = defaultdict(list)
    published: set[DeviceKey] = set()
    for pool in pools_of(snapshot.slices):
        blocked = _blocked(pool, holdings)
        for offer in pool.offers:
            item = _item(offer, holdings, blocked, rules.of(offer))
            by_reach[offer.reach].append(item)
            published.add(item.key)
    missing = [_missing(key, holdings) for key in sorted(holdings.keys() - published)]
    if missing:
        by_reach[Reach(several=NOT_PUBLISHED)] += missing
    return _assembled(snapshot, by_reach, holdings.owners)


def _assembled(
    snapshot: Snapshot, by_reach: dict[Reach, list[Item]], owners: tuple[Owner, ...]
) -> Topology:
    known = {node.metadata.name for node in snapshot.nodes}
    machines = {
        # Without any Node object nothing can be said about one that is missing.
        reach.node: _machine(reach.node, items, is_known=not known or reach.node in known)
        for reach, items in by_reach.items()
        if reach.node
    }
    several = sorted(reach for reach in by_reach if not reach.node)
    return Topology(
        machines=tuple(machines[name] for name in sorted(machines, key=natural)),
        elsewhere=tuple(
            Box(Kind.REACH, reach.several, units=_units(by_reach[reach])) for reach in several
        ),
        owners=owners,
        nodes_without_devices=len(known - machines.keys()),
    )


def natural(text: str) -> list[str | tuple[int, str]]:
    """Return what to sort names by, so that gpu-10 comes after gpu-9."""
    parts = _NUMBER.split(text)
    # Odd parts are numbers; the text breaks ties between 1 and 01.
    return [(int(part), part) if index % 2 else part for index, part in enumerate(parts)]


# --- items ----------------------------------------------------------------------------------


def _item(
    offer: Offer,
    holdings: Holdings,
    blocked: dict[str, tuple[Owner, ...]],
    taints: tuple[str, ...],
) -> Item:
    device = offer.device
    key = (*offer.pool, device.name)
    holds = holdings.of(key)
    sets = {consumption.counter_set for consumption in device.consumes_counters}
    return Item(
        driver=offer.pool.driver,
        pool=offer.pool.name,
        name=device.name,
        place=place_of(device, offer.pool.driver),
        holds=holds,
        admins=holdings.admins_of(key),
        uses=tuple(_uses(offer, holds)) if device.allow_multiple_allocations else (),
        is_shareable=bool(device.allow_multiple_allocations),
        counter_sets=tuple(sorted(sets)),
        blocked_by=() if holds else blocked.get(device.name, ()),
        taints=taints,
        problem=offer.problem,
    )


def _missing(key: DeviceKey, holdings: Holdings) -> Item:
    driver, pool, name = key
    return Item(
        driver=driver,
        pool=pool,
        name=name,
        holds=holdings.of(key),
        admins=holdings.admins_of(key),
        problem="no slice publishes it",
    )


def _uses(offer: Offer, holds: Sequence[Hold]) -> Iterator[Use]:
    for name, total in sorted(capacities_of(offer.device).items()):
        shares = ((hold.owner, hold.consumed.get(name)) for hold in holds)
        taken = tuple((owner, amount) for owner, amount in shares if amount is not None)
        yield Use(name, total, taken)


def _blocked(pool: Pool, holdings: Holdings) -> dict[str, tuple[Owner, ...]]:
    """Return the devices for which too little is left of some counter, and who has it."""
    left = dict(pool.counters)
    takers: defaultdict[str, set[Owner]] = defaultdict(set)
    for offer in pool.offers:
        holds = holdings.of((*offer.pool, offer.device.name)) if left else ()
        if holds:
            for counter, amount in needs_of(offer.device).items():
                left[counter] = left.get(counter, 0) - amount
                takers[counter[0]].update(hold.owner for hold in holds)
    found: dict[str, tuple[Owner, ...]] = {}
    for offer in pool.offers if takers else ():
        short = [c for c, amount in needs_of(offer.device).items() if left.get(c, 0) < amount]
        owners = {owner for counter_set, _ in short for owner in takers[counter_set]}
        if owners:
            found[offer.device.name] = tuple(sorted(owners))
    return found


# --- boxes ----------------------------------------------------------------------------------


def _machine(name: str, items: Sequence[Item], *, is_known: bool) -> Machine:
    placed = _put_together(items)
    sockets = _by(placed, lambda place: place.socket)
    boxes = [
        Box(Kind.SOCKET, f"socket {socket}", *_in_socket(inside))
        for socket, inside in sorted(sockets.items())
    ]
    inside_boxes, units = _in_socket([each for each in placed if each.place.socket is None])
    return Machine(name, (*boxes, *inside_boxes), units, is_known)


def _in_socket(items: Sequence[Item]) -> tuple[tuple[Box, ...], tuple[Unit, ...]]:
    """Return the boxes of NUMA nodes and roots, and the units that are in none."""
    nodes = _by(items, lambda place: None if place.is_whole_socket else place.numa_node)
    boxes = [
        Box(Kind.NUMA_NODE, f"NUMA node {node}", *_in_numa_node(inside))
        for node, inside in sorted(nodes.items())
    ]
    rest = [each for each in items if each.place.is_whole_socket or each.place.numa_node is None]
    inside_boxes, units = _in_numa_node(rest)
    return (*boxes, *inside_boxes), units


def _in_numa_node(items: Sequence[Item]) -> tuple[tuple[Box, ...], tuple[Unit, ...]]:
    roots = _by(items, lambda place: place.root or None)
    boxes = tuple(
        Box(Kind.ROOT, f"PCIe root {root}", units=_units(roots[root]))
        for root in sorted(roots, key=natural)
    )
    return boxes, _units([each for each in items if not each.place.root])


def _by(items: Iterable[Item], key: Callable[[Place], Key | None]) -> dict[Key, list[Item]]:
    """Return the devices by what a function makes of their places; None is left out."""
    found: defaultdict[Key, list[Item]] = defaultdict(list)
    for item in items:
        value = key(item.place)
        if value is not None:
            found[value].append(item)
    return found


def _units(items: Iterable[Item]) -> tuple[Unit, ...]:
    """Return the devices, those that share counters together."""
    found: defaultdict[tuple[str, ...], list[Item]] = defaultdict(list)
    for item in sorted(items, key=lambda each: tuple(map(natural, each.key))):
        own = item.counter_sets[:1] or ("", item.name)
        found[item.driver, item.pool, *own].append(item)
    return tuple(
        together[0] if len(together) == 1 else Partitions(key[2], tuple(together))
        for key, together in found.items()
    )


# --- what devices say of each other -----------------------------------------------------------


def _put_together(items: Sequence[Item]) -> list[Item]:
    """Return the devices of a machine with NUMA nodes by root and sockets by NUMA node."""
    places = [item.place for item in items]
    nodes = _agreed((place.root, place.numa_node) for place in places if place.root)
    places = [_with_node(place, nodes) for place in places]
    sockets = _agreed(
        (place.numa_node, place.socket) for place in places if len(place.numa_nodes) == 1
    )
    places = [_with_socket(place, sockets) for place in places]
    return [replace(item, place=place) for item, place in zip(items, places, strict=True)]


def _agreed(pairs: Iterable[tuple[Key | None, int | None]]) -> dict[Key, int]:
    """Return the number of each key of which all numbers are the same."""
    found: defaultdict[Key, set[int]] = defaultdict(set)
    for key, number in pairs:
        if key is not None and number is not None:
            found[key].add(number)
    return {key: min(numbers) for key, numbers in found.items() if len(numbers) == 1}


def _with_node(place: Place, nodes: dict[str, int]) -> Place:
    if place.numa_nodes or place.is_whole_socket or place.root not in nodes:
        return place
    return replace(place, numa_nodes=(nodes[place.root],), is_inferred=True)


def _with_socket(place: Place, sockets: dict[int, int]) -> Place:
    if place.socket is not None or place.numa_node not in sockets:
        return place
    return replace(place, socket=sockets[place.numa_node])
