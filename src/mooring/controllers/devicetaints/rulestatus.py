"""What the status of a DeviceTaintRule says: once when it changed, then every ten seconds."""

from __future__ import annotations

from mooring.api.codec import to_tree
from mooring.api.devicetaints import NO_EXECUTE, NONE
from mooring.api.meta import Condition
from mooring.api.resource.v1 import DeviceTaintRule, ResourceClaim, ResourceSlice
from mooring.api.timestamp import Timestamp
from mooring.claims.evictions import MarkedDevices, Means, find_evictions
from mooring.claims.evictionstatus import CONDITION, Counts, as_evicting, counts_of, rule_status
from mooring.claims.features import Features
from mooring.claims.releases import is_pod_done
from mooring.client.objects import Objects
from mooring.client.writes import Apply, LookAgain, Target
from mooring.controllers.controller import Step
from mooring.controllers.devicetaints.evictions import NAME, STATUS_PERIOD_S
from mooring.controllers.devicetaints.marked import pods_with_claims


def plan_rule(
    objects: Objects,
    name: str,
    now: Timestamp,
    *,
    evicted: int,
    means: Means,
    features: Features,
) -> list[Step]:
    """Return the write of a rule's condition; `evicted` pods have left because of it so far."""
    rule = objects.find(DeviceTaintRule, "", name)
    if rule is None:
        return []
    before = next((each for each in rule.status.conditions if each.type == CONDITION), None)
    if before is not None and before.observed_generation == rule.metadata.generation:
        since_s = _seconds_since(before, now)
        if since_s < STATUS_PERIOD_S:
            return [LookAgain(("", name), STATUS_PERIOD_S - since_s)]
    counts = _counts(objects, rule, now, evicted, means, features)
    after = Condition(
        type=CONDITION,
        observed_generation=rule.metadata.generation,
        **rule_status(rule.spec.taint.effect, counts)._asdict(),
        # It tells when anything of the condition changed last, not only whether it holds.
        last_transition_time=now if before is None else before.last_transition_time,
    )
    return [] if after == before else [_writing(rule, after, now)]


def _seconds_since(condition: Condition, now: Timestamp) -> float:
    """Return the age of a condition; one of the future, by another clock, counts as old."""
    then = condition.last_transition_time
    if then is None or now < then:
        return STATUS_PERIOD_S
    return (now.instant - then.instant).total_seconds()


def _counts(
    objects: Objects,
    rule: DeviceTaintRule,
    now: Timestamp,
    evicted: int,
    means: Means,
    features: Features,
) -> Counts:
    if rule.spec.taint.effect not in (NO_EXECUTE, NONE):
        return Counts(evicted=evicted)
    asked = as_evicting(rule)
    claims = [each for each in objects.all(ResourceClaim) if each.status.allocation is not None]
    devices = MarkedDevices(objects.all(ResourceSlice), [asked], means=means)
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
