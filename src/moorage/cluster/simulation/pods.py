"""Pods on simulated nodes: they run, end or are stopped, and are removed.

bound ─► admitted ─► devices prepared ─► Running ─► Succeeded or Failed, if its containers end
            │              │                │
         Failed     Pending, retried        │
                                            │
                                  deleted ──┴─► Failed ─► removed at once, without a grace period

The code of the real agent (`moorage.node`) decides whether a node admits a pod and whether the pod
may use its claims, and provides the messages.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

from moorage.api.core import Node, Pod
from moorage.api.core.pod import RUNNING
from moorage.api.gates import Gates
from moorage.api.resource.v1 import ResourceClaim
from moorage.api.timestamp import Timestamp
from moorage.claims.pod_claims import ClaimRejection, claims_to_release
from moorage.client.indexer import Indexer, ObjectKey, object_key
from moorage.client.writes import Delete, Patch, RecordEvent, RequeueAfter, Target
from moorage.cluster.simulation.machines import is_ready, is_simulated
from moorage.cluster.simulation.pod_statuses import (
    HOST_IP,
    STOPPED,
    ephemeral_left_s,
    ephemeral_patch,
    left_s,
    over_patch,
    running_patch,
)
from moorage.controllers.controller import Answers, Controller, Lookup, ObjectChange, Step
from moorage.controllers.pod_control import is_over
from moorage.node.contract import (
    FAILED_PREPARE,
    PREPARING,
    failed_prepare,
)
from moorage.node.dra.claim_requests import check_found, claim_name, entries_of, features_of
from moorage.node.pods.admission import AdmissionRejection, check, demand, rejection
from moorage.node.pods.pod_context import SET_UP_BACKOFF
from moorage.node.pods.pod_record import FailedAttempt, PodRecord
from moorage.node.pods.pod_status import NodeAddresses, patch_of, status_of
from moorage.node.runtime.sim import End, end_of

NODE = "node"
PREPARED = "Prepared"


class SimulatedPods(Controller):
    """Does what kubelets and drivers would do for pods on simulated nodes."""

    name: ClassVar[str] = "simulated-pods"
    source: ClassVar[str] = "kubelet"
    kinds = (Pod, Node, ResourceClaim)
    optional = (ResourceClaim,)

    def __init__(self, gates: Gates | None = None) -> None:
        self._features = features_of(gates or Gates.parse())
        self._room = Allotments()
        self._troubles: dict[str, FailedAttempt] = {}  # by UID: pods that wait for their claims
        self._waiting: dict[ObjectKey, set[ObjectKey]] = {}  # the pods that wait for a claim
        self._again: set[str] = set()  # UIDs of pods whose claims have changed since

    def add_indexes(self, objects: Indexer) -> None:
        """Index pods by node."""
        objects.index(Pod, NODE, lambda pod: (pod.spec.node_name,) if pod.spec.node_name else ())

    def keys(self, objects: Indexer, change: ObjectChange) -> Iterable[ObjectKey]:
        """Yield the bound pods that a change affects."""
        value = change.value
        match value:
            case Pod():
                if change.gone is not None:
                    self._forget(change.gone)
                if change.new is not None and value.spec.node_name:
                    yield object_key(value)
            case Node():
                if change.old is None or _is_at_work(change.old) != _is_at_work(value):
                    yield from map(object_key, objects.by_index(Pod, NODE, value.metadata.name))
            case ResourceClaim():
                for key in self._waiting.pop(object_key(value), ()):
                    if (pod := objects.get(Pod, *key)) is not None:
                        self._again.add(pod.metadata.uid)
                        yield key

    def reconcile(
        self, objects: Indexer, key: ObjectKey, now: Timestamp, answers: Answers
    ) -> Iterable[Step]:
        """Advance a pod by one step."""
        pod = objects.get(Pod, *key)
        node = None if pod is None else objects.get(Node, "", pod.spec.node_name)
        if pod is None or node is None or not _is_at_work(node):
            return
        if pod.metadata.deletion_timestamp is not None:
            yield from _left(pod, now)
        elif is_over(pod):
            self._forget(pod)
        elif pod.status.phase != RUNNING:
            yield from self._begun(objects, pod, node, now, answers)
        else:
            yield from _kept(pod, now)

    def _forget(self, pod: Pod) -> None:
        self._room.free(pod)
        self._troubles.pop(pod.metadata.uid, None)
        self._again.discard(pod.metadata.uid)

    # --- the beginning --------------------------------------------------------------------------

    def _begun(
        self, objects: Indexer, pod: Pod, node: Node, now: Timestamp, answers: Answers
    ) -> Iterator[Step]:
        """Reject a pod, make it wait for its claims, or run it."""
        refusal = self._room.take(pod, node, objects.by_index(Pod, NODE, node.metadata.name))
        if refusal is not None:
            yield RecordEvent(pod, refusal.reason, refusal.message, is_warning=True)
            ending = rejection(refusal, now)
            record = PodRecord(pod, started_at=now, is_rejected=True, termination=ending)
            yield from _report_status(record, now)
            return
        uid = pod.metadata.uid
        trouble = self._troubles.get(uid)
        if trouble is not None and now < trouble.until and uid not in self._again:
            yield RequeueAfter(object_key(pod), _until_s(trouble, now))
            return
        match self._checked(objects, pod, answers):
            case Lookup() as ask:
                yield ask
            case ClaimRejection(reason=reason):
                message = failed_prepare(f"{PREPARING}: {reason}")
                yield from self._wait(pod, FAILED_PREPARE, message, now)
            case None:
                self._troubles.pop(uid, None)
                self._again.discard(uid)
                yield from _prepared(objects, pod, now)
                yield running_patch(pod, now)
                yield RecordEvent(pod, "Started", "Container started (simulated)")

    def _checked(
        self, objects: Indexer, pod: Pod, answers: Answers
    ) -> Lookup | ClaimRejection | None:
        """Return why a pod cannot use its claims, or a live read if the cache may be stale."""
        namespace = pod.metadata.namespace
        for entry in entries_of(pod, self._features):
            reference = claim_name(pod, entry)
            if isinstance(reference, ClaimRejection):
                return reference
            if reference is None:
                continue
            claim = objects.get(ResourceClaim, namespace, reference.name)
            if not isinstance(check_found(pod, reference, claim, self._features), ClaimRejection):
                continue
            ask = Lookup(ResourceClaim, namespace, reference.name)
            if ask not in answers:
                return ask
            found = check_found(pod, reference, answers[ask], self._features)
            if isinstance(found, ClaimRejection):
                self._waiting.setdefault((namespace, reference.name), set()).add(object_key(pod))
                return found
        return None

    def _wait(self, pod: Pod, reason: str, message: str, now: Timestamp) -> Iterator[Step]:
        """Make a pod wait, and requeue it after a backoff."""
        uid = pod.metadata.uid
        trouble = self._troubles.get(uid)
        if trouble is None or trouble.message != message or not now < trouble.until:
            failures = 1 if trouble is None else trouble.failures + 1
            until = now.after(SET_UP_BACKOFF.delay_s(failures))
            trouble = self._troubles[uid] = FailedAttempt(reason, message, until, failures)
            yield RecordEvent(pod, reason, message, is_warning=True)
        self._again.discard(uid)
        started = pod.status.start_time or now
        yield from _report_status(PodRecord(pod, started_at=started, sync_failure=trouble), now)
        yield RequeueAfter(object_key(pod), _until_s(trouble, now))


class Allotments:
    """The resources that pods use on each node, as its kubelet counts them."""

    def __init__(self) -> None:
        self._used: dict[str, Counter[str]] = {}  # by node
        self._taken: dict[str, tuple[str, dict[str, int]]] = {}  # by UID: node and amounts

    def take(self, pod: Pod, node: Node, others: Iterable[Pod]) -> AdmissionRejection | None:
        """Reserve a pod's resources on its node, or return why the node rejects it."""
        name = node.metadata.name
        if name not in self._used:  # nodes and pods may be older than this program
            self._used[name] = Counter()
            for each in others:
                if each.status.start_time is not None and not is_over(each):
                    self._note(each, node)
        if pod.metadata.uid in self._taken:
            return None
        if pod.status.start_time is None:
            refusal = check(pod, node, self._used[name])
            if refusal is not None:
                return refusal
        self._note(pod, node)
        return None

    def _note(self, pod: Pod, node: Node) -> None:
        amounts = demand(pod, node)
        self._taken[pod.metadata.uid] = node.metadata.name, amounts
        self._used[node.metadata.name].update(amounts)

    def free(self, pod: Pod) -> None:
        """Release a pod's resources."""
        name, amounts = self._taken.pop(pod.metadata.uid, ("", {}))
        if amounts:
            self._used[name].subtract(amounts)


