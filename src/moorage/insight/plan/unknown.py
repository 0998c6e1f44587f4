"""Pods of which nobody can say whether they get a node, because what decides could not be read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from moorage.api.core.pod import Pod
from moorage.claims import is_device_resource, pod_requests
from moorage.claims.pod_claims import Named, NotCreated, group_name, reference_of
from moorage.insight.snapshot.snapshot import Snapshot
from moorage.insight.snapshot.unread import UnreadKind, why_unread
from moorage.scheduler.diagnosis import FitDiagnosis
from moorage.scheduler.framework import Unschedulable
from moorage.scheduler.scheduling_cycle import Pending

UNREAD: Final = "Unread"  # stands for a plugin, as a quota does
# What takes room or devices from pods; without it, an answer is what holds at most.
TAKERS: Final = ("Pod", "ResourceClaim")


class Need(NamedTuple):
    """A kind that decides about a pod, and what is not known without its objects."""

    kind: str
    unknown: str


class UnknownFate(NamedTuple):
    """What decides about a pod and could not be read, and what is not known for that reason."""

    hidden: tuple[UnreadKind, ...]
    unknown: str

    def __str__(self) -> str:
        return f"{why_unread(self.hidden)}, so {self.unknown} is not known"


def unknown_of(snapshot: Snapshot, pod: Pod) -> UnknownFate | None:
    """Return what decides about a pod and could not be read; None if all of it was."""
    if not snapshot.unread:
        return None
    namespace = pod.metadata.namespace
    hidden = [
        (each, need)
        for need in _needs(snapshot, pod)
        for each in snapshot.unread.hidden((need.kind,), namespace)
    ]
    if not hidden:
        return None
    return UnknownFate(tuple(dict.fromkeys(each for each, _ in hidden)), hidden[0][1].unknown)


def undecided(snapshot: Snapshot, pending: Pending) -> Pending:
    """Return a pod without a node as one of which nothing is known, if that is so."""
    found = None if pending.pod.spec.scheduling_gates else unknown_of(snapshot, pending.pod)
    if found is None:
        return pending
    status = Unschedulable(UNREAD, (str(found),))
    diagnosis = FitDiagnosis(len(snapshot.nodes), pre_filter_status=status)
    return Pending(pending.pod, diagnosis, reason=str(found), message="")


def is_undecided(result: object) -> bool:
    """Return whether it is unknown if a pod gets a node."""
    if not isinstance(result, Pending):
        return False
    status = result.diagnosis.pre_filter_status
    return status is not None and status.plugin == UNREAD


def assumption(snapshot: Snapshot) -> str:
    """Return what a placement takes for granted; nothing if all that takes room was read."""
    hidden = snapshot.unread.hidden(TAKERS)
    if not hidden:
        return ""
    return f"{why_unread(hidden)}: what others of them take counts as free"


def _needs(snapshot: Snapshot, pod: Pod) -> Iterator[Need]:
    """Yield the kinds that decide about a pod, as far as they are in question."""
    namespace, spec = pod.metadata.namespace, pod.spec
    claims = {c.metadata.name for c in snapshot.claims if c.metadata.namespace == namespace}
    templates = {t.metadata.name for t in snapshot.templates if t.metadata.namespace == namespace}
    groups = {g.metadata.name for g in snapshot.groups if g.metadata.namespace == namespace}
    for entry in spec.resource_claims:
        match reference_of(pod, entry):
            case Named(name=name) if name not in claims:
                yield Need("ResourceClaim", f"whether claim {name} exists")
            case NotCreated() if entry.resource_claim_template_name not in (None, *templates):
                unknown = f"whether template {entry.resource_claim_template_name} exists"
                yield Need("ResourceClaimTemplate", unknown)
    if (group := group_name(pod)) is not None:
        if group not in groups:
            yield Need("PodGroup", f"whether pod group {group} exists")
        yield Need("Pod", f"which pods group {group} has")
    runtime = spec.runtime_class_name
    if runtime and runtime not in {each.metadata.name for each in snapshot.runtimes}:
        yield Need("RuntimeClass", f"what runtime class {runtime} adds to the pod")
    yield Need("Node", "which node would take the pod")
    if spec.resource_claims or any(map(is_device_resource, pod_requests(pod))):
        yield Need("ResourceSlice", "which devices there are")
        yield Need("DeviceClass", "which devices its claims may have")
    if any("persistentVolumeClaim" in volume for volume in spec.volumes):
        for kind in ("PersistentVolumeClaim", "PersistentVolume"):
            yield Need(kind, "where the volumes of the pod are")
