"""From a snapshot to its topology.

1. What is known of devices and of who has them gives items.
2. What several devices of a node say is put together: which socket a NUMA node is in, and which
   NUMA node a PCIe root is in. A device that does not say where it is stands with its PCIe root.
3. Items go into boxes; partitions in one box become one unit.

Everything is sorted by name, numbers as numbers, so the order of objects does not matter.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from msgspec.structs import replace

from mooring.insight.devices import Holdings, holdings_of
from mooring.insight.ordering import natural
from mooring.insight.snapshot.snapshot import Snapshot
from mooring.insight.topology.items import items_by_site
from mooring.insight.topology.model import Box, Item, Kind, Machine, Partitions, Topology, Unit
from mooring.insight.topology.owners import Owners
from mooring.insight.topology.places import Place

Key = TypeVar("Key", int, str)


def topology(snapshot: Snapshot, holdings: Holdings | None = None) -> Topology:
    """Return all machines and devices of a snapshot, and who has them.

    Holdings are worked out with all features on, unless they are given.
    """
    if holdings is None:
        holdings = holdings_of(snapshot)
    owners = Owners(holdings.claims)
    sites = items_by_site(holdings.devices, owners)
    known = {node.metadata.name for node in snapshot.nodes}
    machines = {
        # Without any Node object nothing can be said about one that is missing.
        site.node: _machine(site.node, items, is_known=not known or site.node in known)
        for site, items in sites.items()
        if site.node
    }
    several = sorted(site for site in sites if not site.node)
    holders = (holder for each in holdings.devices for holder in each.holders)
    return Topology(
        machines=tuple(machines[name] for name in sorted(machines, key=natural)),
        elsewhere=tuple(
            Box(Kind.REACH, site.several, units=_units(sites[site])) for site in several
        ),
        owners=owners.of(holder.claim for holder in holders),
        nodes_without_devices=len(known - machines.keys()),
    )


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
