"""Pods of controllers: their state, and making them from templates.

A name that would be random in Kubernetes follows here from what exists: whoever plans twice from
the same objects plans the same names, so that an informer that is behind never creates too much.
The hash of a template is Moorage's own: Kubernetes' follows from how Go prints its structs.
Templates are compared, not hashes, so sets made by either are found by both.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple, TypeVar

import msgspec
from msgspec.structs import replace

from moorage.api.apps import DaemonSet, Deployment, ReplicaSet, StatefulSet
from moorage.api.batch import Job
from moorage.api.codec import to_tree
from moorage.api.core import Pod
from moorage.api.core.placement import (
    NO_EXECUTE,
    NO_SCHEDULE,
    Affinity,
    NodeAffinity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    Toleration,
)
from moorage.api.core.pod import (
    DISRUPTION_TARGET,
    FAILED,
    PENDING,
    RUNNING,
    SUCCEEDED,
    PodCondition,
    PodSpec,
)
from moorage.api.go_integers import parse_int64
from moorage.api.labels import IN
from moorage.api.meta import ObjectMeta
from moorage.api.node_affinity import NAME_FIELD
from moorage.api.timestamp import Timestamp
from moorage.client.indexer import Indexer
from moorage.client.writes import Create, Delete, Patch, RecordEvent, Target
from moorage.controllers.controller import Step
from moorage.controllers.controller_ref_manager import reference_to

TEMPLATE_HASH: Final = "pod-template-hash"
COMPLETION_INDEX: Final = "batch.kubernetes.io/job-completion-index"
JOB_NAME: Final = "batch.kubernetes.io/job-name"
JOB_TRACKING: Final = "batch.kubernetes.io/job-tracking"

BURST_MAX: Final = 500  # pods that one plan makes or deletes

# Daemons stay on nodes in trouble, and start on nodes that others are kept away from.
_TROUBLES: Final = (
    ("node.kubernetes.io/not-ready", NO_EXECUTE),
    ("node.kubernetes.io/unreachable", NO_EXECUTE),
    ("node.kubernetes.io/disk-pressure", NO_SCHEDULE),
    ("node.kubernetes.io/memory-pressure", NO_SCHEDULE),
    ("node.kubernetes.io/pid-pressure", NO_SCHEDULE),
    ("node.kubernetes.io/unschedulable", NO_SCHEDULE),
)
_NETWORK_TROUBLE: Final = ("node.kubernetes.io/network-unavailable", NO_SCHEDULE)

PodController = Deployment | ReplicaSet | StatefulSet | DaemonSet | Job
ALPHABET = "bcdfghjklmnpqrstvwxz2456789"  # no vowels: no words by chance
NAME_MAX = 253
_SUFFIX_LENGTH = 5
_PREFIX_MAX = 63 - _SUFFIX_LENGTH
READY = "Ready"
NODE = "node"  # the index of pods by their node
DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
_PHASES = {PENDING: 0, "": 0, "Unknown": 1, RUNNING: 2}
C = TypeVar("C")


class PodToCreate(NamedTuple):
    """One pod to make."""

    name: str
    labels: dict[str, str] = {}  # noqa: RUF012 - never changed
    annotations: dict[str, str] = {}  # noqa: RUF012
    node: str = ""  # of a daemon
    generate_name: str = ""
    finalizers: tuple[str, ...] = ()


def own_labels(controller: PodController) -> dict[str, str]:
    """Return the labels that a controller adds to its template's."""
    if not isinstance(controller, Job):
        return {}
    name, uid = controller.metadata.name, controller.metadata.uid
    return {
        "batch.kubernetes.io/controller-uid": uid,
        JOB_NAME: name,
        "controller-uid": uid,
        "job-name": name,
    }


def metadata_of(controller: PodController, want: PodToCreate) -> ObjectMeta:
    """Return the metadata of a pod that a controller makes."""
    template = controller.spec.template.metadata
    return ObjectMeta(
        name=want.name,
        generate_name=want.generate_name,
        namespace=controller.metadata.namespace,
        labels={**template.labels, **own_labels(controller), **want.labels},
        annotations={**template.annotations, **want.annotations},
        finalizers=(*template.finalizers, *want.finalizers),
        owner_references=(reference_to(controller),),
    )


def pod_of(controller: PodController, want: PodToCreate) -> Pod:
    """Return a pod of the controller's template."""
    spec = controller.spec.template.spec
    if want.node:
        spec = pinned(spec, want.node)
    return Pod(metadata=metadata_of(controller, want), spec=spec)


def index_by_node(objects: Indexer) -> None:
    """Add the index of pods by their nodes."""
    objects.index(Pod, NODE, lambda pod: (pod.spec.node_name,) if pod.spec.node_name else ())


