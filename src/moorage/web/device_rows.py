"""The tables of nodes, devices and holdings: the order of devices, and their states as numbers.

Devices are ordered by their place: node, NUMA node and PCIe root. The order is computed once; after
that, devices keep their rows, and only their states change. A new device, or one that has another
place, needs a new order.

# holding: a claim that has a device, or a share of one
# place: where a device is drawn
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from moorage.api.core.node import Node
from moorage.api.tolerations import DeviceName
from moorage.insight.devices import DeviceState, DeviceUsage
from moorage.insight.devices.model import ClaimId, Holder
from moorage.insight.devices.node_selection import only_node
from moorage.insight.messages import natural_order
from moorage.insight.topology.builder import completed_locations
from moorage.insight.topology.model import MachineLocation, location_of, part_of
from moorage.kit.checkpoints import checkpoint
from moorage.web.columns import Column, Rows, Strings
from moorage.web.partitions import Partition, partitions_of

ZONE: Final = "topology.kubernetes.io/zone"
READY, NOT_READY, CORDONED, UNKNOWN = range(4)
STATES: Final = {
    DeviceState.FREE: 0,
    DeviceState.TAKEN: 1,
    DeviceState.SHARED: 2,
    DeviceState.BLOCKED: 3,
    DeviceState.TAINTED: 4,
    DeviceState.UNUSABLE: 5,
    DeviceState.MISSING: 6,
    DeviceState.UNKNOWN: 7,
}
WHOLE: Final = 1000
ClaimRow = Callable[[ClaimId], int]
HoldingKey = tuple[DeviceName, ClaimId]


class DevicePlace(NamedTuple):
    """Where a device is drawn."""

    node: str  # "" if several nodes can use it
    location: MachineLocation


class DeviceRows:
    """Nodes, devices and holdings as columns."""

    def __init__(self, strings: Strings) -> None:
        self._strings = strings
        self._node_rows: dict[str, int] = {}
        self._device_rows: dict[DeviceName, int] = {}
        self._usages: list[DeviceUsage] = []  # by row
        self._places: list[DevicePlace] = []
        self._held: dict[DeviceName, frozenset[ClaimId]] = {}
        self.nodes: dict[str, Column] = {}
        self.devices: dict[str, Column] = {}
        self.holdings: Rows[HoldingKey] = Rows(device=-1, claim=-1, share=0)
        self._fill_nodes({}, ())
        self._fill_devices(())

    def copy(self, strings: Strings) -> DeviceRows:
        """Return a copy that uses these strings."""
        found = DeviceRows(strings)
        found._node_rows, found._device_rows = self._node_rows, self._device_rows  # never changed
        found._usages, found._places = list(self._usages), list(self._places)
        found._held = dict(self._held)
        found.nodes = {name: list(values) for name, values in self.nodes.items()}
        found.devices = {name: list(values) for name, values in self.devices.items()}
        found.holdings = self.holdings.copy()
        return found

    @property
    def device_rows(self) -> Mapping[DeviceName, int]:
        """The rows of devices; each new order creates a new mapping."""
        return self._device_rows

    def node_row(self, name: str) -> int:
        """Return the row of a node, or -1 if it has none."""
        return self._node_rows.get(name, -1)

    def device_row(self, device: DeviceName) -> int:
        """Return the row of a device, or -1 if it has none."""
        return self._device_rows.get(device, -1)

    @property
    def usages(self) -> Sequence[DeviceUsage]:
        """The usage of each device, by row."""
        return self._usages

    # --- a new order --------------------------------------------------------------------------

    def arrange(
        self,
        nodes: Mapping[str, Node],
        devices: Iterable[DeviceUsage],
        claim_row: ClaimRow,
    ) -> None:
        """Put all nodes and devices into a new order."""
        shown = _each_once(devices)
        places = _places(shown)
        named = {*nodes, *(place.node for place in places.values() if place.node)}
        ordered = sorted(named, key=natural_order)
        self._node_rows = {name: row for row, name in enumerate(ordered)}
        order = sorted(shown, key=lambda device: self._order(device, places[device]))
        self._device_rows = {device: row for row, device in enumerate(order)}
        self._usages = [shown[device] for device in order]
        self._places = [places[device] for device in order]
        self._fill_nodes(nodes, ordered)
        self._fill_devices(order)
        self.holdings = Rows(device=-1, claim=-1, share=0)
        self._held = {}
        self._set_states(self._usages, claim_row)

    def _order(self, device: DeviceName, place: DevicePlace) -> tuple[object, ...]:
        node = self._node_rows.get(place.node, len(self._node_rows))
        numa = place.location.numa_node
        names = (place.location.root, device.driver, device.pool, device.device)
        return node, 1 << 30 if numa is None else numa, *map(_natural, names)

    def _fill_nodes(self, nodes: Mapping[str, Node], ordered: Sequence[str]) -> None:
        self.nodes = {
            "name": [self._strings.number(name) for name in ordered],
            "zone": [self._zone(nodes.get(name)) for name in ordered],
            "state": [node_state(nodes.get(name)) for name in ordered],
            "devices": [0] * len(ordered),
        }
        for place in self._places:
            if place.node:
                self.nodes["devices"][self._node_rows[place.node]] += 1

    def _fill_devices(self, order: Sequence[DeviceName]) -> None:
        number, locations = self._strings.number, [place.location for place in self._places]
        numas = (location.numa_node for location in locations)
        self.devices = {
            "node": [self._node_rows.get(place.node, -1) for place in self._places],
            "driver": [number(device.driver) for device in order],
            "pool": [number(device.pool) for device in order],
            "name": [number(device.device) for device in order],
            "numa": [-1 if numa is None else numa for numa in numas],
            "root": [number(location.root) for location in locations],
            "state": [0] * len(order),
            "used": [0] * len(order),
            "parent": [-1] * len(order),
            "claims": [0] * len(order),
        }

    def _zone(self, node: Node | None) -> int:
        labels = None if node is None else node.metadata.labels
        return self._strings.number((labels or {}).get(ZONE, ""))

    # --- changes ------------------------------------------------------------------------------

    def put_node(self, node: Node) -> bool:
        """Update the state of a node; return False if that needs a new order."""
        row = self.node_row(node.metadata.name)
        if row < 0:
            return False
        self.nodes["zone"][row] = self._zone(node)
        self.nodes["state"][row] = node_state(node)
        return True

    def put_devices(self, devices: Iterable[DeviceUsage], claim_row: ClaimRow) -> bool:
        """Update the devices of whole pools; return False if that needs a new order."""
        shown = _each_once(devices)
        if not all(self._is_in_place(device, usage) for device, usage in shown.items()):
            return False
        for device, usage in shown.items():
            self._usages[self._device_rows[device]] = usage
        self._set_states(list(shown.values()), claim_row)
        return True

    def _is_in_place(self, device: DeviceName, usage: DeviceUsage) -> bool:
        row = self._device_rows.get(device, -1)
        if row < 0:
            return False
        before = self._usages[row]
        if before.device is usage.device and before.node_selection == usage.node_selection:
            return True
        if _node_of(usage) != self._places[row].node:
            return False
        old, new = (location_of(each.device, device.driver) for each in (before, usage))
        return old == new

    def _set_states(self, usages: Sequence[DeviceUsage], claim_row: ClaimRow) -> None:
        columns, partitions = self.devices, partitions_of(usages)
        for usage in usages:
            checkpoint()
            row = self._device_rows[usage.id]
            shares = _shares(usage)
            partition = partitions.get(usage.id, Partition())
            columns["state"][row] = _state(usage, partition)
            columns["used"][row] = _used(usage, shares, partition)
            columns["claims"][row] = len({holder.claim for holder in usage.holders})
            columns["parent"][row] = self.device_row(partition.of) if partition.of else -1
            self._hold(usage.id, row, shares, claim_row)

    def _hold(
        self,
        device: DeviceName,
        row: int,
        shares: Mapping[ClaimId, int],
        claim_row: ClaimRow,
    ) -> None:
        for claim in self._held.get(device, frozenset()) - shares.keys():
            self.holdings.remove((device, claim))
        for claim, share in shares.items():
            self.holdings.put((device, claim), device=row, claim=claim_row(claim), share=share)
        if shares:
            self._held[device] = frozenset(shares)
        else:
            self._held.pop(device, None)


def node_state(node: Node | None) -> int:
    """Return the state of a node as a number."""
    if node is None:
        return UNKNOWN
    if node.spec.unschedulable:
        return CORDONED
    ready = [each.status for each in node.status.conditions if each.type == "Ready"]
    return NOT_READY if ready and ready[0] != "True" else READY


# --- places -----------------------------------------------------------------------------------

_natural = lru_cache(maxsize=100_000)(natural_order)


def _each_once(devices: Iterable[DeviceUsage]) -> dict[DeviceName, DeviceUsage]:
    """Return the devices by name; of several with the same name, the one that counts."""
    found: dict[DeviceName, DeviceUsage] = {}
    for usage in devices:
        if usage.id not in found or (found[usage.id].is_replaced and not usage.is_replaced):
            found[usage.id] = usage
    return found


def _places(shown: Mapping[DeviceName, DeviceUsage]) -> dict[DeviceName, DevicePlace]:
    """Return the places of all devices; devices of one node complete each other's facts."""
    of_node: dict[str, list[DeviceName]] = {}
    for device, usage in shown.items():
        checkpoint()
        of_node.setdefault(_node_of(usage), []).append(device)
    return dict(_placed(of_node, shown))


