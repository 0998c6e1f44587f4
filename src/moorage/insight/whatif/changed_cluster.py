"""A snapshot after changes, once every pod that has to leave has left.

1. The changes are written into the snapshot, as kubectl would.
2. Pods are evicted because of taints of nodes and of devices; also those whose toleration ends
   later.
3. Claims follow. Controllers create their pods again, without a node.

What would happen without the changes happens as well: the unchanged cluster is `apply` with none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from moorage.api.core import Node, Pod
from moorage.api.core.placement import Taint
from moorage.api.gates import Gate
from moorage.api.resource.v1 import DeviceTaintRule, DeviceTaintRuleSpec, ResourceSlice
from moorage.api.tolerations import NONE
from moorage.claims import Eviction, as_evicting, counts_of, rule_status
from moorage.controllers.pod_control import is_active
from moorage.insight.errors import UnknownNameError, UnreadError
from moorage.insight.messages import Concern, full_name, listed
from moorage.insight.snapshot.snapshot import Snapshot, overlay
from moorage.insight.whatif.evicted_pods import (
    EvictedPod,
    EvictionOrder,
    PodFate,
    RuleOutlook,
    evict,
    evictions_in,
    find_node_evictions,
    is_static,
    is_tied_to_node,
    marked_devices,
    recreated,
    released,
    without_claims,
)
from moorage.scheduler.features import Features
from moorage.validation.strategy import Context


class AddObjects(Struct, frozen=True):
    """Apply objects, as kubectl would."""

    objects: Snapshot


class RemoveNodes(Struct, frozen=True):
    """Remove nodes, with their slices and pods."""

    names: tuple[str, ...]


class CordonNode(Struct, frozen=True):
    """Cordon a node."""

    name: str


class DrainNode(Struct, frozen=True):
    """Drain a node: cordon it and evict its pods, except daemons and static pods."""

    name: str


class TaintNode(Struct, frozen=True):
    """Taint a node; the taint replaces one with the same key and effect."""

    name: str
    taint: Taint


class DeletePods(Struct, frozen=True):
    """Delete pods, by namespace and name."""

    names: tuple[str, ...]


class DeleteClaims(Struct, frozen=True):
    """Delete claims, by namespace and name; claims in use stay until they are unused."""

    names: tuple[str, ...]


class ReplaceSlices(Struct, frozen=True):
    """Let drivers publish these slices and no others, as after an upgrade."""

    drivers: tuple[str, ...]
    slices: tuple[ResourceSlice, ...]


class AddTaintRule(Struct, frozen=True):
    """Add a taint rule, which replaces one of the same name."""

    rule: DeviceTaintRule


class RemoveTaintRule(Struct, frozen=True):
    """Remove a taint rule, with its taints."""

    name: str


ClusterChange = (
    AddObjects
    | RemoveNodes
    | CordonNode
    | DrainNode
    | TaintNode
    | DeletePods
    | DeleteClaims
    | ReplaceSlices
    | AddTaintRule
    | RemoveTaintRule
)


class ChangedCluster(Struct, frozen=True):
    """A cluster after changes, and the pods that were evicted."""

    snapshot: Snapshot
    departures: tuple[EvictedPod, ...] = ()
    rules: tuple[RuleOutlook, ...] = ()  # that are new
    concerns: tuple[Concern, ...] = ()


def apply(snapshot: Snapshot, changes: Iterable[ClusterChange], context: Context) -> ChangedCluster:
    """Return the cluster after changes, or raise UnknownNameError or UnreadError."""
    edited = Edited(snapshot, context)
    for change in changes:
        edited.make(change)
    known = {rule.metadata.name: rule.spec for rule in snapshot.taint_rules}
    return _Settling(edited, context, known).cluster()


_KINDS: Final = {
    "node": "Node",
    "pod": "Pod",
    "claim": "ResourceClaim",
    "taint rule": "DeviceTaintRule",
}

# --- changes written into the snapshot --------------------------------------------------


class Edited:
    """A snapshot with changes in it, and the pods that have to leave."""

    def __init__(self, snapshot: Snapshot, context: Context) -> None:
        self.snapshot = snapshot
        self.orders: dict[str, EvictionOrder] = {}  # by the full name of the pod
        self.deleted_claims: set[str] = set()
        self.concerns: list[Concern] = []
        self._now = context.now

    def make(self, change: ClusterChange) -> None:
        """Apply a change, or raise UnknownNameError."""
        match change:
            case AddObjects(objects):
                self._add(objects)
            case RemoveNodes(names):
                for name in names:
                    self._remove_node(change, name)
            case CordonNode(name):
                self._edit_node(change, name, _cordoned)
            case DrainNode(name):
                self._drain(change, name)
            case TaintNode(name, taint):
                new = replace(taint, time_added=taint.time_added or self._now.truncated())
                self._edit_node(change, name, lambda node: _tainted(node, new))
            case DeletePods(names):
                for name in names:
                    self._check(change, "pod", name, self.snapshot.pods)
                    self.orders[name] = EvictionOrder("it is deleted", is_asked_for=True)
            case DeleteClaims(names):
                for name in names:
                    self._check(change, "claim", name, self.snapshot.claims)
                    self.deleted_claims.add(name)
            case ReplaceSlices(drivers, slices):
                self._replace_slices(drivers, slices)
            case AddTaintRule(rule):
                self._add(Snapshot(taint_rules=(rule,)))
            case RemoveTaintRule(name):
                self._check(change, "taint rule", name, self.snapshot.taint_rules)
                rules = (r for r in self.snapshot.taint_rules if r.metadata.name != name)
                self.snapshot = replace(self.snapshot, taint_rules=tuple(rules))

    def _add(self, objects: Snapshot) -> None:
        added, concerns = overlay(self.snapshot, objects)
        self.snapshot = self.snapshot.with_objects(added.objects())
        self.concerns += concerns

    def _replace_slices(self, drivers: tuple[str, ...], slices: tuple[ResourceSlice, ...]) -> None:
        known = {each.spec.driver for each in self.snapshot.slices}
        for driver in drivers:
            if driver not in known:
                fact = f"no slice of {driver} is there so far"
                self.concerns.append(Concern("new-driver", fact, "nothing is replaced"))
        kept = (each for each in self.snapshot.slices if each.spec.driver not in drivers)
        self.snapshot = replace(self.snapshot, slices=(*kept, *slices))

    def _check(self, change: ClusterChange, noun: str, name: str, known: Iterable[Any]) -> None:
        names = set(map(full_name, known))
        if name in names:
            return
        space = name.partition("/")[0] if "/" in name else ""
        if hidden := self.snapshot.unread.hidden((_KINDS[noun],), space):
            raise UnreadError(hidden, f"whether {noun} {name} exists")
        raise UnknownNameError(change, noun, name, names)

    def _edit_node(self, change: ClusterChange, name: str, edit: Callable[[Node], Node]) -> None:
        self._check(change, "node", name, self.snapshot.nodes)
        nodes = (edit(n) if n.metadata.name == name else n for n in self.snapshot.nodes)
        self.snapshot = replace(self.snapshot, nodes=tuple(nodes))

    def _remove_node(self, change: ClusterChange, name: str) -> None:
        self._check(change, "node", name, self.snapshot.nodes)
        nodes = tuple(n for n in self.snapshot.nodes if n.metadata.name != name)
        slices = tuple(s for s in self.snapshot.slices if s.spec.node_name != name)
        self.snapshot = replace(self.snapshot, nodes=nodes, slices=slices)
        for pod in self._pods_on(name):
            self.orders.setdefault(full_name(pod), EvictionOrder(f"{name} is removed"))

    def _drain(self, change: ClusterChange, name: str) -> None:
        self._edit_node(change, name, _cordoned)
        for pod in self._pods_on(name):
            if not is_tied_to_node(pod):
                self.orders.setdefault(full_name(pod), EvictionOrder(f"{name} is drained"))

    def _pods_on(self, node: str) -> Iterable[Pod]:
        return [p for p in self.snapshot.pods if p.spec.node_name == node and is_active(p)]


def _cordoned(node: Node) -> Node:
    # The cluster adds this taint by itself; daemons tolerate it.
    taint = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
    return _tainted(replace(node, spec=replace(node.spec, unschedulable=True)), taint)


def _tainted(node: Node, taint: Taint) -> Node:
    others = (
        each for each in node.spec.taints if (each.key, each.effect) != (taint.key, taint.effect)
    )
    return replace(node, spec=replace(node.spec, taints=(*others, taint)))


# --- what follows -----------------------------------------------------------------------


class _Settling:
    """Works out what follows from changes."""

    def __init__(
        self, edited: Edited, context: Context, known: Mapping[str, DeviceTaintRuleSpec]
    ) -> None:
        self._known_rules = known
        self._edited = edited
        self._snapshot = edited.snapshot
        self._context = context
        self._features = Features.of(context.gates)
        self._nodes = {node.metadata.name: node for node in edited.snapshot.nodes}

    def cluster(self) -> ChangedCluster:
        """Return the cluster after all consequences."""
        departures = tuple(self._departures())
        claims = released(
            self._snapshot.claims,
            gone_uids={each.pod.metadata.uid for each in departures},
            deleted=self._edited.deleted_claims,
            now=self._context.now,
            features=self._features.claims,
        )
        pods = without_claims(self._pods_after(departures), claims.gone)
        return ChangedCluster(
            replace(self._snapshot, pods=tuple(pods), claims=claims.kept),
            departures,
            tuple(self._outlook(r) for r in self._new_rules() if self._features.taint_rules),
            (*self._edited.concerns, *_held_back(claims.held_back), *self._without_effect()),
        )

    def _pods_after(self, departures: Iterable[EvictedPod]) -> list[Pod]:
        gone = {id(each.pod) for each in departures}
        staying = [pod for pod in self._snapshot.pods if id(pod) not in gone]
        # Pods created again are the youngest, so they are scheduled last.
        return staying + [recreated(each.pod) for each in departures if each.fate is PodFate.BACK]

    def _departures(self) -> Iterable[EvictedPod]:
        """Yield the pods that leave: on request, or because of their node or devices."""
        orders = dict(self._edited.orders)
        staying = [p for p in self._snapshot.pods if is_active(p) and full_name(p) not in orders]
        for on_node in find_node_evictions(staying, self._nodes, now=self._context.now):
            why = f"{on_node.pod.spec.node_name} is tainted"
            orders[full_name(on_node.pod)] = EvictionOrder(why, eviction=on_node)
        staying = [pod for pod in staying if full_name(pod) not in orders]
        for eviction in self._evictions(staying, self._rules()):
            orders[full_name(eviction.pod)] = EvictionOrder(
                _taint_reason(eviction), eviction=eviction
            )
        for pod in self._snapshot.pods:
            # A static pod comes back at once, as long as its node exists.
            is_back = is_static(pod) and pod.spec.node_name in self._nodes
            if (order := orders.get(full_name(pod))) is not None and not is_back:
                yield evict(pod, order, self._nodes)

    def _new_rules(self) -> Iterable[DeviceTaintRule]:
        for rule in self._snapshot.taint_rules:
            if self._known_rules.get(rule.metadata.name) != rule.spec:
                yield rule

    def _without_effect(self) -> Iterable[Concern]:
        names = [rule.metadata.name for rule in self._new_rules()]
        if names and not self._features.taint_rules:
            fact = f"DeviceTaintRule {listed(names)} taints nothing"
            yield Concern("rules-off", fact, f"the gate {Gate.DRA_DEVICE_TAINT_RULES} is off")

    def _rules(self) -> tuple[DeviceTaintRule, ...]:
        return self._snapshot.taint_rules if self._features.taint_rules else ()

    def _evictions(
        self, pods: Iterable[Pod], rules: Sequence[DeviceTaintRule]
    ) -> tuple[Eviction, ...]:
        if not self._features.allocator.device_taints:
            return ()
        return evictions_in(self._snapshot, pods, rules, self._context)

    def _outlook(self, rule: DeviceTaintRule) -> RuleOutlook:
        effect = rule.spec.taint.effect
        # As in Kubernetes, other rules do not matter for a preview.
        rules = [as_evicting(rule)] if effect == NONE else self._rules()
        pods = filter(is_active, self._snapshot.pods)
        evictions = tuple(
            each for each in self._evictions(pods, rules) if each.is_because_of(rule.metadata.name)
        )
        devices = marked_devices(self._snapshot, rules, self._context)
        counts = counts_of(rule, evictions, devices, self._snapshot.claims)
        return RuleOutlook(rule, rule_status(effect, counts), evictions)


def _taint_reason(eviction: Eviction) -> str:
    cause = min(eviction.causes, key=lambda cause: cause.when.instant)
    return f"{cause.device} is tainted"


def _held_back(names: tuple[str, ...]) -> Iterable[Concern]:
    if names:
        yield Concern(
            "claims-in-use",
            f"{listed(names)}: deleted only once the pods that use it are gone",
            "until then it keeps its devices",
        )