def unused_names(
    objects: Indexer, controller: PodController, prefix: str, pods: Iterable[Pod]
) -> Iterator[str]:
    """Yield names for new pods beside those that the controller has."""
    namespace = controller.metadata.namespace
    seed = (controller.metadata.uid, prefix, *sorted(pod.metadata.uid for pod in pods))
    return draw_names(prefix, seed, lambda name: objects.get(Pod, namespace, name) is not None)


def creations(controller: PodController, wants: Iterable[PodToCreate]) -> Iterator[Step]:
    """Yield the writes that make pods, each with its event."""
    for want in wants:
        yield Create(pod_of(controller, want))
        yield RecordEvent(controller, "SuccessfulCreate", f"Created pod: {want.name}", "Create")


def deletions(controller: Any, pods: Iterable[Pod]) -> Iterator[Step]:
    """Yield the writes that delete pods, each with its event."""
    for pod in pods:
        yield Delete(Target.of(pod))
        yield RecordEvent(
            controller, "SuccessfulDelete", f"Deleted pod: {pod.metadata.name}", "Delete"
        )


def creation_refused(controller: Any, why: str) -> RecordEvent:
    """Return the event of a pod that could not be created."""
    return RecordEvent(
        controller, "FailedCreate", f"Error creating: {why}", "Create", is_warning=True
    )


def with_status(value: Any, status: Any) -> Any | None:
    """Return the object with another status, or None if it has this one."""
    return None if status == value.status else replace(value, status=status)


def fnv32a(data: bytes) -> int:
    """Return the FNV-1a hash of 32 bits."""
    number = 0x811C9DC5
    for byte in data:
        number = (number ^ byte) * 0x01000193 & 0xFFFFFFFF
    return number


def safe_text(text: str) -> str:
    """Return a text of the same length that is valid in a name."""
    return "".join(ALPHABET[ord(character) % len(ALPHABET)] for character in text)


def template_hash(template: Any, collisions: int | None = None) -> str:
    """Return a hash of a template; with collisions, other hashes of it."""
    data = msgspec.json.encode(to_tree(template), order="sorted")
    if collisions is not None:
        data += collisions.to_bytes(8, "little")
    return safe_text(str(fnv32a(data)))


def hashed_name(name: str, suffix: str) -> str:
    """Return a name and a suffix, the name cut where both would be too long."""
    return f"{name[: NAME_MAX - 1 - len(suffix)]}-{suffix}"


def draw_names(prefix: str, seed: Iterable[str], taken: Any) -> Iterator[str]:
    """Yield names that nobody has; the same seed gives the same ones. `taken(name)` decides."""
    start = hashlib.sha256("\0".join(seed).encode("utf-8", "replace"))
    number = 0
    while True:
        digest = start.copy()
        digest.update(number.to_bytes(8, "little"))
        drawn = (ALPHABET[byte % len(ALPHABET)] for byte in digest.digest()[:_SUFFIX_LENGTH])
        name = prefix[:_PREFIX_MAX] + "".join(drawn)
        if not taken(name):
            yield name
        number += 1


def daemon_tolerations(spec: PodSpec) -> tuple[Toleration, ...]:
    """Return the tolerations of a template with those that every daemon has."""
    troubles = (*_TROUBLES, _NETWORK_TROUBLE) if spec.host_network else _TROUBLES
    added = [Toleration(key=key, operator="Exists", effect=effect) for key, effect in troubles]
    # One that is there already is replaced: it must hold without end.
    own = (each for each in spec.tolerations if replace(each, toleration_seconds=None) not in added)
    return (*own, *added)


def pinned(spec: PodSpec, node: str) -> PodSpec:
    """Return the spec of a daemon that can go to this node only."""
    affinity = spec.affinity or Affinity()
    of_node = affinity.node_affinity or NodeAffinity()
    name = NodeSelectorRequirement(key=NAME_FIELD, operator=IN, values=(node,))
    term = NodeSelectorTerm(match_fields=(name,))
    required = NodeSelector(node_selector_terms=(term,))
    of_node = replace(of_node, required_during_scheduling_ignored_during_execution=required)
    return replace(
        spec,
        affinity=replace(affinity, node_affinity=of_node),
        tolerations=daemon_tolerations(spec),
    )


def is_over(pod: Pod) -> bool:
    """Return whether a pod has come to its end."""
    return pod.status.phase in (SUCCEEDED, FAILED)


def is_active(pod: Pod) -> bool:
    """Return whether a pod counts as one that its controller has."""
    return not is_over(pod) and pod.metadata.deletion_timestamp is None


def is_terminating(pod: Pod) -> bool:
    """Return whether a pod is on its way out but still may run."""
    return not is_over(pod) and pod.metadata.deletion_timestamp is not None


