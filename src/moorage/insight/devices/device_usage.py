"""Every device with its state, its holders, and why it cannot be allocated if it cannot."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property

from moorage.allocator.features import Features
from moorage.allocator.ledger import Ledger
from moorage.allocator.pools import Pool, PoolId
from moorage.allocator.rules.consumption import CounterKey, amounts_of
from moorage.allocator.taints import BLOCKING, TaintRules
from moorage.allocator.trace import RejectionCause
from moorage.api.core.node import Node
from moorage.api.quantity import Quantity
from moorage.api.resource.v1 import Device, DeviceCapacity, ResourceSlice
from moorage.api.tolerations import DeviceName
from moorage.insight.devices.availability import DeviceEvaluation, PoolEvaluator, UnseenDevices
from moorage.insight.devices.model import (
    AppliedTaint,
    CapacityUse,
    ClaimId,
    CounterUser,
    DeviceState,
    DeviceUsage,
    Holder,
    UnavailableReason,
)
from moorage.insight.devices.node_selection import NodeIndex, NodeSelection, node_selection_of
from moorage.insight.snapshot.unread import NOTHING_UNREAD, Unread, why_unread
from moorage.kit.checkpoints import checkpoint

HolderIndex = Mapping[DeviceName, list[Holder]]
# Permanent obstacles of a device, as text.
UNUSABLE = {
    RejectionCause.BINDING_CONDITIONS: "has binding conditions; DRADeviceBindingConditions is off",
    RejectionCause.CAPACITY: "a request that names no capacity takes more than its policy allows",
    RejectionCause.COUNTERS_OFF: "consumes counters; DRAPartitionableDevices is off",
    RejectionCause.NODE: "no node that it is for sees it",
    RejectionCause.NODE_OPERATIONS: "its slice skips node operations, which its node cannot do",
}


class DeviceUsages:
    """Collects every device of a cluster with its holders and its state."""

    def __init__(
        self,
        slices: Iterable[ResourceSlice],
        nodes: Iterable[Node],
        *,
        ledger: Ledger,
        holders: HolderIndex,
        features: Features,
        rules: TaintRules,
        unread: Unread = NOTHING_UNREAD,
    ) -> None:
        self._hidden_claims = unread.hidden(("ResourceClaim",))
        self._hidden_slices = unread.hidden(("ResourceSlice",))
        self._plain = {slice_.metadata.name: slice_ for slice_ in slices}
        self.nodes = NodeIndex(nodes)
        self._ledger = ledger
        self._holders = holders
        self.features = features
        self._rules = rules
        applied = [rules.apply(slice_) for slice_ in self._plain.values()]
        self._judge = PoolEvaluator(applied, self.nodes, ledger, features)

    def devices(self) -> Iterator[DeviceUsage]:
        """Yield every device of every slice, then those that only claims name."""
        published: set[DeviceName] = set()
        for pool_id in sorted(self._judge.slices):
            for holding in self._of_pool(pool_id):
                published.add(holding.id)
                yield holding
        for device_id in sorted(self._holders.keys() - published):
            yield self._missing(device_id)

    def _of_pool(self, pool_id: PoolId) -> Iterator[DeviceUsage]:
        judged = self._judge.judge(pool_id)
        slices = [self._plain[each.metadata.name] for each in self._judge.slices[pool_id]]
        absence = UnseenDevices(slices, judged, self.nodes, self.features)
        shortages: dict[int, CounterShortages] = {}
        for slice_ in slices:
            checkpoint()
            added = self._rules.taints(slice_)
            for place, device in enumerate(slice_.spec.devices or ()):
                judgement = judged.devices.get((slice_.metadata.name, place))
                if judgement is None:
                    why = absence.reason(slice_, device)
                    reasons: tuple[UnavailableReason, ...] = (
                        UnavailableReason(DeviceState.UNUSABLE, why),
                    )
                else:
                    reasons = tuple(self._reasons(judgement, device, shortages))
                device_id = DeviceName(*pool_id, device.name)
                # The device that replaced an old one has its holders.
                is_replaced = judgement is None and absence.is_replaced(slice_, device)
                yield self._holding(
                    device_id,
                    slice_,
                    device,
                    marks=(
                        *(AppliedTaint(taint) for taint in device.taints),
                        *(AppliedTaint(each.taint, each.rule) for each in added[place]),
                    ),
                    holders=() if is_replaced else tuple(self._holders.get(device_id, ())),
                    reasons=reasons,
                    is_open=judgement is not None and not judgement.causes,
                    is_replaced=is_replaced,
                )

    def _holding(
        self,
        device_id: DeviceName,
        slice_: ResourceSlice,
        device: Device,
        *,
        marks: tuple[AppliedTaint, ...],
        holders: tuple[Holder, ...],
        reasons: tuple[UnavailableReason, ...],
        is_open: bool,
        is_replaced: bool,
    ) -> DeviceUsage:
        owners = tuple(holder for holder in holders if not holder.is_admin)
        rooms = tuple(_rooms(device, owners)) if self.features.consumable_capacity else ()
        reasons = (*reasons, *self._taint_reasons(marks))
        state = self._state(owners, rooms, reasons, device, is_open=is_open)
        if state is DeviceState.FREE and self._hidden_claims:
            state = DeviceState.UNKNOWN
            reasons = (*reasons, UnavailableReason(state, why_unread(self._hidden_claims)))
        return DeviceUsage(
            id=device_id,
            state=state,
            is_open=is_open,
            node_selection=node_selection_of(device, slice_),
            slice_name=slice_.metadata.name,
            device=device,
            holders=owners,
            admins=tuple(holder for holder in holders if holder.is_admin),
            capacities=rooms,
            taints=marks,
            reasons=reasons,
            conflict=self._conflict(owners, rooms),
            is_replaced=is_replaced,
        )

    def _state(
        self,
        owners: tuple[Holder, ...],
        rooms: tuple[CapacityUse, ...],
        reasons: tuple[UnavailableReason, ...],
        device: Device,
        *,
        is_open: bool,
    ) -> DeviceState:
        if owners:
            is_whole = any(not owner.share_id for owner in owners)
            if is_whole or not self.features.consumable_capacity:
                return DeviceState.TAKEN
            return DeviceState.SHARED if is_open or _has_room(rooms, device) else DeviceState.TAKEN
        states = {reason.state for reason in reasons}
        for state in (DeviceState.UNUSABLE, DeviceState.BLOCKED, DeviceState.TAINTED):
            if state in states:
                return state
        return DeviceState.FREE

    def _taint_reasons(self, marks: Iterable[AppliedTaint]) -> Iterator[UnavailableReason]:
        if not self.features.device_taints:
            return
        for mark in marks:
            if mark.taint.effect in BLOCKING:
                rule = f" (rule {mark.rule})" if mark.rule else ""
                yield UnavailableReason(DeviceState.TAINTED, f"{mark}{rule}")

    def _reasons(
        self, judgement: DeviceEvaluation, device: Device, pools: dict[int, CounterShortages]
    ) -> Iterator[UnavailableReason]:
        """Yield what speaks against a device, apart from taints and holders."""
        for cause, detail in judgement.causes:
            match cause:
                case RejectionCause.TAINT | RejectionCause.IN_USE:
                    pass
                case RejectionCause.FAULT:
                    yield UnavailableReason(DeviceState.UNUSABLE, detail)
                case RejectionCause.LEFT:
                    yield from self._shortages(judgement.pool, pools).counters(device)
                case RejectionCause.COMPATIBILITY:
                    yield from self._shortages(judgement.pool, pools).groups(device)
                case _:
                    yield UnavailableReason(DeviceState.UNUSABLE, UNUSABLE.get(cause, cause.value))

    def _shortages(self, pool: Pool | None, pools: dict[int, CounterShortages]) -> CounterShortages:
        assert pool is not None
        if id(pool) not in pools:
            pools[id(pool)] = CounterShortages(pool, self._ledger)
        return pools[id(pool)]

    def _conflict(self, owners: tuple[Holder, ...], rooms: tuple[CapacityUse, ...]) -> str:
        wholes = [owner for owner in owners if not owner.share_id]
        if len(owners) > 1 and (wholes or not self.features.consumable_capacity):
            return f"{len(owners)} holders of a device that has one"
        over = [room.name for room in rooms if room.left.sign < 0]
        return f"shares have more of {', '.join(over)} than there is" if over else ""

    def _missing(self, device_id: DeviceName) -> DeviceUsage:
        found = self._holders[device_id]
        owners = tuple(holder for holder in found if not holder.is_admin)
        state, why = DeviceState.MISSING, "no slice has it"
        if self._hidden_slices:
            state, why = DeviceState.UNKNOWN, why_unread(self._hidden_slices)
        return DeviceUsage(
            id=device_id,
            state=state,
            is_open=False,
            node_selection=NodeSelection(),
            slice_name="",
            device=Device(name=device_id.device),
            holders=owners,
            admins=tuple(holder for holder in found if holder.is_admin),
            reasons=(UnavailableReason(state, why),),
            conflict=self._conflict(owners, ()),
        )


# --- shared devices ---------------------------------------------------------------------


def _rooms(device: Device, owners: Iterable[Holder]) -> Iterator[CapacityUse]:
    """Yield what shares use of each capacity; nothing for a device that cannot be shared."""
    shares = [owner for owner in owners if owner.share_id]
    if not shares and not device.allow_multiple_allocations:
        return
    for name, capacity in sorted(device.capacity.items()):
        used = Quantity.ZERO
        for share in shares:
            for consumed_name, amount in share.consumed:
                if consumed_name == name:
                    used = used + amount
        yield CapacityUse(name, capacity.value, used, capacity.value - used)


def _has_room(rooms: Iterable[CapacityUse], device: Device) -> bool:
    """Return whether enough of every capacity is left for some request."""
    if not device.allow_multiple_allocations:
        return False
    return all(_can_serve(room.left, device.capacity[room.name]) for room in rooms)


def _can_serve(left: Quantity, capacity: DeviceCapacity) -> bool:
    policy = capacity.request_policy
    if policy is not None and policy.valid_range is not None and policy.valid_range.min is not None:
        return policy.valid_range.min <= left
    if policy is not None and policy.valid_values:
        return min(policy.valid_values) <= left
    return left.sign > 0


# --- counters and compatibility groups --------------------------------------------------


class CounterShortages:
    """The counters of a pool that its allocated devices consume."""

    def __init__(self, pool: Pool, ledger: Ledger) -> None:
        self._pool = pool
        self._entries = ledger.taken(pool.id)

    def counters(self, device: Device) -> tuple[UnavailableReason, ...]:
        """Return which counters of the pool have too little left for a device.

        An allocated device has consumed its counters already; then its capacity is what is short.
        """
        if device.name in self._entries:
            return ()
        return tuple(self._overdrawn or self._short(device))

    def groups(self, device: Device) -> tuple[UnavailableReason, ...]:
        """Return which allocated devices a device is not compatible with."""
        found = []
        for consumption in device.consumes_counters:
            users = self._users_of_set.get(consumption.counter_set, ())
            mine = set(consumption.compatibility_groups)
            if any(not mine & set(theirs) for theirs, _ in users):
                named = ", ".join(consumption.compatibility_groups) or "none"
                text = (
                    f"compatibility groups {named} on counter set {consumption.counter_set}: "
                    "devices in use there have no group in common with it"
                )
                found.append(
                    UnavailableReason(DeviceState.BLOCKED, text, tuple(user for _, user in users))
                )
        return tuple(found)

    def _short(self, device: Device) -> Iterator[UnavailableReason]:
        needs: dict[CounterKey, Quantity] = {}
        for consumption in device.consumes_counters:
            for name, counter in consumption.counters.items():
                key = (consumption.counter_set, name)
                needs[key] = needs.get(key, Quantity.ZERO) + counter.value
        for key, need in needs.items():
            total = self._totals.get(key)
            if total is None:
                continue
            left = total - self._used.get(key, Quantity.ZERO)
            if left < need:
                text = f"counter {key[0]}/{key[1]}: needs {need}, {left} of {total} left"
                yield UnavailableReason(DeviceState.BLOCKED, text, self._users.get(key, ()))

    @cached_property
    def _overdrawn(self) -> list[UnavailableReason]:
        """Counters that are overdrawn, which blocks every device that consumes any."""
        return [
            UnavailableReason(
                DeviceState.BLOCKED,
                f"counter {key[0]}/{key[1]} is overdrawn: {used} of {self._totals[key]} used",
                self._users.get(key, ()),
            )
            for key, used in self._used.items()
            if key in self._totals and self._totals[key] < used
        ]

    @cached_property
    def _totals(self) -> dict[CounterKey, Quantity]:
        return {
            (name, counter_name): counter.value
            for name, counter_set in self._pool.counter_sets.items()
            for counter_name, counter in counter_set.counters.items()
        }

    @cached_property
    def _taken(self) -> list[tuple[Device, CounterUser]]:
        spots = (*self._pool.published, *self._pool.others)
        return [
            (spot.device, self._user(spot.device.name))
            for spot in spots
            if spot.device.name in self._entries and spot.device.consumes_counters
        ]

    @cached_property
    def _used(self) -> dict[CounterKey, Quantity]:
        used: dict[CounterKey, Quantity] = {}
        for device, _ in self._taken:
            for consumption in device.consumes_counters:
                for name, counter in consumption.counters.items():
                    key = (consumption.counter_set, name)
                    used[key] = used.get(key, Quantity.ZERO) + counter.value
        return used

    @cached_property
    def _users(self) -> dict[CounterKey, tuple[CounterUser, ...]]:
        users: dict[CounterKey, dict[CounterUser, None]] = {}
        for device, user in self._taken:
            for key, _ in amounts_of(device):
                users.setdefault(key, {})[user] = None
        return {key: tuple(found) for key, found in users.items()}

    @cached_property
    def _users_of_set(self) -> dict[str, list[tuple[tuple[str, ...], CounterUser]]]:
        users: dict[str, list[tuple[tuple[str, ...], CounterUser]]] = {}
        for device, user in self._taken:
            for consumption in device.consumes_counters:
                entry = (consumption.compatibility_groups, user)
                users.setdefault(consumption.counter_set, []).append(entry)
        return users

    def _user(self, name: str) -> CounterUser:
        entries = self._entries[name]
        claims = tuple(dict.fromkeys(ClaimId(*entry.claim) for entry in entries))
        return CounterUser(DeviceName(*self._pool.id, name), claims)
