"""The case of a pod in a live scheduler's cluster: the same findings, from what a scheduler knows.

A scheduler has no templates, quotas and workloads. It tries a pod only when all its claims exist,
so none of these is the cause then; nor is a group that lacks pods. A claim is its own source.
Nothing here changes the cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any, Final

from moorage.allocator import Allocated, allocate
from moorage.api.catalogue import CATALOGUE
from moorage.api.core.pod import Pod
from moorage.api.errors import DecodeError
from moorage.api.resource.v1 import POD_CLAIM_ANNOTATION, ResourceClaim, ResourceSlice
from moorage.cel.device import DeviceCompiler
from moorage.claims.pod_claims import controller_of, group_name
from moorage.insight.answer.changes.departures import Departure, freed_claims, places_of
from moorage.insight.answer.changes.edits import ObjectChange, edited
from moorage.insight.answer.changes.rehearsal import Rehearsal, Stage
from moorage.insight.answer.changes.sources import CLAIM_SPEC, POD_SPEC, Source, Sources
from moorage.insight.answer.finding import Case, Surroundings
from moorage.insight.explain.nodes import NodeProbe
from moorage.insight.explain.pods import Explanation
from moorage.insight.explain.situation import FreeClaim, Situation
from moorage.insight.explain.trials import Effort, Trials
from moorage.insight.expressions.evaluation import compiler_for
from moorage.insight.expressions.published_devices import PublishedDevices
from moorage.insight.plan.decisions import placed_anywhere
from moorage.insight.plan.planner import Plan
from moorage.insight.snapshot.snapshot import Snapshot, key_of
from moorage.scheduler.cluster import Cluster
from moorage.scheduler.errors import CycleError
from moorage.scheduler.framework import Unschedulable
from moorage.scheduler.node_info import NodeInfo
from moorage.scheduler.plugins.dynamic_resources import NOT_AVAILABLE, NodeAllocation
from moorage.scheduler.preemption import fits_without
from moorage.scheduler.scheduling_cycle import Pending, attempt
from moorage.validation.registry import before_create
from moorage.validation.strategy import Context

NODES_TRIED_MAX: Final = 4
NODES_ASKED_MAX: Final = 256  # in larger clusters no changes to the pod are tried
EXPRESSIONS_MAX: Final = 1024  # whose results are kept


class LiveCase(Case):
    """Everything that findings about a pod of a live cluster are made from."""

    knows_waiting_pods = False

    @cached_property
    def knows_running_pods(self) -> bool:
        """Whether there are pods with a node; claims may be given alone."""
        return any(state.pods for state in self.cluster.snapshot.nodes.values())

    def __init__(
        self,
        cluster: Cluster,
        explanation: Explanation,
        context: Context,
        effort: Callable[[], Effort],
        fleets: Fleets,
    ) -> None:
        plan = Plan(_snapshot_of(cluster), (explanation.pending,), (), lambda: cluster)
        super().__init__(_LiveSurroundings(plan, context, effort, fleets), explanation)
        self.rehearsal = LiveRehearsal(self.around.stage, explanation, self.effort)


class Fleets:
    """The devices that are published, read again only when slices change."""

    def __init__(self) -> None:
        self._slices: tuple[ResourceSlice, ...] = ()
        self._fleet: PublishedDevices | None = None
        self._passing: dict[str, frozenset[int]] = {}
        self.compiler: DeviceCompiler | None = None  # of new expressions

    def passing(self, slices: tuple[ResourceSlice, ...]) -> dict[str, frozenset[int]]:
        """Return the devices of slices for which expressions are true, to be added to."""
        if slices != self._slices or len(self._passing) > EXPRESSIONS_MAX:
            self._slices, self._fleet, self._passing = slices, None, {}
        return self._passing

    def of(self, slices: tuple[ResourceSlice, ...], *, names: bool) -> PublishedDevices:
        """Return the devices of slices."""
        self.passing(slices)
        if self._fleet is None:
            self._fleet = PublishedDevices(slices, names=names)
        return self._fleet


class _LiveSurroundings(Surroundings):
    """What the cases of a live cluster share: devices, as long as no slice changes."""

    def __init__(
        self, plan: Plan, context: Context, effort: Callable[[], Effort], fleets: Fleets
    ) -> None:
        super().__init__(plan, context, effort=effort)
        self.stage.sources = LiveSources(plan.cluster)
        self._fleets = fleets
        self._passing = fleets.passing(plan.before.slices)

    @cached_property
    def fleet(self) -> PublishedDevices:
        """All published devices."""
        return self._fleets.of(self.plan.before.slices, names=self.context.extensions)

    @cached_property
    def compiler(self) -> DeviceCompiler:
        """The compiler of new expressions."""
        if self._fleets.compiler is None:
            gates, extensions = self.context.gates, self.context.extensions
            self._fleets.compiler = compiler_for(gates, extensions=extensions)
        return self._fleets.compiler


def _snapshot_of(cluster: Cluster) -> Snapshot:
    """Return the objects of a cluster, in the order in which an API server lists them."""
    names = sorted(cluster.snapshot.nodes)
    return Snapshot(
        nodes=tuple(map(cluster.node, names)),
        classes=_by_name(cluster.classes),
        slices=_by_name(cluster.slices),
        taint_rules=_by_name(cluster.taint_rules),
        claims=tuple(cluster.claims.values()),
        groups=tuple(cluster.groups.values()),
    )


def _by_name(objects: Any) -> tuple[Any, ...]:
    return tuple(objects[name] for name in sorted(objects))


class LiveSources(Sources):
    """The pod and its claims themselves, in place of what they were made from."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(Snapshot())
        self._cluster = cluster

    def find(self, kind: str, namespace: str, name: str) -> Any | None:
        """Return an object that the scheduler knows."""
        if kind == "ResourceClaim":
            return self._cluster.find_claim(namespace, name)
        return self._cluster.groups.get((namespace, name)) if kind == "PodGroup" else None

    def of_pod(self, pod: Pod) -> Source:
        """Return the pod."""
        return Source(pod, POD_SPEC)

    def of_claim(self, claim: ResourceClaim, pod: Pod) -> Source | None:  # noqa: ARG002
        """Return the claim; None for claims of extended resources."""
        is_made = controller_of(claim.metadata) is not None
        if is_made and POD_CLAIM_ANNOTATION not in claim.metadata.annotations:
            return None
        stored = self.find("ResourceClaim", claim.metadata.namespace, claim.metadata.name)
        return None if stored is None else Source(stored, CLAIM_SPEC)


