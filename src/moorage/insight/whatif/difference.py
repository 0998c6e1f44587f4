"""Two clusters, planned and compared: what happens to every pod, and which devices are free."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from enum import StrEnum

import msgspec
from msgspec import Struct, field

from moorage.api.core import Pod
from moorage.claims import claims_to_release
from moorage.controllers.pod_control import is_active
from moorage.insight.devices import DeviceState, DeviceUsage, devices_changed, devices_in
from moorage.insight.devices.model import StateCounts, by_node, count_states
from moorage.insight.errors import UnreadError
from moorage.insight.messages import Concern, counted, full_name
from moorage.insight.plan.planner import Plan
from moorage.insight.plan.unknown import unknown_of
from moorage.insight.snapshot.snapshot import Snapshot
from moorage.insight.snapshot.unread import remedy_for, why_unread
from moorage.insight.whatif.changed_cluster import ChangedCluster, ClusterChange, apply
from moorage.insight.whatif.evicted_pods import (
    EvictedPod,
    PodFate,
    RulePreview,
    TaintEviction,
    evicted_again,
    preview_of,
    taint_evictions_of,
)
from moorage.validation.strategy import Context

MakePlan = Callable[[Snapshot], Plan]
_NONE = StateCounts(Counter())
_OF_FREE_DEVICES = ("ResourceSlice", "ResourceClaim")  # what tells which devices are free


class PodChangeKind(StrEnum):
    """How the changes affect a pod."""

    GAINS = "gains"  # gets a node
    LOSES = "loses"  # has no node any more
    MOVES = "moves"  # to another node or other devices
    RESTARTS = "restarts"  # leaves, and comes back to where it was
    WAITS = "waits"  # has no node, for another reason
    LOST = "lost"  # has no controller
    GONE = "gone"  # goes with its node
    DELETED = "deleted"  # on request
    NEW = "new"  # exists only with the changes


WORSE = frozenset({PodChangeKind.LOSES, PodChangeKind.LOST})
_KINDS = {PodFate.LOST: PodChangeKind.LOST, PodFate.DELETED: PodChangeKind.DELETED}


class PodPlacement(Struct, frozen=True, omit_defaults=True):
    """The node and devices of a pod, or why it has none."""

    node: str | None = None
    devices: tuple[str, ...] = ()  # driver/pool/device
    message: str = ""


class PodChange(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """A pod that the changes affect."""

    pod: str
    kind: PodChangeKind = field(name="turn")
    is_worse: bool
    before: PodPlacement | None = None
    after: PodPlacement | None = None
    why: str = ""  # it leaves
    again: str = ""  # why it would have to leave again

    @property
    def is_on_same_node(self) -> bool:
        """Whether only its devices are others."""
        before, after = self.before, self.after
        return before is not None and after is not None and before.node == after.node


class Missing(Struct, frozen=True):
    """A device that claims still have but no slice publishes any more."""

    device: str
    claims: tuple[str, ...]


class FreeDevices(Struct, frozen=True, rename="camel"):
    """How many devices of a driver a node has, and how many are free."""

    node: str
    driver: str
    total_before: int
    total_after: int
    free_before: int
    free_after: int
    is_cordoned: bool = False  # with the changes: new pods cannot use its free devices

    @property
    def is_changed(self) -> bool:
        """Whether the changes make a difference."""
        return (self.total_before, self.free_before) != (self.total_after, self.free_after)


class Difference(Struct, frozen=True, rename="camel"):
    """The effect of changes on pods and devices."""

    pods: tuple[PodChange, ...]
    evictions: tuple[TaintEviction, ...]
    rules: tuple[RulePreview, ...]  # that are new
    devices: tuple[FreeDevices, ...]
    missing: tuple[Missing, ...]
    same: int  # unaffected pods
    leaving_anyway: tuple[str, ...]  # pods that leave without the changes as well
    concerns: tuple[Concern, ...]
    knows_free: bool = True  # whether all devices and claims could be read
    knows_pods: bool = True  # whether all pods could be read

    @property
    def is_worse(self) -> bool:
        """Whether some pod is worse off."""
        return any(each.is_worse for each in self.pods)

    @property
    def pods_text(self) -> str:
        """How many pods are worse off and otherwise different, among those that are known."""
        worse = sum(each.is_worse for each in self.pods)
        others = f"{len(self.pods) - worse} otherwise different"
        which = "" if self.knows_pods else "of the pods that could be read: "
        return f"{which}{counted(worse, 'pod')} worse off, {others}"

    @property
    def free_before(self) -> int | None:
        """How many devices are free without the changes; None if that is not known."""
        return sum(each.free_before for each in self.devices) if self.knows_free else None

    @property
    def free_after(self) -> int | None:
        """How many devices are free with the changes; None if that is not known."""
        return sum(each.free_after for each in self.devices) if self.knows_free else None


def difference(
    snapshot: Snapshot, changes: Iterable[ClusterChange], context: Context, make_plan: MakePlan
) -> Difference:
    """Return the effect of changes, or raise UnknownNameError or TooManyPodsError."""
    after = apply(snapshot, changes, context)
    return compare(apply(snapshot, (), context), after, context, make_plan)


def compare(
    before: ChangedCluster,
    after: ChangedCluster,
    context: Context,
    make_plan: MakePlan,
    *,
    with_devices: bool = True,
) -> Difference:
    """Return how two clusters differ once both are planned; device usage takes a large part."""
    old, new = make_plan(before.snapshot), make_plan(after.snapshot)
    unknown = tuple(_unknown(old, new))
    knows_free = not new.before.unread.hidden(_OF_FREE_DEVICES)
    again = evicted_again(new, context)
    for name in evicted_again(old, context):
        again.pop(name, None)
    placements = _placements_of(old)
    anyway = _evicted(before)
    # A pod that leaves in both clusters is not affected, unless it is deleted.
    departed = {
        name: each
        for name, each in _evicted(after).items()
        if name not in anyway or each.fate is PodFate.DELETED
    }
    pods = tuple(_changes(placements, _placements_of(new), departed, again))
    had, has = _devices_of(old, new, context) if with_devices and knows_free else ((), ())
    missed = _missing_in(had)
    return Difference(
        pods=pods,
        evictions=tuple(
            each
            for d in departed.values()
            for each in taint_evictions_of(d.order.eviction, context.now)
        ),
        rules=tuple(preview_of(each, context.now) for each in after.rules),
        devices=tuple(
            _free_devices(
                had,
                has,
                {node.metadata.name for node in after.snapshot.nodes if node.spec.unschedulable},
            )
        ),
        missing=tuple(
            Missing(device, claims)
            for device, claims in _missing_in(has).items()
            if device not in missed
        ),
        same=len(placements) - sum(each.before is not None for each in pods),
        leaving_anyway=tuple(anyway),
        concerns=tuple(dict.fromkeys((*old.concerns, *new.concerns, *after.concerns, *unknown))),
        knows_free=knows_free,
        knows_pods=not new.before.unread.hidden(("Pod",)),
    )


def _unknown(old: Plan, new: Plan) -> Iterator[Concern]:
    """Yield what is unknown with and without the changes; raise UnreadError for what they cause."""
    waited = {full_name(each.pod) for each in old.undecided}
    for each in new.undecided:
        name = full_name(each.pod)
        if name not in waited and (found := unknown_of(new.before, each.pod)) is not None:
            raise UnreadError(found.hidden, f"what would become of pod {name}")
        if name in waited:
            yield Concern("unknown", f"whether pod {name} gets a node is not known", each.reason)
    if hidden := new.before.unread.hidden(("Pod",)):
        fact = f"{why_unread(hidden)}, so what becomes of other pods is not known"
        yield Concern("unknown", fact, remedy_for(hidden))
    if hidden := new.before.unread.hidden(_OF_FREE_DEVICES):
        fact = f"{why_unread(hidden)}, so which devices are free is not known"
        yield Concern("unknown", fact, remedy_for(hidden))


def _evicted(cluster: ChangedCluster) -> dict[str, EvictedPod]:
    return {full_name(each.pod): each for each in cluster.departures}


# --- pods -------------------------------------------------------------------------------


def _changes(
    before: Mapping[str, PodPlacement],
    after: Mapping[str, PodPlacement],
    departures: Mapping[str, EvictedPod],
    again: Mapping[str, str],
) -> Iterator[PodChange]:
    for name in dict.fromkeys((*before, *after)):
        was, is_, departure = before.get(name), after.get(name), departures.get(name)
        kind = _kind(was, is_, departure)
        if kind is None and name in again:
            kind = PodChangeKind.MOVES
        if kind is not None:
            why = departure.order.why if departure is not None else ""
            is_worse = kind in WORSE or (name in again and was is not None)
            yield PodChange(name, kind, is_worse, was, is_, why, again.get(name, ""))


def _kind(
    was: PodPlacement | None, is_: PodPlacement | None, left: EvictedPod | None
) -> PodChangeKind | None:
    """Return how the changes affect a pod; None if they do not."""
    if was is None:
        return PodChangeKind.NEW
    if is_ is None:
        return PodChangeKind.GONE if left is None else _KINDS.get(left.fate, PodChangeKind.GONE)
    match was.node, is_.node:
        case None, None:
            return PodChangeKind.WAITS if was.message != is_.message else None
        case None, _:
            return PodChangeKind.GAINS
        case _, None:
            return PodChangeKind.LOSES
    if (was.node, was.devices) != (is_.node, is_.devices):
        return PodChangeKind.MOVES
    return None if left is None else PodChangeKind.RESTARTS


def _placements_of(plan: Plan) -> dict[str, PodPlacement]:
    after = plan.after
    by_claim = _devices_by_claim(after)
    messages = {full_name(each.pod): each.message or each.reason for each in plan.pending}
    return {
        name: PodPlacement(
            pod.spec.node_name or None,
            _devices(pod, by_claim) if pod.spec.node_name else (),
            messages.get(name, ""),
        )
        for pod in after.pods
        if is_active(pod) and (name := full_name(pod))
    }


def _devices_by_claim(snapshot: Snapshot) -> dict[tuple[str, str], list[str]]:
    return {
        (claim.metadata.namespace, claim.metadata.name): [
            f"{each.driver}/{each.pool}/{each.device}" for each in allocation.devices.results
        ]
        for claim in snapshot.claims
        if (allocation := claim.status.allocation) is not None
    }


def _devices(pod: Pod, by_claim: Mapping[tuple[str, str], list[str]]) -> tuple[str, ...]:
    """Return the devices of a pod, each once."""
    keys = ((pod.metadata.namespace, name) for name in claims_to_release(pod))
    return tuple(sorted({device for key in keys for device in by_claim.get(key, ())}))


# --- devices ----------------------------------------------------------------------------


def _devices_of(
    old: Plan, new: Plan, context: Context
) -> tuple[tuple[DeviceUsage, ...], tuple[DeviceUsage, ...]]:
    """Return all devices of both plans."""
    before, after = old.after, new.after
    had = devices_in(before, context)
    return had, devices_changed(had, before, after, context)


def _free_devices(
    before: Iterable[DeviceUsage], after: Iterable[DeviceUsage], cordoned: Collection[str]
) -> Iterator[FreeDevices]:
    old, new = count_states(before, by_node), count_states(after, by_node)
    for key in sorted({*old, *new}):
        was, is_ = old.get(key, _NONE), new.get(key, _NONE)
        node, driver = key
        yield FreeDevices(
            node=node,
            driver=driver,
            total_before=was.total,
            total_after=is_.total,
            free_before=was.of(DeviceState.FREE),
            free_after=is_.of(DeviceState.FREE),
            is_cordoned=node in cordoned,
        )


def _missing_in(devices: Iterable[DeviceUsage]) -> dict[str, tuple[str, ...]]:
    """Return the devices that claims have but no slice publishes, with these claims."""
    return {
        str(each.id): tuple(str(holder.claim) for holder in (*each.holders, *each.admins))
        for each in devices
        if each.state is DeviceState.MISSING
    }


def difference_tree(found: Difference) -> dict[str, object]:
    """Return a difference as `moor whatif -o json` prints it."""
    tree = msgspec.to_builtins(found)
    shown = ("pods", "evictions", "rules", "devices", "missing", "leavingAnyway")
    return {
        **{name: tree[name] for name in shown},
        "summary": {
            "worse": sum(each.is_worse for each in found.pods),
            "different": len(found.pods),
            "same": found.same,
            "freeBefore": found.free_before,
            "freeAfter": found.free_after,
        },
    }
