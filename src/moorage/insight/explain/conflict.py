"""A minimal conflict: members that together are impossible, while without any one they are not.

    # member: a request (with its class), constraint, selector, taint, requested capacity, or claim
    #   that holds devices; represented by the change that removes it
    # kept: the members that are still there; all others are taken away

Taking members away mostly helps, but not always: it may let in devices that another selector cannot
evaluate. So nothing is inferred, everything is tried:

1. Members that are a fix by themselves are in every conflict. If they conflict by themselves, that
   conflict is the smallest.
2. Otherwise members are taken away, whole groups first and then halves of them, as long as the
   claims stay impossible for the same kind of reason; in two orders, and the smaller result counts.
3. Then one by one as long as the claims stay impossible for any reason, until no member can go.
   Only this makes the conflict minimal, and a trial proves it for each member.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from msgspec import Struct

from moorage.allocator import Features, Inventory
from moorage.allocator.errors import AllocationError
from moorage.allocator.ledger import ClaimKey
from moorage.allocator.node_view import NodeView
from moorage.allocator.pools import PublishedDevice
from moorage.allocator.taints import BLOCKING
from moorage.api.core.node import Node
from moorage.api.resource.v1 import DeviceToleration
from moorage.insight.explain.situation import (
    FreeClaim,
    Situation,
    SituationChange,
    Tolerate,
    removals,
)
from moorage.insight.explain.trials import Trials

Members = tuple[SituationChange, ...]
Groups = Sequence[Sequence[SituationChange]]
TAINTS_MAX = 24  # more kinds of taints become one member
SMALL = 2  # members; a conflict this small is not improved
EVERYTHING = DeviceToleration(operator="Exists")
HOLDERS_MAX = 128


class Conflict(Struct, frozen=True):
    """Members that together are impossible."""

    members: Members
    is_minimal: bool  # whether every member is known to be needed; not if trials were given up


def find_conflict(
    trials: Trials, obstacles: Obstacles, fixing: Sequence[SituationChange]
) -> Conflict:
    """Return a minimal conflict of an impossible situation.

    `fixing` are changes that make it possible by themselves.
    """
    groups = _member_groups(trials.situation, obstacles)
    search = _Search(trials, members_of(trials.situation, obstacles))
    needed = tuple(member for member in search.members if member in set(fixing))
    if needed and search.is_impossible(needed):
        return search.finished(needed)
    best = search.shrunk(groups)
    if len(best) > SMALL:
        best = min(best, search.shrunk(groups[::-1]), key=len)
    return search.finished(best)


def _member_groups(situation: Situation, obstacles: Obstacles) -> list[list[SituationChange]]:
    """Return all members by kind, the most informative first."""
    parts = removals(situation)
    return [
        parts.requests,
        parts.constraints,
        parts.selectors,
        [FreeClaim(*key) for key in obstacles.holders],
        list(map(Tolerate, tolerations(obstacles))),
        parts.capacities,
    ]


def members_of(situation: Situation, obstacles: Obstacles) -> Members:
    """Return everything that may be a member of a conflict."""
    return tuple(member for group in _member_groups(situation, obstacles) for member in group)


def tolerations(obstacles: Obstacles) -> list[DeviceToleration]:
    """Return a toleration for each kind of taint; one for all if there are too many."""
    if len(obstacles.taints) > TAINTS_MAX:
        return [EVERYTHING]
    return [
        DeviceToleration(key=key, operator="Equal", value=value, effect=effect)
        for key, value, effect in obstacles.taints
    ]


class _Search:
    def __init__(self, trials: Trials, members: Members) -> None:
        self.members = members
        self._trials = trials
        self._kind = trials.outcome().kind

    def is_impossible(self, kept: Members) -> bool:
        return self._trials.is_possible(self._gone(kept)) is False

    def shrunk(self, groups: Groups) -> Members:
        """Return the members left when no more can go without changing the kind of reason."""
        kept = self.members
        for group in groups:
            kept = self._without(kept, tuple(reversed(group)), self._is_alike)
        return kept

    def finished(self, kept: Members) -> Conflict:
        """Return the conflict, without every member that a trial shows to be unneeded."""
        while True:
            loose = next((m for m in kept if self.is_impossible(_less(kept, (m,)))), None)
            if loose is None:
                break
            kept = _less(kept, (loose,))
        is_minimal = self.is_impossible(kept) and all(
            self._trials.is_possible(self._gone(_less(kept, (member,)))) for member in kept
        )
        return Conflict(kept, is_minimal)

    def _without(self, kept: Members, group: Members, may_go: Callable[[Members], bool]) -> Members:
        """Return the kept members without as many of the group as may go."""
        if not group:
            return kept
        less = _less(kept, group)
        if may_go(less):
            return less
        if len(group) == 1:
            return kept
        middle = len(group) // 2
        kept = self._without(kept, group[:middle], may_go)
        return self._without(kept, group[middle:], may_go)

    def _is_alike(self, kept: Members) -> bool:
        return self._trials.outcome(self._gone(kept)).kind is self._kind

    def _gone(self, kept: Members) -> list[SituationChange]:
        rest = set(kept)
        return [member for member in self.members if member not in rest]


def _less(kept: Members, gone: Sequence[SituationChange]) -> Members:
    taken = set(gone)
    return tuple(member for member in kept if member not in taken)


# --- obstacles on the node --------------------------------------------------------------


class Obstacles(Struct, frozen=True):
    """The obstacles of the claims on the node."""

    holders: Mapping[ClaimKey, tuple[str, ...]]  # devices of the node's pools, by claim
    taints: tuple[tuple[str, str, str], ...]  # key, value and effect of blocking taints
    holders_left_out: int = 0  # claims beyond the bound, which are not tried


def obstacles_on(inventory: Inventory, node: Node) -> Obstacles:
    """Return the holders and taints of the devices that a node sees."""
    view = node_view(inventory, node)
    if view is None:
        return Obstacles({}, ())
    holders: dict[ClaimKey, list[str]] = {}
    for facts in view.pools:
        for name, entries in inventory.ledger.taken(facts.pool.id).items():
            for entry in entries:
                holders.setdefault(entry.claim, []).append(f"{facts.pool.id}/{name}")
    taints = {
        (taint.key, taint.value, taint.effect): None
        for spot in view.published
        for taint in spot.device.taints
        if taint.effect in BLOCKING
    }
    looked_at = sorted(holders.items())[:HOLDERS_MAX]
    return Obstacles(
        holders={key: tuple(dict.fromkeys(devices)) for key, devices in looked_at},
        taints=tuple(taints) if inventory.features.device_taints else (),
        holders_left_out=len(holders) - len(looked_at),
    )


def node_view(inventory: Inventory, node: Node) -> NodeView | None:
    """Return the view of a node; None if a node selector cannot be read."""
    try:
        return inventory.view(node)
    except AllocationError:
        return None


# --- features that matter ---------------------------------------------------------------


def features_that_matter(situation: Situation) -> list[str]:
    """Return the features that can make a difference in a situation."""
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
    for place, details in situation.requests():
        if place.alternative is not None:
            found.add("prioritized_list")
        if details.capacity is not None:
            found.add("consumable_capacity")
        if details.derived_attributes:
            found.add("derived_attributes")
        if getattr(details, "admin_access", None) is not None:
            found.add("admin_access")
    return found


def _needed_by_slices(situation: Situation) -> set[str]:
    found: set[str] = set()
    for slice_ in situation.slices:
        spec = slice_.spec
        if spec.shared_counters or spec.per_device_node_selection is not None:
            found.add("partitionable_devices")
        if spec.skip_node_operations:
            found.add("optional_node_operations")
        for device in spec.devices or ():
            found.update(_needed_by_device(PublishedDevice(device, slice_)))
    return found


def _needed_by_device(spot: PublishedDevice) -> Iterator[str]:
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