class LiveRehearsal(Rehearsal):
    """Tries changes to a pod or its claims on the nearest nodes, and changes nothing."""

    def __init__(self, stage: Stage, explanation: Explanation, effort: Effort) -> None:
        pod = explanation.pending.pod
        super().__init__(stage, pod)
        self._live, self._around, self._subject = stage.plan.cluster, stage.context, pod
        self._verdicts, self._effort = explanation.verdicts, effort
        self._trials: dict[str, Trials] = {}  # by node: with the claims of others freed

    def node(self, changes: Sequence[ObjectChange], departure: Departure = ()) -> str | None:
        """Return a node that the pod would get with the changes; None if none was found."""
        if departure:
            return None if changes else self._without(departure)
        objects: dict[Any, Any] = {}
        for change in changes:
            before = self._before(change)
            after = None if before is None else self._valid(before, change)
            if after is None:
                return None
            objects[change.key] = after
        pod = objects.pop(key_of(self._subject), None)
        if pod is None:
            return self._with_claims(objects)
        return None if objects else self._with_pod(pod)

    def _before(self, change: ObjectChange) -> Any | None:
        if change.new is not None:
            return None
        if change.key == key_of(self._subject):
            return self._subject
        return self._live.find_claim(*change.key[1:]) if change.kind == "ResourceClaim" else None

    def _valid(self, before: Any, change: ObjectChange) -> Any | None:
        """Return an object with a change; None if an API server would refuse it."""
        kind = CATALOGUE.find(before.api_version, before.kind)
        try:
            after = edited(before, change.edits)
        except (DecodeError, LookupError, TypeError):
            return None
        result = before_create(after, kind, self._around, namespace=change.namespace)
        return None if result.stored is None else after

    def _without(self, departure: Departure) -> str | None:
        """Return a node that the pod gets once others have gone; of a group that is not known."""
        ready = attempt(self._live, self._subject)
        if isinstance(ready, Pending) or group_name(self._subject) is not None:
            return None
        leaving = places_of(self._live, departure)
        freed = [FreeClaim(*key) for key in freed_claims(self._live, departure)]

        def claims(state: NodeInfo) -> NodeAllocation | Unschedulable:
            return self._served(NodeProbe(ready), state.facts.name, freed)

        for name in self._near():
            with suppress(CycleError):
                if fits_without(self._live, ready.signature, claims, name, leaving):
                    return name
        return None

    def _served(
        self, probe: NodeProbe, name: str, freed: Sequence[FreeClaim]
    ) -> NodeAllocation | Unschedulable:
        """Return whether a node serves the claims once others are free."""
        wanted, inventory = probe.claims(name), self._live.inventory
        if not wanted:
            return NodeAllocation()
        if name not in self._trials:
            situation = Situation.of(inventory, self._live.node(name), wanted)
            trials = Trials(situation, compiler=inventory.compiler, effort=self._effort)
            self._trials[name] = trials
        return NodeAllocation() if self._trials[name].is_possible(freed) else NOT_AVAILABLE

    def _near(self) -> list[str]:
        near = (each.nodes for each in self._verdicts if each.texts and not each.is_behind)
        return [name for names in near for name in names][:NODES_TRIED_MAX]

    def _with_pod(self, pod: Pod) -> str | None:
        if len(self._live.snapshot.nodes) > NODES_ASKED_MAX:
            return None
        found = placed_anywhere(self._live, pod)
        return None if found is None else found.node

    def _with_claims(self, changed: dict[Any, Any]) -> str | None:
        ready = attempt(self._live, self._subject)
        if isinstance(ready, Pending):
            return None
        probe = NodeProbe(ready)
        for name in self._near():
            claims = [changed.get(key_of(claim), claim) for claim in probe.claims(name)]
            if isinstance(allocate(self._live.inventory, self._live.node(name), claims), Allocated):
                return name
        return None
