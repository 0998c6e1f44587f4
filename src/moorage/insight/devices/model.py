"""Devices and claims: who uses what, and what can still be allocated.

# holder: a claim that has a device, or a share of one
# open: a claim that requests this device and nothing in particular would get it now
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import NamedTuple

from msgspec import Struct

from moorage.api.meta import Condition
from moorage.api.quantity import Quantity
from moorage.api.resource.v1 import Device, DeviceTaint, ResourceClaim
from moorage.api.tolerations import DeviceName
from moorage.insight.devices.node_selection import NodeSelection
from moorage.insight.messages import taint_text

CountKey = tuple[str, ...]


class DeviceState(StrEnum):
    """Whether a device can be allocated."""

    FREE = "free"
    SHARED = "shared"  # partly allocated; more can be allocated
    TAKEN = "taken"
    BLOCKED = "blocked"  # not allocated, but other devices use what it needs
    TAINTED = "tainted"
    UNUSABLE = "unusable"  # no claim gets it, whatever is freed
    MISSING = "missing"  # allocated, but not published
    UNKNOWN = "unknown"  # claims, or slices, could not be read: it may be allocated, or published


class ClaimId(NamedTuple):
    """The namespace and name of a claim."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class Consumer(NamedTuple):
    """A pod or pod group that may use a claim."""

    kind: str  # pod, podgroup, or the resource with its group
    name: str

    def __str__(self) -> str:
        return f"{self.kind}/{self.name}"


class Holder(Struct, frozen=True):
    """A claim that has a device, or a share of it."""

    claim: ClaimId
    request: str
    is_admin: bool = False
    share_id: str = ""
    consumed: tuple[tuple[str, Quantity], ...] = ()
    consumers: tuple[Consumer, ...] = ()


class CapacityUse(NamedTuple):
    """How much of a capacity the shares of a device use."""

    name: str
    total: Quantity
    used: Quantity
    left: Quantity


class AppliedTaint(NamedTuple):
    """A taint, and the DeviceTaintRule that it comes from, if not from the slice."""

    taint: DeviceTaint
    rule: str = ""

    def __str__(self) -> str:
        return taint_text(self.taint.key, self.taint.value, self.taint.effect)


class CounterUser(NamedTuple):
    """A device that uses counters that another one needs, and the claims that have it."""

    device: DeviceName
    claims: tuple[ClaimId, ...]


class UnavailableReason(NamedTuple):
    """Why a device cannot be allocated."""

    state: DeviceState
    text: str
    users: tuple[CounterUser, ...] = ()


class DeviceUsage(Struct, frozen=True):
    """A device, its holders, and why it cannot be allocated if it cannot."""

    id: DeviceName
    state: DeviceState
    is_open: bool
    node_selection: NodeSelection
    slice_name: str
    device: Device  # as its slice has it, without the taints of rules
    holders: tuple[Holder, ...] = ()
    admins: tuple[Holder, ...] = ()
    capacities: tuple[CapacityUse, ...] = ()
    taints: tuple[AppliedTaint, ...] = ()
    reasons: tuple[UnavailableReason, ...] = ()
    conflict: str = ""  # how claims have more than the device offers
    is_replaced: bool = False  # a newer generation of the pool has it, too


class ClaimState(StrEnum):
    """The state of a claim."""

    PENDING = "pending"
    ALLOCATED = "allocated"
    RESERVED = "reserved"
    DELETING = "deleting"


class RequestSummary(NamedTuple):
    """A request of a claim, and the alternative that was chosen."""

    name: str
    classes: tuple[str, ...]
    number: str  # of devices
    chosen: str = ""


class HeldDevice(Struct, frozen=True):
    """A device that is allocated to a claim."""

    id: DeviceName
    request: str
    node: str  # "" if it is not one node
    is_published: bool | None  # None: unknown, because slices could not be read
    is_admin: bool = False
    share_id: str = ""
    consumed: tuple[tuple[str, Quantity], ...] = ()
    conditions: tuple[Condition, ...] = ()
    conflict: str = ""


class ClaimUsage(Struct, frozen=True):
    """A claim, its requests, its devices, and its consumers."""

    id: ClaimId
    state: ClaimState
    claim: ResourceClaim
    requests: tuple[RequestSummary, ...] = ()
    devices: tuple[HeldDevice, ...] = ()
    owner: Consumer | None = None
    template: str = ""
    consumers: tuple[Consumer, ...] = ()
    nodes: tuple[str, ...] = ()  # where its devices and consumers are


class ClusterUsage(Struct, frozen=True):
    """All devices and claims, sorted by their names."""

    devices: tuple[DeviceUsage, ...]
    claims: tuple[ClaimUsage, ...]
    are_nodes_known: bool  # otherwise each device is evaluated as if its node existed


class StateCounts(NamedTuple):
    """How many devices are in which state."""

    states: Counter[DeviceState]

    @property
    def total(self) -> int:
        """All published devices."""
        return sum(
            number for state, number in self.states.items() if state is not DeviceState.MISSING
        )

    def of(self, state: DeviceState) -> int:
        """Return how many devices are in a state."""
        return self.states[state]


def shown_states(counts: Iterable[StateCounts]) -> tuple[DeviceState, ...]:
    """Return the states to show: unknown only if a device is in that state."""
    has_unknown = any(each.of(DeviceState.UNKNOWN) for each in counts)
    return tuple(each for each in DeviceState if has_unknown or each is not DeviceState.UNKNOWN)


def by_node(holding: DeviceUsage) -> CountKey:
    """Return the nodes that can use a device, and its driver."""
    return str(holding.node_selection), holding.id.driver


def count_states(
    devices: Iterable[DeviceUsage], key: Callable[[DeviceUsage], CountKey]
) -> dict[CountKey, StateCounts]:
    """Return the counts for each key, sorted by key."""
    found: dict[CountKey, StateCounts] = {}
    for holding in devices:
        found.setdefault(key(holding), StateCounts(Counter())).states[holding.state] += 1
    return dict(sorted(found.items()))
