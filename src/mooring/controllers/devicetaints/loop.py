"""The controller that evicts pods from tainted devices; its keys are pods, and rules by name.

What it remembers is not in the objects: which pods were to leave when last looked at, so that a
change of mind is told; which have been made to leave; and how many because of which rule.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from mooring.api.core.pod import Pod
from mooring.api.devicetaints import NO_EXECUTE
from mooring.api.gates import Gate, Gates
from mooring.api.resource.v1 import DeviceClass, DeviceTaintRule, ResourceClaim, ResourceSlice
from mooring.api.timestamp import Timestamp
from mooring.cel.device import DeviceCompiler
from mooring.cel.device import Features as CelFeatures
from mooring.claims.evictions import Eviction
from mooring.claims.features import Features
from mooring.client.objects import Key, Objects, key_of
from mooring.client.writes import Apply, Delete, Write
from mooring.controllers.controller import Answers, Change, Controller, Refused, Step
from mooring.controllers.devicetaints import marked
from mooring.controllers.devicetaints.evictions import NAME, eviction_of, eviction_steps
from mooring.controllers.devicetaints.rulestatus import plan_rule
from mooring.controllers.vanished import Vanished
from mooring.kit.metrics import Counts, Durations, Family

_BUCKETS_S = (0.005, 0.025, 0.1, 0.5, 1, 2.5, 10, 30, 60, 120, 180, 240)


class TaintMetrics:
    """What is counted of evictions, under Kubernetes' names."""

    def __init__(self) -> None:
        prefix = "device_taint_eviction_controller"
        self.deletions = Counts(
            f"{prefix}_pod_deletions_total",
            "Number of Pods deleted because of device taints since the controller started.",
        )
        self.durations = Durations(
            f"{prefix}_pod_deletion_duration_seconds",
            "Seconds between the time when a device taint takes effect and the Pod's deletion.",
            _BUCKETS_S,
        )

    def families(self) -> Iterator[Family]:
        """Give all metrics."""
        yield self.deletions
        yield self.durations