def ready_since(pod: Pod) -> Timestamp | None:
    """Return the time since which a pod is ready, or None."""
    for condition in pod.status.conditions:
        if condition.type == READY and condition.status == "True":
            return condition.last_transition_time
    return None


def is_ready(pod: Pod) -> bool:
    """Return whether a pod is ready."""
    return any(c.type == READY and c.status == "True" for c in pod.status.conditions)


def available_in_s(pod: Pod, min_ready_s: int, now: Timestamp) -> float | None:
    """Return after how many seconds a pod is available: 0 if it is, None if it is not ready."""
    if not is_ready(pod):
        return None
    if min_ready_s <= 0:
        return 0.0
    since = ready_since(pod)
    if since is None:
        return None
    left = since.after(min_ready_s).instant - now.instant
    return max(0.0, left.total_seconds())


def is_available(pod: Pod, min_ready_s: int, now: Timestamp) -> bool:
    """Return whether a pod has been ready for long enough."""
    return available_in_s(pod, min_ready_s, now) == 0.0


# --- which may go first -----------------------------------------------------------------------


def first_to_go(pods: Iterable[Pod], related: Iterable[Pod], now: Timestamp) -> list[Pod]:
    """Return pods with those first that are missed least.

    In this order: without a node, not yet running, not ready, cheap, beside others of the
    `related` pods on their node, ready for a short time, often restarted, young. Times count by
    their order of magnitude; of two alike the uid decides.
    """
    beside: dict[str, int] = {}
    for pod in related:
        if is_active(pod) and pod.spec.node_name:
            beside[pod.spec.node_name] = beside.get(pod.spec.node_name, 0) + 1

    def place(pod: Pod) -> tuple[Any, ...]:
        ready = is_ready(pod)
        return (
            pod.spec.node_name != "",
            _PHASES.get(pod.status.phase, 3),
            ready,
            _cost(pod),
            -beside.get(pod.spec.node_name, 0),
            _age(ready_since(pod), now) if ready else 0,
            -_restarts(pod),
            _age(pod.metadata.creation_timestamp, now),
            pod.metadata.uid,
        )

    return sorted(pods, key=place)


def _cost(pod: Pod) -> int:
    text = pod.metadata.annotations.get(DELETION_COST)
    return 0 if text is None else parse_int64(text) or 0


def _restarts(pod: Pod) -> int:
    return max((status.restart_count for status in pod.status.container_statuses), default=0)


def _age(time: Timestamp | None, now: Timestamp) -> int:
    """Return the order of magnitude of an age: -1 for none."""
    if time is None:
        return -1
    nanoseconds = (now.instant - time.instant).total_seconds() * 1e9
    return int(math.log2(nanoseconds)) if nanoseconds > 0 else -1


def condition_of(conditions: Iterable[Any], kind: str) -> Any | None:
    """Return the condition of a type, if there is one."""
    return next((each for each in conditions if each.type == kind), None)


def is_true(conditions: Iterable[Any], kind: str) -> bool:
    """Return whether the condition of a type holds."""
    found = condition_of(conditions, kind)
    return found is not None and found.status == "True"


def with_condition(conditions: tuple[C, ...], new: Any) -> tuple[C, ...]:
    """Return the conditions with this one, unless one of its status and reason is there.

    The time of transition stays while the status does.
    """
    old = condition_of(conditions, new.type)
    if old is not None and (old.status, old.reason) == (new.status, new.reason):
        return conditions
    if old is not None and old.status == new.status:
        new = replace(new, last_transition_time=old.last_transition_time)
    return (*without_condition(conditions, new.type), new)


def status_patch(value: Any, *new: Any, **more: Any) -> Patch:
    """Return the write of new conditions, and of more fields, to the status of this version.

    Conditions are replaced as a whole, so nobody else may have changed them.
    """
    conditions = value.status.conditions
    for each in new:
        conditions = with_condition(conditions, each)
    status = {**more, "conditions": [to_tree(each) for each in conditions]} if new else more
    metadata = {"resourceVersion": value.metadata.resource_version}
    return Patch(Target.of(value), {"metadata": metadata, "status": status}, "status")


def disruption_target(pod: Pod, reason: str, message: str, now: Timestamp) -> PodCondition:
    """Return the condition of a pod that is about to be deleted, with the cause."""
    return PodCondition(
        type=DISRUPTION_TARGET,
        status="True",
        last_transition_time=now.truncated(),
        observed_generation=pod.metadata.generation,
        reason=reason,
        message=message,
    )


def without_condition(conditions: tuple[C, ...], kind: str) -> tuple[C, ...]:
    """Return the conditions without the one of a type."""
    return tuple(each for each in conditions if each.type != kind)  # type: ignore[attr-defined]