def _is_at_work(node: Node) -> bool:
    return is_simulated(node) and is_ready(node)


def _report_status(record: PodRecord, now: Timestamp) -> Iterator[Patch]:
    """Report the status of a pod that does not run, as a kubelet would."""
    patch = patch_of(record.pod, status_of(record, now, NodeAddresses(HOST_IP)))
    if patch is not None:
        yield patch


def _until_s(trouble: FailedAttempt, now: Timestamp) -> float:
    return max((trouble.until.instant - now.instant).total_seconds(), 0.0)


# --- devices ----------------------------------------------------------------------------------


def _prepared(objects: Indexer, pod: Pod, now: Timestamp) -> Iterator[Step]:
    """Report the devices of a pod's claims as ready, as drivers with device status do."""
    for name in claims_to_release(pod):
        claim = objects.get(ResourceClaim, pod.metadata.namespace, name)
        if claim is None or claim.status.allocation is None or claim.status.devices:
            continue
        devices = [_device(each, now) for each in claim.status.allocation.devices.results]
        if devices:
            body = {
                "metadata": {"resourceVersion": claim.metadata.resource_version},
                "status": {"devices": devices},
            }
            yield Patch(Target.of(claim), body, "status")


def _device(result: Any, now: Timestamp) -> dict[str, Any]:
    condition = {
        "type": "Ready",
        "status": "True",
        "reason": PREPARED,
        "message": "prepared (simulated)",
        "lastTransitionTime": str(now.truncated()),
    }
    share = {"shareID": result.share_id} if result.share_id else {}
    place = {"driver": result.driver, "pool": result.pool, "device": result.device}
    return {**place, **share, "conditions": [condition]}


# --- pods -------------------------------------------------------------------------------------


def _kept(pod: Pod, now: Timestamp) -> Iterator[Step]:
    """Complete a pod whose containers have ended; else start and end its ephemeral containers."""
    end = end_of(pod)
    wait_s = left_s(end, pod.status.start_time, now)
    if end is not None and wait_s <= 0:
        yield over_patch(pod, end, now)
        return
    wait_s = min(wait_s, ephemeral_left_s(pod, now))
    if wait_s <= 0:
        yield ephemeral_patch(pod, now)
    elif math.isfinite(wait_s):
        yield RequeueAfter(object_key(pod), wait_s)


def _left(pod: Pod, now: Timestamp) -> Iterator[Step]:
    """Stop a pod that is being deleted, and remove it."""
    if not is_over(pod):
        yield over_patch(pod, End(0.0, STOPPED), now)
    if pod.metadata.deletion_grace_period_seconds != 0:  # else others' finalizers keep it
        yield Delete(Target.of(pod), grace_s=0)
