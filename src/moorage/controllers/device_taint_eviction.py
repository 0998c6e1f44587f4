"""The device taint eviction controller: pods leave tainted devices, and rules report progress.

A pod is evicted in steps: an event, the condition DisruptionTarget, the deletion. One that is to
leave later is looked at again then; whatever has changed by then counts. The status of a
DeviceTaintRule is written when it changed, then at most every ten seconds.

Keys are pods, and rules by name. The controller remembers facts that are not in the objects: which
pods were scheduled for eviction, so that a cancelled eviction becomes an event; which were evicted,
and by which rule.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from moorage.api.codec import to_tree
from moorage.api.core.placement import NO_EXECUTE
from moorage.api.core.pod import Pod
from moorage.api.gates import Gate, Gates
from moorage.api.meta import Condition
from moorage.api.resource.v1 import DeviceClass, DeviceTaintRule, ResourceClaim, ResourceSlice
from moorage.api.timestamp import Timestamp
from moorage.api.tolerations import NONE
from moorage.cel.device import CelFeatures, DeviceCompiler
from moorage.claims.pod_claims import ClaimFeatures, claim_names
from moorage.claims.reservations import is_pod_done
from moorage.claims.taint_evictions import CONDITION as RULE_CONDITION
from moorage.claims.taint_evictions import (
    Eviction,
    EvictionCounts,
    RuleSelects,
    TaintedDevices,
    as_evicting,
    counts_of,
    find_evictions,
    rule_status,
)
from moorage.client.indexer import Indexer, ObjectKey, object_key
from moorage.client.writes import Apply, Delete, RecordEvent, RequeueAfter, Target, Write
from moorage.controllers import tainted_devices
from moorage.controllers.controller import (
    Answers,
    Controller,
    DeletedUIDs,
    ObjectChange,
    Step,
    WriteRefused,
)
from moorage.controllers.metrics import TaintMetrics
from moorage.controllers.tainted_devices import marked_devices, pods_with_claims

NAME = "device-taint-eviction-controller"
STATUS_PERIOD_S = 10.0  # the shortest time between two statuses of a rule
REASON = "DeviceTaintManagerEviction"
MARKING = "Marking for deletion"
CANCELLING = "Cancelling deletion"
CONDITION = {
    "type": "DisruptionTarget",
    "status": "True",
    "reason": "DeletionByDeviceTaintManager",
    "message": "Device Taint manager: deleting due to NoExecute taint",
}


class DeviceTaintEvictionController(Controller):
    """Evicts pods, and keeps the status of rules."""

    name = NAME
    kinds = (Pod, ResourceClaim, ResourceSlice, DeviceTaintRule, DeviceClass)
    optional = (DeviceTaintRule,)
    workers = 8

    def __init__(self, gates: Gates, metrics: TaintMetrics | None = None) -> None:
        self._has_rules = gates.enabled(Gate.DRA_DEVICE_TAINT_RULES)
        self._features = ClaimFeatures.of(gates)
        self._metrics = metrics or TaintMetrics()
        self._compiler = DeviceCompiler(CelFeatures(list_attributes=True))
        self._due: dict[str, Eviction] = {}  # by the uid of the pod
        self._leaving: dict[str, Eviction] = {}  # being deleted; a pod may be gone before we know
        self._evicted = DeletedUIDs()
        self._left: Counter[str] = Counter()  # pods that have left, by the uid of the rule

    def add_indexes(self, objects: Indexer) -> None:
        """Add the indexes that lead from slices and claims to pods."""
        tainted_devices.prepare(objects)

    # --- keys -----------------------------------------------------------------------------------

    def keys(self, objects: Indexer, change: ObjectChange) -> Iterable[ObjectKey]:
        """Return the rules and pods that a change affects."""
        match change.value:
            case Pod():
                return self._pod_keys(objects, change)
            case ResourceClaim():
                if not self._may_leave(objects):
                    return ()
                return tainted_devices.users(objects, (change.old, change.new))
        return self._keys_of_taints(objects, change)

    def _keys_of_taints(self, objects: Indexer, change: ObjectChange) -> Iterator[ObjectKey]:
        match change.value:
            case ResourceSlice() as slice_:
                if self._may_evict(objects, change):
                    pool = tainted_devices.pool_key(slice_)
                    yield from tainted_devices.users(
                        objects, tainted_devices.claims_of_pool(objects, pool)
                    )
            case DeviceTaintRule() if self._has_rules:
                yield from self._rule_keys(objects, change)
            case DeviceClass() as device_class:
                if any(_selects_by(rule, device_class) for rule in self._rules(objects)):
                    yield from map(object_key, tainted_devices.pods_with_claims(objects))

    def _may_leave(self, objects: Indexer) -> bool:
        """Return whether any pod is or was to be evicted, which is rare."""
        if self._due or objects.by_index(ResourceSlice, tainted_devices.EVICTING, ""):
            return True
        has_rules = self._has_rules and objects.count(DeviceTaintRule)
        return bool(has_rules) and tainted_devices.something_evicts(objects, self._rules(objects))

    def _pod_keys(self, objects: Indexer, change: ObjectChange) -> tuple[ObjectKey, ...]:
        if change.gone is not None:
            self._due.pop(change.gone.metadata.uid, None)
        new, old = change.new, change.old
        if new is None or not new.spec.node_name or not new.spec.resource_claims:
            return ()
        if not self._may_leave(objects):
            return ()
        is_changed = old is None or change.gone is not None or _uses(old) != _uses(new)
        return (object_key(new),) if is_changed else ()

    def _may_evict(self, objects: Indexer, change: ObjectChange) -> bool:
        """Return whether a change of a slice may make pods leave or stay."""
        if tainted_devices.evicts(change.old) or tainted_devices.evicts(change.new):
            return True
        if any(tainted_devices.selects_by_content(rule) for rule in self._rules(objects)):
            return True
        # A slice of a newer generation outdates the others of its pool, with their taints.
        mates = objects.by_index(
            ResourceSlice, tainted_devices.BY_POOL, tainted_devices.pool_key(change.value)
        )
        return any(map(tainted_devices.evicts, mates))

    def _rule_keys(self, objects: Indexer, change: ObjectChange) -> Iterator[ObjectKey]:
        old, new = change.old, change.new
        if change.gone is not None:
            self._left.pop(change.gone.metadata.uid, None)
        elif old is not None and new is not None and old.spec == new.spec:
            return
        if new is not None:
            yield object_key(new)
        if any(each and each.spec.taint.effect == NO_EXECUTE for each in (old, new)):
            yield from map(object_key, tainted_devices.pods_with_claims(objects))

    # --- plans ----------------------------------------------------------------------------------

    def reconcile(
        self, objects: Indexer, key: ObjectKey, now: Timestamp, answers: Answers
    ) -> Iterable[Step]:
        """Yield the steps with a pod, or with the status of a rule."""
        if key[0]:
            return self._plan_pod(objects, key, now)
        rule = objects.get(DeviceTaintRule, *key)
        if rule is None or not self._has_rules:
            return ()
        return plan_rule(
            objects,
            key[1],
            now,
            evicted=self._left[rule.metadata.uid],
            means=tainted_devices.meaning(objects, self._compiler),
            features=self._features,
        )

    def _plan_pod(self, objects: Indexer, key: ObjectKey, now: Timestamp) -> Iterable[Step]:
        pod = objects.get(Pod, *key)
        if pod is None or pod.metadata.deletion_timestamp is not None:
            return ()
        uid = pod.metadata.uid
        if uid in self._evicted:
            return ()
        rules = self._rules(objects)
        eviction = None
        if tainted_devices.something_evicts(objects, rules):
            eviction = eviction_of(
                objects,
                pod,
                now,
                rules=rules,
                means=tainted_devices.meaning(objects, self._compiler),
                features=self._features,
            )
        was_due = self._due.pop(uid, None) is not None
        if eviction is not None:
            self._due[uid] = eviction
            if not now < eviction.when:
                self._leaving[uid] = eviction
        return eviction_steps(pod, eviction, now, was_due=was_due)

    def wrote(
        self, objects: Indexer, key: ObjectKey, write: Write, now: Timestamp
    ) -> Iterable[Step]:
        """Count a pod that was made to leave."""
        if not isinstance(write, Delete):
            return ()
        self._evicted.note(write.target.uid)
        self._due.pop(write.target.uid, None)
        eviction = self._leaving.pop(write.target.uid, None)
        if eviction is not None:
            self._metrics.deletions.inc()
            late_s = (now.instant - eviction.when.instant).total_seconds()
            self._metrics.durations.observe(max(late_s, 0.0))
            for name in {cause.taint.rule for cause in eviction.causes} - {""}:
                rule = objects.get(DeviceTaintRule, "", name)
                if rule is not None:
                    self._left[rule.metadata.uid] += 1
        return ()

    def refused(
        self, objects: Indexer, key: ObjectKey, write: Write, refused: WriteRefused
    ) -> Iterable[Step]:
        """Forget a pod that could not be created to leave, or was gone already."""
        del objects, key, refused  # not needed here
        if isinstance(write, Delete | Apply):
            self._leaving.pop(write.target.uid, None)
        return ()

    def _rules(self, objects: Indexer) -> list[DeviceTaintRule]:
        return list(objects.list(DeviceTaintRule)) if self._has_rules else []


def _uses(pod: Pod) -> tuple[object, ...]:
    """Return what of a pod decides which devices it is on."""
    return pod.spec.node_name, pod.status.resource_claim_statuses


def _selects_by(rule: DeviceTaintRule, device_class: DeviceClass) -> bool:
    selector = rule.spec.device_selector
    return selector is not None and selector.device_class_name == device_class.metadata.name


def eviction_of(
    objects: Indexer,
    pod: Pod,
    now: Timestamp,
    *,
    rules: Iterable[DeviceTaintRule],
    means: RuleSelects,
    features: ClaimFeatures,
) -> Eviction | None:
    """Return when and why a pod leaves, if it does."""
    if is_pod_done(pod):
        return None
    namespace = pod.metadata.namespace
    found = (objects.get(ResourceClaim, namespace, name) for name in claim_names(pod))
    claims = [claim for claim in found if claim is not None]
    devices = marked_devices(objects, claims, rules, means)
    evictions = find_evictions([pod], claims, devices, now=now, features=features)
    return evictions[0] if evictions else None


def eviction_steps(
    pod: Pod, eviction: Eviction | None, now: Timestamp, *, was_due: bool
) -> Iterator[Step]:
    """Yield the steps with a pod; `was_due` is whether it was to leave when last looked at."""
    if eviction is None:
        if was_due:
            yield RecordEvent(pod, REASON, CANCELLING)
        return
    for rule in sorted({cause.taint.rule for cause in eviction.causes} - {""}):
        yield RequeueAfter(("", rule), STATUS_PERIOD_S)
    wait_s = (eviction.when.instant - now.instant).total_seconds()
    if wait_s > 0:
        yield RequeueAfter(object_key(pod), wait_s)
        return
    yield RecordEvent(pod, REASON, MARKING)
    if not _is_marked(pod):
        yield _marking(pod, now)
    yield Delete(Target.of(pod))


def _is_marked(pod: Pod) -> bool:
    return any(
        (each.type, each.status, each.reason, each.message) == tuple(CONDITION.values())
        for each in pod.status.conditions
    )


def _marking(pod: Pod, now: Timestamp) -> Apply:
    metadata = pod.metadata
    body = {
        "apiVersion": pod.api_version,
        "kind": pod.kind,
        "metadata": {"name": metadata.name, "namespace": metadata.namespace, "uid": metadata.uid},
        "status": {"conditions": [{**CONDITION, "lastTransitionTime": str(now)}]},
    }
    return Apply(Target.of(pod), body, NAME, "status")


def plan_rule(
    objects: Indexer,
    name: str,
    now: Timestamp,
    *,
    evicted: int,
    means: RuleSelects,
    features: ClaimFeatures,
) -> list[Step]:
    """Return the write of a rule's condition; `evicted` pods have left because of it so far."""
    rule = objects.get(DeviceTaintRule, "", name)
    if rule is None:
        return []
    before = next((each for each in rule.status.conditions if each.type == RULE_CONDITION), None)
    if before is not None and before.observed_generation == rule.metadata.generation:
        since_s = _seconds_since(before, now)
        if since_s < STATUS_PERIOD_S:
            return [RequeueAfter(("", name), STATUS_PERIOD_S - since_s)]
    counts = _rule_counts(objects, rule, now, evicted, means, features)
    after = Condition(
        type=RULE_CONDITION,
        observed_generation=rule.metadata.generation,
        **rule_status(rule.spec.taint.effect, counts)._asdict(),
        # Its time changes with any change of the condition, not only of its status.
        last_transition_time=now if before is None else before.last_transition_time,
    )
    return [] if after == before else [_writing(rule, after, now)]