def _placed(
    of_node: Mapping[str, Sequence[DeviceName]], shown: Mapping[DeviceName, DeviceUsage]
) -> Iterator[tuple[DeviceName, DevicePlace]]:
    for node, devices in of_node.items():
        checkpoint()
        found = [location_of(shown[each].device, each.driver) for each in devices]
        locations = completed_locations(found) if node else found
        for device, location in zip(devices, locations, strict=True):
            yield device, DevicePlace(node, location)


def _node_of(usage: DeviceUsage) -> str:
    chosen = usage.node_selection
    return chosen.node or (only_node(chosen.selector) if chosen.selector is not None else "")


# --- states -----------------------------------------------------------------------------------


def _state(usage: DeviceUsage, partition: Partition) -> int:
    state = usage.state
    if state is DeviceState.BLOCKED and partition.used:
        state = DeviceState.SHARED
    return STATES[state]


def _used(usage: DeviceUsage, shares: Mapping[ClaimId, int], partition: Partition) -> int:
    match usage.state:
        case DeviceState.TAKEN | DeviceState.MISSING if not usage.capacities:
            return WHOLE
        case DeviceState.TAKEN | DeviceState.SHARED | DeviceState.MISSING:
            whole = WHOLE if WHOLE in shares.values() else 0
            parts = (part_of(each.used, each.total) for each in usage.capacities)
            return max(whole, round(max(parts, default=0.0) * WHOLE))
    return partition.used


def _shares(usage: DeviceUsage) -> dict[ClaimId, int]:
    """Return each claim's share of the device; claims with admin access have none."""
    found = {holder.claim: 0 for holder in usage.admins}
    for holder in usage.holders:
        found[holder.claim] = min(WHOLE, found.get(holder.claim, 0) + _share(usage, holder))
    return found


def _share(usage: DeviceUsage, holder: Holder) -> int:
    if not holder.share_id:
        return WHOLE
    totals = usage.device.capacity
    parts = (
        part_of(amount, totals[name].value) for name, amount in holder.consumed if name in totals
    )
    return round(max(parts, default=0.0) * WHOLE)
