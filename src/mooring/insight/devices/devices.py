"""Every device with its state, who has it, and why it cannot be had."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from mooring.allocator.features import Features
from mooring.allocator.ledger import Ledger
from mooring.allocator.pools import Pool, PoolId
from mooring.allocator.rules.taints import BLOCKING
from mooring.allocator.taintrules import TaintRules
from mooring.allocator.trace import Cause
from mooring.api.core.node import Node
from mooring.api.quantity import Quantity
from mooring.api.resource.v1 import Device, DeviceCapacity, ResourceSlice
from mooring.insight.devices.absence import Absence
from mooring.insight.devices.judging import Judge, Judgement
from mooring.insight.devices.model import DeviceHolding, DeviceId, Holder, Mark, Reason, Room, State
from mooring.insight.devices.places import Nodes, Place, place_of
from mooring.insight.devices.shortage import Shortages

HolderIndex = Mapping[DeviceId, list[Holder]]

# What speaks against a device for good, in words.
UNUSABLE = {
    Cause.BINDING_CONDITIONS: "has binding conditions; DRADeviceBindingConditions is off",
    Cause.CAPACITY: "a request that names no capacity takes more than its policy allows",
    Cause.COUNTERS_OFF: "consumes counters; DRAPartitionableDevices is off",
    Cause.NODE: "no node that it is for sees it",
    Cause.NODE_OPERATIONS: "its slice leaves out node operations, which its node cannot do",
}


class DeviceBook:
    """Puts together what is known of the devices of a cluster."""

    def __init__(
        self,
        slices: Iterable[ResourceSlice],
        nodes: Iterable[Node],
        *,
        ledger: Ledger,
        holders: HolderIndex,
        features: Features,
        rules: TaintRules,
    ) -> None:
        self._plain = {slice_.metadata.name: slice_ for slice_ in slices}
        self.nodes = Nodes(nodes)
        self._ledger = ledger
        self._holders = holders
        self.features = features
        self._rules = rules
        applied = [rules.apply(slice_) for slice_ in self._plain.values()]
        self._judge = Judge(applied, self.nodes, ledger, features)

    def devices(self) -> Iterator[DeviceHolding]:
        """Give every device of every slice, then those that only claims know."""
        published: set[DeviceId] = set()
        for pool_id in sorted(self._judge.slices):
            for holding in self._of_pool(pool_id):
                published.add(holding.id)
                yield holding
        for device_id in sorted(self._holders.keys() - published):
            yield self._missing(device_id)

    def _of_pool(self, pool_id: PoolId) -> Iterator[DeviceHolding]:
        judged = self._judge.judge(pool_id)
        slices = [self._plain[each.metadata.name] for each in self._judge.slices[pool_id]]
        absence = Absence(slices, judged, self.nodes, self.features)
        shortages: dict[int, Shortages] = {}
        for slice_ in slices:
            added = self._rules.taints(slice_)
            for place, device in enumerate(slice_.spec.devices or ()):
                judgement = judged.devices.get((slice_.metadata.name, place))
                if judgement is None:
                    why = absence.reason(slice_, device)
                    reasons: tuple[Reason, ...] = (Reason(State.UNUSABLE, why),)
                else:
                    reasons = tuple(self._reasons(judgement, device, shortages))
                device_id = DeviceId(*pool_id, device.name)
                # What replaced an old device has its holders.
                is_replaced = judgement is None and absence.is_replaced(slice_, device)
                yield self._holding(
                    device_id,
                    slice_,
                    device,
                    marks=(
                        *(Mark(taint) for taint in device.taints),
                        *(Mark(each.taint, each.rule) for each in added[place]),
                    ),
                    holders=() if is_replaced else tuple(self._holders.get(device_id, ())),
                    reasons=reasons,
                    is_open=judgement is not None and not judgement.causes,
                    is_replaced=is_replaced,
                )

    def _holding(
        self,
        device_id: DeviceId,
        slice_: ResourceSlice,
        device: Device,
        *,
        marks: tuple[Mark, ...],
        holders: tuple[Holder, ...],
        reasons: tuple[Reason, ...],
        is_open: bool,
        is_replaced: bool,
    ) -> DeviceHolding:
        owners = tuple(holder for holder in holders if not holder.is_admin)
        rooms = tuple(_rooms(device, owners)) if self.features.consumable_capacity else ()
        reasons = (*reasons, *self._taint_reasons(marks))
        return DeviceHolding(
            id=device_id,
            state=self._state(owners, rooms, reasons, device, is_open=is_open),
            is_open=is_open,
            place=place_of(device, slice_),
            slice_name=slice_.metadata.name,
            device=device,
            holders=owners,
            admins=tuple(holder for holder in holders if holder.is_admin),
            rooms=rooms,
            marks=marks,
            reasons=reasons,
            conflict=self._conflict(owners, rooms),
            is_replaced=is_replaced,
        )

    def _state(
        self,
        owners: tuple[Holder, ...],
        rooms: tuple[Room, ...],
        reasons: tuple[Reason, ...],
        device: Device,
        *,
        is_open: bool,
    ) -> State:
        if owners:
            is_whole = any(not owner.share_id for owner in owners)
            if is_whole or not self.features.consumable_capacity:
                return State.TAKEN
            return State.SHARED if is_open or _has_room(rooms, device) else State.TAKEN
        states = {reason.state for reason in reasons}
        for state in (State.UNUSABLE, State.BLOCKED, State.TAINTED):
            if state in states:
                return state
        return State.FREE

    def _taint_reasons(self, marks: Iterable[Mark]) -> Iterator[Reason]:
        if not self.features.device_taints:
            return
        for mark in marks:
            if mark.taint.effect in BLOCKING:
                rule = f" (rule {mark.rule})" if mark.rule else ""
                yield Reason(State.TAINTED, f"{mark}{rule}")

    def _reasons(
        self, judgement: Judgement, device: Device, pools: dict[int, Shortages]
    ) -> Iterator[Reason]:
        """Give what speaks against a device; taints and holders are told elsewhere."""
        for cause, detail in judgement.causes:
            match cause:
                case Cause.TAINT | Cause.IN_USE:
                    pass
                case Cause.FAULT:
                    yield Reason(State.UNUSABLE, detail)
                case Cause.LEFT:
                    yield from self._shortages(judgement.pool, pools).counters(device)
                case Cause.COMPATIBILITY:
                    yield from self._shortages(judgement.pool, pools).groups(device)
                case _:
                    yield Reason(State.UNUSABLE, UNUSABLE.get(cause, cause.value))

    def _shortages(self, pool: Pool | None, pools: dict[int, Shortages]) -> Shortages:
        assert pool is not None
        if id(pool) not in pools:
            pools[id(pool)] = Shortages(pool, self._ledger)
        return pools[id(pool)]

    def _conflict(self, owners: tuple[Holder, ...], rooms: tuple[Room, ...]) -> str:
        wholes = [owner for owner in owners if not owner.share_id]
        if len(owners) > 1 and (wholes or not self.features.consumable_capacity):
            return f"{len(owners)} holders of a device that has one"
        over = [room.name for room in rooms if room.left.sign < 0]
        return f"shares have more of {', '.join(over)} than there is" if over else ""

    def _missing(self, device_id: DeviceId) -> DeviceHolding:
        found = self._holders[device_id]
        owners = tuple(holder for holder in found if not holder.is_admin)
        return DeviceHolding(
            id=device_id,
            state=State.MISSING,
            is_open=False,
            place=Place(),
            slice_name="",
            device=Device(name=device_id.device),
            holders=owners,
            admins=tuple(holder for holder in found if holder.is_admin),
            reasons=(Reason(State.MISSING, "no slice has it"),),
            conflict=self._conflict(owners, ()),
        )


# --- shares -------------------------------------------------------------------------------------


def _rooms(device: Device, owners: Iterable[Holder]) -> Iterator[Room]:
    """Give what shares have of each capacity; nothing for a device that nobody can share."""
    shares = [owner for owner in owners if owner.share_id]
    if not shares and not device.allow_multiple_allocations:
        return
    for name, capacity in sorted(device.capacity.items()):
        used = Quantity.ZERO
        for share in shares:
            for consumed_name, amount in share.consumed:
                if consumed_name == name:
                    used = used + amount
        yield Room(name, capacity.value, used, capacity.value - used)


def _has_room(rooms: Iterable[Room], device: Device) -> bool:
    """Return whether of every capacity as much is left as some request must take."""
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
