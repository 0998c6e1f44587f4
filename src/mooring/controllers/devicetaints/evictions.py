"""Which pods leave, when, and how: told, marked as disrupted, deleted.

A pod that is to leave later is looked at again then; whatever has changed by then counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from mooring.api.core.pod import Pod
from mooring.api.resource.v1 import DeviceTaintRule, ResourceClaim
from mooring.api.timestamp import Timestamp
from mooring.claims.evictions import Eviction, Means, find_evictions
from mooring.claims.features import Features
from mooring.claims.references import claim_names
from mooring.claims.releases import is_pod_done
from mooring.client.objects import Objects, key_of
from mooring.client.writes import Apply, Delete, LookAgain, Target, Tell
from mooring.controllers.controller import Step
from mooring.controllers.devicetaints.marked import marked_devices

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


def eviction_of(
    objects: Objects,
    pod: Pod,
    now: Timestamp,
    *,
    rules: Iterable[DeviceTaintRule],
    means: Means,
    features: Features,
) -> Eviction | None:
    """Return when and why a pod leaves, if it does."""
    if is_pod_done(pod):
        return None
    namespace = pod.metadata.namespace
    found = (objects.find(ResourceClaim, namespace, name) for name in claim_names(pod))
    claims = [claim for claim in found if claim is not None]
    devices = marked_devices(objects, claims, rules, means)
    evictions = find_evictions([pod], claims, devices, now=now, features=features)
    return evictions[0] if evictions else None


def eviction_steps(
    pod: Pod, eviction: Eviction | None, now: Timestamp, *, was_due: bool
) -> Iterator[Step]:
    """Give what to do with a pod; `was_due` is whether it was to leave when last looked at."""
    if eviction is None:
        if was_due:
            yield Tell(pod, REASON, CANCELLING)
        return
    for rule in sorted({cause.mark.rule for cause in eviction.causes} - {""}):
        yield LookAgain(("", rule), STATUS_PERIOD_S)
    wait_s = (eviction.when.instant - now.instant).total_seconds()
    if wait_s > 0:
        yield LookAgain(key_of(pod), wait_s)
        return
    yield Tell(pod, REASON, MARKING)
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
