"""What stands in the way on a node: who holds its devices, and which taints they have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Struct

from mooring.allocator import Features, Inventory
from mooring.allocator.errors import AllocationError
from mooring.allocator.ledger import ClaimKey
from mooring.allocator.pools import Spot
from mooring.allocator.rules.taints import BLOCKING
from mooring.allocator.view import View
from mooring.api.core.node import Node
from mooring.insight.diagnosis.situation import Details, Situation

HOLDERS_MAX = 128


class Surroundings(Struct, frozen=True):
    """What stands in the way of the claims of a situation, on its node."""

    holders: Mapping[ClaimKey, tuple[str, ...]]  # what claims have of the node's pools
    taints: tuple[tuple[str, str, str], ...]  # key, value, effect of those that keep claims off
    holders_left_out: int = 0  # claims that are more than can be tried; they stay as they are


def surroundings(inventory: Inventory, node: Node) -> Surroundings:
    """Return what stands in the way on a node."""
    view = seen(inventory, node)
    if view is None:
        return Surroundings({}, ())
    holders: dict[ClaimKey, list[str]] = {}
    for facts in view.pools:
        for name, entries in inventory.ledger.taken(facts.pool.id).items():
            for entry in entries:
                holders.setdefault(entry.claim, []).append(f"{facts.pool.id}/{name}")
    taints = {
        (taint.key, taint.value, taint.effect): None
        for spot in view.spots
        for taint in spot.device.taints
        if taint.effect in BLOCKING
    }
    looked_at = sorted(holders.items())[:HOLDERS_MAX]
    return Surroundings(
        holders={key: tuple(dict.fromkeys(devices)) for key, devices in looked_at},
        taints=tuple(taints) if inventory.features.device_taints else (),
        holders_left_out=len(holders) - len(looked_at),
    )


def seen(inventory: Inventory, node: Node) -> View | None:
    """Return what a node sees; None if a selector of nodes cannot be read."""
    try:
        return inventory.view(node)
    except AllocationError:
        return None


# --- features that matter -----------------------------------------------------------------


def features_that_matter(situation: Situation) -> list[str]:
    """Return the features whose switch can change something here."""
    found = _needed_by_asks(situation) | _needed_by_slices(situation)
    if any(claim.spec.devices.constraints for claim in situation.claims):
        found.add("list_type_attributes")
    if any(
        result.share_id is not None
        for claim in situation.allocated
        if claim.status.allocation is not None
        for result in claim.status.allocation.devices.results
    ):
        found.add("consumable_capacity")
    return [feature for feature in Features._fields if feature in found]


def _needed_by_asks(situation: Situation) -> set[str]:
    found: set[str] = set()
    for place, details in situation.asks():
        if place.alternative is not None:
            found.add("prioritized_list")
        if details.capacity is not None:
            found.add("consumable_capacity")
        if details.derived_attributes:
            found.add("derived_attributes")
        if _admin_access(details) is not None:
            found.add("admin_access")
    return found


def _admin_access(details: Details) -> bool | None:
    return getattr(details, "admin_access", None)


def _needed_by_slices(situation: Situation) -> set[str]:
    found: set[str] = set()
    for slice_ in situation.slices:
        spec = slice_.spec
        if spec.shared_counters or spec.per_device_node_selection is not None:
            found.add("partitionable_devices")
        if spec.skip_node_operations:
            found.add("optional_node_operations")
        for device in spec.devices or ():
            found.update(_needed_by_device(Spot(device, slice_)))
    return found


def _needed_by_device(spot: Spot) -> Iterator[str]:
    device = spot.device
    if device.consumes_counters:
        yield "partitionable_devices"
        if any(each.compatibility_groups for each in device.consumes_counters):
            yield "compatibility_groups"
    if device.taints:
        yield "device_taints"
    if device.binding_conditions:
        yield "device_binding_and_status"
    if device.capacity or device.allow_multiple_allocations:
        yield "consumable_capacity"
    if any(each.request_policy is not None for each in device.capacity.values()):
        yield "fractional_capacity_range"
