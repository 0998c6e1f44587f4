"""Pods on simulated nodes: they run, end by themselves or are stopped, and leave.

bound ─► devices prepared ─► Running ─► Succeeded or Failed, if its containers end
                                │
                      deleted ──┴─► Failed ─► gone, at once: nothing needs its grace
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, ClassVar
from zlib import crc32

from mooring.api.codec import to_tree
from mooring.api.core import Container, Node, Pod
from mooring.api.core.podstatus import FAILED, RUNNING, SUCCEEDED
from mooring.api.resource.v1 import ResourceClaim
from mooring.api.timestamp import Timestamp
from mooring.claims.references import claims_to_release
from mooring.client.objects import Key, Objects, key_of
from mooring.client.writes import Delete, LookAgain, Patch, Target, Tell
from mooring.cluster.simulation.machines import is_simulated
from mooring.controllers.controller import Answers, Change, Controller, Step
from mooring.controllers.podstates import is_over
from mooring.node.runtime.durations import End, end_of

NODE = "node"
STOPPED = 143  # ended by SIGTERM
PREPARED = "Prepared"
_CONDITIONS = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady")


class SimulatedPods(Controller):
    """Does for pods on simulated nodes what kubelets and drivers would."""

    name: ClassVar[str] = "simulated-pods"
    source: ClassVar[str] = "kubelet"
    kinds = (Pod, Node, ResourceClaim)
    optional = (ResourceClaim,)

    def prepare(self, objects: Objects) -> None:
        """Keep pods by their nodes."""
        objects.index(Pod, NODE, lambda pod: (pod.spec.node_name,) if pod.spec.node_name else ())

    def keys(self, objects: Objects, change: Change) -> Iterable[Key]:
        """Give the pods on nodes that a change is about."""
        value = change.value
        match value:
            case Pod():
                if change.new is not None and value.spec.node_name:
                    yield key_of(value)
            case Node():
                if change.old is None or is_simulated(change.old) != is_simulated(value):
                    yield from map(key_of, objects.by(Pod, NODE, value.metadata.name))

    def plan(self, objects: Objects, key: Key, now: Timestamp, answers: Answers) -> Iterable[Step]:  # noqa: ARG002
        """Bring a pod one step on."""
        pod = objects.find(Pod, *key)
        if pod is None or not is_simulated(objects.find(Node, "", pod.spec.node_name)):
            return
        if pod.metadata.deletion_timestamp is not None:
            yield from _left(pod, now)
        elif is_over(pod):
            return
        elif pod.status.phase != RUNNING:
            yield from _prepared(objects, pod, now)
            yield _running(pod, now)
            yield Tell(pod, "Started", "Container started (simulated)")
        else:
            yield from _ended(pod, now)


# --- devices ----------------------------------------------------------------------------------


def _prepared(objects: Objects, pod: Pod, now: Timestamp) -> Iterator[Step]:
    """Report the devices of a pod's claims as ready, as drivers do that report them."""
    for name in claims_to_release(pod):
        claim = objects.find(ResourceClaim, pod.metadata.namespace, name)
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


def _running(pod: Pod, now: Timestamp) -> Patch:
    at = str(now.truncated())
    number = crc32(pod.metadata.uid.encode())
    address = f"10.{128 + (number >> 16) % 128}.{(number >> 8) % 256}.{number % 254 + 1}"
    sidecars = [_status(each, _now_running(at)) for each in pod.spec.init_containers]
    for each, status in zip(pod.spec.init_containers, sidecars, strict=True):
        if not each.is_sidecar:
            status.update(_terminated(End(0.0), at, at), ready=True)
    status = {
        "phase": RUNNING,
        "hostIP": "127.0.0.1",
        "hostIPs": [{"ip": "127.0.0.1"}],
        "podIP": address,
        "podIPs": [{"ip": address}],
        "startTime": at,
        "conditions": _conditions(pod, "True", at),
        "containerStatuses": [_status(e, _now_running(at)) for e in pod.spec.containers],
    }
    if sidecars:
        status["initContainerStatuses"] = sidecars
    return _patch(pod, status)


def _ended(pod: Pod, now: Timestamp) -> Iterator[Step]:
    """End a pod whose time has come."""
    end, started = end_of(pod), pod.status.start_time
    if end is None or started is None:
        return
    left_s = end.after_s - (now.instant - started.instant).total_seconds()
    if left_s > 0:
        yield LookAgain(key_of(pod), left_s)
    else:
        yield _over(pod, end, now)


def _left(pod: Pod, now: Timestamp) -> Iterator[Step]:
    """Stop a pod that is to be deleted, and take it away."""
    if not is_over(pod):
        yield _over(pod, End(0.0, STOPPED), now)
    if pod.metadata.deletion_grace_period_seconds != 0:  # else others' finalizers keep it
        yield Delete(Target.of(pod), grace_s=0)


def _over(pod: Pod, end: End, now: Timestamp) -> Patch:
    at = str(now.truncated())
    started = str(pod.status.start_time or now.truncated())
    status = {
        "phase": FAILED if end.code else SUCCEEDED,
        "conditions": _conditions(pod, "False", at, "" if end.code else "PodCompleted"),
        "containerStatuses": [
            _status(each, _terminated(end, started, at)) for each in pod.spec.containers
        ],
    }
    return _patch(pod, status)


def _patch(pod: Pod, status: dict[str, Any]) -> Patch:
    metadata = {"resourceVersion": pod.metadata.resource_version}  # lists are replaced as a whole
    body = {"metadata": metadata, "status": {**status, "observedGeneration": _generation(pod)}}
    return Patch(Target.of(pod), body, "status")


def _conditions(pod: Pod, status: str, at: str, reason: str = "") -> list[dict[str, Any]]:
    """Return the conditions of a pod, with those of a kubelet set."""
    kept = [to_tree(each) for each in pod.status.conditions if each.type not in _CONDITIONS]
    own = []
    for type_ in _CONDITIONS:
        is_set = status == "True" or type_ in ("Ready", "ContainersReady")
        told = {"type": type_, "status": status if is_set else "True", "lastTransitionTime": at}
        told |= {"reason": reason} if reason and is_set else {}
        own.append({**told, "observedGeneration": _generation(pod)})
    return [*own, *kept]


def _generation(pod: Pod) -> int:
    return int(pod.metadata.generation or 0)


def _status(container: Container, state: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": container.name,
        "image": container.image,
        "imageID": f"simulated://{container.image}",
        "restartCount": 0,
        "lastState": {},
        **state,
    }


def _now_running(at: str) -> dict[str, Any]:
    return {"ready": True, "started": True, "state": {"running": {"startedAt": at}}}


def _terminated(end: End, started: str, at: str) -> dict[str, Any]:
    reason = "Error" if end.code else "Completed"
    state = {"exitCode": end.code, "reason": reason, "startedAt": started, "finishedAt": at}
    return {"ready": False, "started": False, "state": {"terminated": state}}
