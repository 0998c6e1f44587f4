"""A snapshot after changes, once every pod that has to leave has left.

1. The changes are written.
2. Pods leave because of taints of nodes, and because of taints of devices; also those that have
   yet to leave when their toleration ends.
3. Claims follow. Pods that controllers want are there again, without a node.

What was to happen anyway happens also without changes: a world without them is `apply` with none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct
from msgspec.structs import replace

from mooring.allocator.taintrules import TaintRules
from mooring.api.core import Pod
from mooring.api.devicetaints import NONE
from mooring.api.gates import Gate
from mooring.api.resource.v1 import DeviceTaintRule, DeviceTaintRuleSpec
from mooring.cel.device import DeviceCompiler
from mooring.cel.device import Features as CelFeatures
from mooring.claims import (
    Eviction,
    MarkedDevices,
    RuleStatus,
    as_evicting,
    counts_of,
    find_evictions,
    rule_status,
)
from mooring.controllers.podstates import is_active
from mooring.insight.concerns import Concern, full_name, listed
from mooring.insight.snapshot.snapshot import Snapshot
from mooring.insight.whatif.changes import Change
from mooring.insight.whatif.departures import (
    Departure,
    Fate,
    Order,
    depart,
    is_static,
    made_anew,
    released,
    without_claims,
)
from mooring.insight.whatif.editing import Edited
from mooring.insight.whatif.nodetaints import find_node_evictions
from mooring.scheduler.features import Features
from mooring.validation.context import Context


class RuleOutlook(Struct, frozen=True):
    """A rule, what Kubernetes writes into its status first, and who leaves because of it.

    For the effect None these are the pods that would leave if it were NoExecute.
    """

    rule: DeviceTaintRule
    status: RuleStatus
    evictions: tuple[Eviction, ...]


class World(Struct, frozen=True):
    """A cluster, and what happened to its pods on the way."""

    snapshot: Snapshot
    departures: tuple[Departure, ...] = ()
    rules: tuple[RuleOutlook, ...] = ()  # that are new
    concerns: tuple[Concern, ...] = ()


def apply(snapshot: Snapshot, changes: Iterable[Change], context: Context) -> World:
    """Return the world after changes, or raise UnknownNameError."""
    edited = Edited(snapshot, context)
    for change in changes:
        edited.make(change)
    known = {rule.metadata.name: rule.spec for rule in snapshot.taint_rules}
    return _Settling(edited, context, known).world()


class _Settling:
    """Lets follow what follows from changes."""

    def __init__(
        self, edited: Edited, context: Context, known: Mapping[str, DeviceTaintRuleSpec]
    ) -> None:
        self._known_rules = known
        self._edited = edited
        self._snapshot = edited.snapshot
        self._context = context
        self._features = Features.of(context.gates)
        self._nodes = {node.metadata.name: node for node in edited.snapshot.nodes}

    def world(self) -> World:
        """Return the world in which everything has followed."""
        departures = tuple(self._departures())
        claims = released(
            self._snapshot.claims,
            gone_uids={each.pod.metadata.uid for each in departures},
            deleted=self._edited.deleted_claims,
            now=self._context.now,
            features=self._features.claims,
        )
        pods = without_claims(self._pods_after(departures), claims.gone)
        return World(
            replace(self._snapshot, pods=tuple(pods), claims=claims.kept),
            departures,
            tuple(self._outlook(r) for r in self._new_rules() if self._features.taint_rules),
            (*self._edited.concerns, *_held_back(claims.held_back), *self._without_effect()),
        )

    def _pods_after(self, departures: Iterable[Departure]) -> list[Pod]:
        gone = {id(each.pod) for each in departures}
        staying = [pod for pod in self._snapshot.pods if id(pod) not in gone]
        # Those that are made anew are the youngest, and so the last to look for a node.
        return staying + [made_anew(each.pod) for each in departures if each.fate is Fate.BACK]

    def _departures(self) -> Iterable[Departure]:
        """Give the pods that leave: as told, then because of their node, then of devices."""
        orders = dict(self._edited.orders)
        staying = [p for p in self._snapshot.pods if is_active(p) and full_name(p) not in orders]
        for on_node in find_node_evictions(staying, self._nodes, now=self._context.now):
            why = f"{on_node.pod.spec.node_name} is tainted"
            orders[full_name(on_node.pod)] = Order(why, eviction=on_node)
        staying = [pod for pod in staying if full_name(pod) not in orders]
        for eviction in self._evictions(staying, self._rules()):
            orders[full_name(eviction.pod)] = Order(_tainted(eviction), eviction=eviction)
        for pod in self._snapshot.pods:
            # A static pod is there again at once, as long as its node is.
            is_back = is_static(pod) and pod.spec.node_name in self._nodes
            if (order := orders.get(full_name(pod))) is not None and not is_back:
                yield depart(pod, order, self._nodes)

    # --- taints of devices --------------------------------------------------------------------

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
        self, pods: Iterable[Pod], rules: Iterable[DeviceTaintRule]
    ) -> tuple[Eviction, ...]:
        if not self._features.allocator.device_taints:
            return ()
        return evictions_in(self._snapshot, pods, rules, self._context)

    def _outlook(self, rule: DeviceTaintRule) -> RuleOutlook:
        effect = rule.spec.taint.effect
        # Other rules do not matter for a preview, as upstream has it.
        rules = [as_evicting(rule)] if effect == NONE else self._rules()
        pods = filter(is_active, self._snapshot.pods)
        evictions = tuple(
            each for each in self._evictions(pods, rules) if each.is_because_of(rule.metadata.name)
        )
        devices = marked_devices(self._snapshot, rules, self._context)
        counts = counts_of(rule, evictions, devices, self._snapshot.claims)
        return RuleOutlook(rule, rule_status(effect, counts), evictions)


def evictions_in(
    snapshot: Snapshot, pods: Iterable[Pod], rules: Iterable[DeviceTaintRule], context: Context
) -> tuple[Eviction, ...]:
    """Return which of the pods leave because of devices, with these rules."""
    return find_evictions(
        pods,
        snapshot.claims,
        marked_devices(snapshot, rules, context),
        now=context.now,
        features=Features.of(context.gates).claims,
    )


def marked_devices(
    snapshot: Snapshot, rules: Iterable[DeviceTaintRule], context: Context
) -> MarkedDevices:
    """Return the devices of a snapshot with the taints that make pods leave."""
    compiler = DeviceCompiler(CelFeatures(list_attributes=True), extensions=context.extensions)
    known = TaintRules(compiler)
    for device_class in snapshot.classes:
        known.put_class(device_class)
    return MarkedDevices(snapshot.slices, rules, means=known.means)


def _tainted(eviction: Eviction) -> str:
    cause = min(eviction.causes, key=lambda cause: cause.when.instant)
    return f"{cause.device} is tainted"


def _held_back(names: tuple[str, ...]) -> Iterable[Concern]:
    if names:
        yield Concern(
            "claims-in-use",
            f"{listed(names)}: deleted only once the pods that use it are gone",
            "until then it keeps its devices",
        )