class DeviceTaints(Controller):
    """Evicts pods, and keeps the status of rules."""

    name = NAME
    kinds = (Pod, ResourceClaim, ResourceSlice, DeviceTaintRule, DeviceClass)
    optional = (DeviceTaintRule,)
    workers = 8

    def __init__(
        self,
        gates: Gates,
        metrics: TaintMetrics | None = None,
        compiler: DeviceCompiler | None = None,
    ) -> None:
        self._has_rules = gates.enabled(Gate.DRA_DEVICE_TAINT_RULES)
        self._features = Features.of(gates)
        self._metrics = metrics or TaintMetrics()
        self._compiler = compiler or DeviceCompiler(CelFeatures(list_attributes=True))
        self._due: dict[str, Eviction] = {}  # by the uid of the pod
        self._leaving: dict[str, Eviction] = {}  # being deleted; a pod may be gone before we know
        self._evicted = Vanished()
        self._left: Counter[str] = Counter()  # pods that have left, by the uid of the rule

    def prepare(self, objects: Objects) -> None:
        """Keep the indexes that lead from slices and claims to pods."""
        marked.prepare(objects)

    # --- keys -----------------------------------------------------------------------------------

    def keys(self, objects: Objects, change: Change) -> Iterable[Key]:
        """Give the rules and pods to look at after a change."""
        match change.value:
            case Pod():
                yield from self._pod_keys(change)
            case ResourceClaim():
                yield from marked.users(objects, (change.old, change.new))
            case ResourceSlice() as slice_:
                if self._may_evict(objects, change):
                    pool = marked.pool_key(slice_)
                    yield from marked.users(objects, marked.claims_of_pool(objects, pool))
            case DeviceTaintRule() if self._has_rules:
                yield from self._rule_keys(objects, change)
            case DeviceClass() as device_class:
                if any(_selects_by(rule, device_class) for rule in self._rules(objects)):
                    yield from map(key_of, marked.pods_with_claims(objects))

    def _pod_keys(self, change: Change) -> Iterator[Key]:
        if change.gone is not None:
            self._due.pop(change.gone.metadata.uid, None)
        new, old = change.new, change.old
        if new is None or not new.spec.node_name or not new.spec.resource_claims:
            return
        if old is None or change.gone is not None or _uses(old) != _uses(new):
            yield key_of(new)

    def _may_evict(self, objects: Objects, change: Change) -> bool:
        """Tell whether a change of a slice may make pods leave or stay."""
        if marked.evicts(change.old) or marked.evicts(change.new):
            return True
        if any(marked.selects_by_content(rule) for rule in self._rules(objects)):
            return True
        # A slice of a newer generation outdates the others of its pool, with their taints.
        mates = objects.by(ResourceSlice, marked.BY_POOL, marked.pool_key(change.value))
        return any(map(marked.evicts, mates))

    def _rule_keys(self, objects: Objects, change: Change) -> Iterator[Key]:
        old, new = change.old, change.new
        if change.gone is not None:
            self._left.pop(change.gone.metadata.uid, None)
        elif old is not None and new is not None and old.spec == new.spec:
            return
        if new is not None:
            yield key_of(new)
        if any(each and each.spec.taint.effect == NO_EXECUTE for each in (old, new)):
            yield from map(key_of, marked.pods_with_claims(objects))

    # --- plans ----------------------------------------------------------------------------------

    def plan(self, objects: Objects, key: Key, now: Timestamp, answers: Answers) -> Iterable[Step]:  # noqa: ARG002
        """Give what to do with a pod, or with the status of a rule."""
        if key[0]:
            return self._plan_pod(objects, key, now)
        rule = objects.find(DeviceTaintRule, *key)
        if rule is None or not self._has_rules:
            return ()
        return plan_rule(
            objects,
            key[1],
            now,
            evicted=self._left[rule.metadata.uid],
            means=marked.meaning(objects, self._compiler),
            features=self._features,
        )

    def _plan_pod(self, objects: Objects, key: Key, now: Timestamp) -> Iterable[Step]:
        pod = objects.find(Pod, *key)
        if pod is None or pod.metadata.deletion_timestamp is not None:
            return ()
        uid = pod.metadata.uid
        if uid in self._evicted:
            return ()
        rules = self._rules(objects)
        eviction = None
        if marked.something_evicts(objects, rules):
            eviction = eviction_of(
                objects,
                pod,
                now,
                rules=rules,
                means=marked.meaning(objects, self._compiler),
                features=self._features,
            )
        was_due = self._due.pop(uid, None) is not None
        if eviction is not None:
            self._due[uid] = eviction
            if not now < eviction.when:
                self._leaving[uid] = eviction
        return eviction_steps(pod, eviction, now, was_due=was_due)

    def wrote(self, objects: Objects, key: Key, write: Write, now: Timestamp) -> Iterable[Step]:  # noqa: ARG002
        """Count a pod that was made to leave."""
        if not isinstance(write, Delete):
            return ()
        self._evicted.note(write.target.uid)
        self._due.pop(write.target.uid, None)
        eviction = self._leaving.pop(write.target.uid, None)
        if eviction is not None:
            self._metrics.deletions.add()
            late_s = (now.instant - eviction.when.instant).total_seconds()
            self._metrics.durations.note(max(late_s, 0.0))
            for name in {cause.mark.rule for cause in eviction.causes} - {""}:
                rule = objects.find(DeviceTaintRule, "", name)
                if rule is not None:
                    self._left[rule.metadata.uid] += 1
        return ()

    def refused(self, objects: Objects, key: Key, write: Write, refused: Refused) -> Iterable[Step]:  # noqa: ARG002
        """Forget a pod that could not be made to leave, or was gone already."""
        if isinstance(write, Delete | Apply):
            self._leaving.pop(write.target.uid, None)
        return ()

    def _rules(self, objects: Objects) -> list[DeviceTaintRule]:
        return list(objects.all(DeviceTaintRule)) if self._has_rules else []


def _uses(pod: Pod) -> tuple[object, ...]:
    """Return what of a pod decides which devices it is on."""
    return pod.spec.node_name, pod.status.resource_claim_statuses


def _selects_by(rule: DeviceTaintRule, device_class: DeviceClass) -> bool:
    selector = rule.spec.device_selector
    return selector is not None and selector.device_class_name == device_class.metadata.name
