"""From a snapshot to its topology.

1. Every device becomes an item with its owners. A device of an old generation that the current
   generation of its pool has as well is left out.
2. Items of one node complete each other: which socket a NUMA node is in, and which NUMA node a PCIe
   root is in. A device that does not state its NUMA node gets its PCIe root's.
3. Items go into boxes; partitions in one box become one unit.

Everything is sorted by name, numbers as numbers, so the order of objects does not matter.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple, TypeVar

from msgspec.structs import replace

from moorage.insight.devices import ClusterUsage, DeviceState, DeviceUsage, usage_of
from moorage.insight.devices.node_selection import NodeSelection as Reach
from moorage.insight.devices.node_selection import only_node, selector_text
from moorage.insight.messages import natural_order
from moorage.insight.snapshot.snapshot import Snapshot
from moorage.insight.topology.model import (
    Box,
    BoxKind,
    Hold,
    Item,
    MachineLocation,
    NodeBox,
    Owners,
    Partitions,
    Topology,
    Unit,
    Use,
    location_of,
)

Key = TypeVar("Key", int, str)
ALL_NODES = "all nodes"
NO_NODES = "no nodes"
NOT_PUBLISHED = "held, but published by no slice"


def topology(snapshot: Snapshot, holdings: ClusterUsage | None = None) -> Topology:
    """Return all nodes and devices of a snapshot, and their owners.

    Without `holdings`, device usage is computed with all features on.
    """
    if holdings is None:
        holdings = usage_of(snapshot)
    owners = Owners(holdings.claims)
    sites = _items_by_site(holdings.devices, owners)
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
        machines=tuple(machines[name] for name in sorted(machines, key=natural_order)),
        elsewhere=tuple(
            Box(BoxKind.REACH, site.several, units=_units(sites[site])) for site in several
        ),
        owners=owners.of(holder.claim for holder in holders),
        nodes_without_devices=len(known - machines.keys()),
    )


def _machine(name: str, items: Sequence[Item], *, is_known: bool) -> NodeBox:
    placed = _put_together(items)
    sockets = _by(placed, lambda place: place.socket)
    boxes = [
        Box(BoxKind.SOCKET, f"socket {socket}", *_in_socket(inside))
        for socket, inside in sorted(sockets.items())
    ]
    inside_boxes, units = _in_socket([each for each in placed if each.place.socket is None])
    return NodeBox(name, (*boxes, *inside_boxes), units, is_known)


def _in_socket(items: Sequence[Item]) -> tuple[tuple[Box, ...], tuple[Unit, ...]]:
    """Return the boxes of NUMA nodes and PCIe roots, and the units outside of them."""
    nodes = _by(items, lambda place: None if place.is_whole_socket else place.numa_node)
    boxes = [
        Box(BoxKind.NUMA_NODE, f"NUMA node {node}", *_in_numa_node(inside))
        for node, inside in sorted(nodes.items())
    ]
    rest = [each for each in items if each.place.is_whole_socket or each.place.numa_node is None]
    inside_boxes, units = _in_numa_node(rest)
    return (*boxes, *inside_boxes), units


def _in_numa_node(items: Sequence[Item]) -> tuple[tuple[Box, ...], tuple[Unit, ...]]:
    roots = _by(items, lambda place: place.root or None)
    boxes = tuple(
        Box(BoxKind.ROOT, f"PCIe root {root}", units=_units(roots[root]))
        for root in sorted(roots, key=natural_order)
    )
    return boxes, _units([each for each in items if not each.place.root])


def _by(
    items: Iterable[Item], key: Callable[[MachineLocation], Key | None]
) -> dict[Key, list[Item]]:
    """Group devices by a key of their location; None is left out."""
    found: defaultdict[Key, list[Item]] = defaultdict(list)
    for item in items:
        value = key(item.place)
        if value is not None:
            found[value].append(item)
    return found


def _units(items: Iterable[Item]) -> tuple[Unit, ...]:
    """Return the devices as units, partitions of the same counters together."""
    found: defaultdict[tuple[str, ...], list[Item]] = defaultdict(list)
    for item in sorted(items, key=lambda each: tuple(map(natural_order, each.key))):
        own = item.counter_sets[:1] or ("", item.name)
        found[item.driver, item.pool, *own].append(item)
    return tuple(
        together[0] if len(together) == 1 else Partitions(key[2], tuple(together))
        for key, together in found.items()
    )


def _put_together(items: Sequence[Item]) -> list[Item]:
    """Return the devices of a node, with locations completed from each other."""
    places = completed_locations([item.place for item in items])
    return [replace(item, place=place) for item, place in zip(items, places, strict=True)]


def completed_locations(places: Sequence[MachineLocation]) -> list[MachineLocation]:
    """Return the locations of a node's devices, completed from each other."""
    nodes = _agreed((place.root, place.numa_node) for place in places if place.root)
    found = [_with_node(place, nodes) for place in places]
    sockets = _agreed(
        (place.numa_node, place.socket) for place in found if len(place.numa_nodes) == 1
    )
    return [_with_socket(place, sockets) for place in found]