def _seconds_since(condition: Condition, now: Timestamp) -> float:
    """Return the age of a condition; one of the future, by another clock, counts as old."""
    then = condition.last_transition_time
    if then is None or now < then:
        return STATUS_PERIOD_S
    return (now.instant - then.instant).total_seconds()


def _rule_counts(
    objects: Indexer,
    rule: DeviceTaintRule,
    now: Timestamp,
    evicted: int,
    means: RuleSelects,
    features: ClaimFeatures,
) -> EvictionCounts:
    if rule.spec.taint.effect not in (NO_EXECUTE, NONE):
        return EvictionCounts(evicted=evicted)
    asked = as_evicting(rule)
    claims = [each for each in objects.list(ResourceClaim) if each.status.allocation is not None]
    devices = TaintedDevices(objects.list(ResourceSlice), [asked], means=means)
    pods = (pod for pod in pods_with_claims(objects) if not is_pod_done(pod))
    evictions = find_evictions(pods, claims, devices, now=now, features=features)
    return counts_of(asked, evictions, devices, claims, evicted=evicted)


def _writing(rule: DeviceTaintRule, condition: Condition, now: Timestamp) -> Apply:
    tree = {**to_tree(condition), "lastTransitionTime": str(now)}
    body = {
        "apiVersion": rule.api_version,
        "kind": rule.kind,
        "metadata": {"name": rule.metadata.name, "uid": rule.metadata.uid},
        "status": {"conditions": [tree]},
    }
    return Apply(Target.of(rule), body, NAME, "status")