def _agreed(pairs: Iterable[tuple[Key | None, int | None]]) -> dict[Key, int]:
    """Return the number of each key whose pairs all agree."""
    found: defaultdict[Key, set[int]] = defaultdict(set)
    for key, number in pairs:
        if key is not None and number is not None:
            found[key].add(number)
    return {key: min(numbers) for key, numbers in found.items() if len(numbers) == 1}


def _with_node(place: MachineLocation, nodes: dict[str, int]) -> MachineLocation:
    if place.numa_nodes or place.is_whole_socket or place.root not in nodes:
        return place
    return replace(place, numa_nodes=(nodes[place.root],), is_inferred=True)


def _with_socket(place: MachineLocation, sockets: dict[int, int]) -> MachineLocation:
    if place.socket is not None or place.numa_node not in sockets:
        return place
    return replace(place, socket=sockets[place.numa_node])


class Site(NamedTuple):
    """The nodes that can use devices: one by name, or several as text."""

    node: str = ""
    several: str = ""


def _items_by_site(devices: Iterable[DeviceUsage], owners: Owners) -> dict[Site, list[Item]]:
    """Return the devices by site, each once per site."""
    found: defaultdict[Site, dict[tuple[str, str, str], Item]] = defaultdict(dict)
    sites: dict[Reach, Site] = {}
    for holding in devices:
        if holding.is_replaced:
            continue
        site = sites.get(holding.node_selection)
        if site is None:
            site = sites[holding.node_selection] = _site(holding.node_selection)
        if holding.state is DeviceState.MISSING:
            site = Site(several=NOT_PUBLISHED)
        if holding.id not in found[site]:
            found[site][holding.id] = _item(holding, owners)
    return {site: list(items.values()) for site, items in found.items()}


def _site(reach: Reach) -> Site:
    if reach.node:
        return Site(node=reach.node)
    if reach.all_nodes:
        return Site(several=ALL_NODES)
    if reach.selector is None or not reach.selector.node_selector_terms:
        return Site(several=NO_NODES)
    if name := only_node(reach.selector):
        return Site(node=name)
    return Site(several=f"nodes with {selector_text(reach.selector)}")


def _item(holding: DeviceUsage, owners: Owners) -> Item:
    device = holding.device
    holds = owners.holds(holding)
    shortages = [reason for reason in holding.reasons if reason.state is DeviceState.BLOCKED]
    if holding.state is not DeviceState.BLOCKED:
        shortages = []
    users = (user for reason in shortages for user in reason.users)
    return Item(
        *holding.id,
        state=holding.state,
        place=location_of(device, holding.id.driver),
        holds=holds,
        admins=owners.of(holder.claim for holder in holding.admins),
        uses=tuple(_uses(holding, holds)),
        is_shareable=bool(device.allow_multiple_allocations),
        counter_sets=tuple(sorted({each.counter_set for each in device.consumes_counters})),
        shortages=tuple(reason.text for reason in shortages),
        blocked_by=owners.of(claim for user in users for claim in user.claims),
        taints=tuple(sorted(set(map(str, holding.taints)))),
        problem=_problem(holding),
        conflict=holding.conflict,
    )


def _problem(holding: DeviceUsage) -> str:
    lost = (DeviceState.UNUSABLE, DeviceState.MISSING)
    return next((reason.text for reason in holding.reasons if reason.state in lost), "")


def _uses(holding: DeviceUsage, holds: Iterable[Hold]) -> Iterator[Use]:
    for room in holding.capacities:
        shares = ((hold.owner, hold.consumed.get(room.name)) for hold in holds)
        taken = tuple((owner, amount) for owner, amount in shares if amount is not None)
        yield Use(room.name, room.total, taken)
