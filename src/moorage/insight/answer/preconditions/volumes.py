"""Volume claims of a pod that are missing, unbound, or bound to nodes that it cannot use."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from moorage.api.core.persistent_volume import (
    LOST,
    PersistentVolume,
    PersistentVolumeClaim,
    storage_class_of,
)
from moorage.insight.answer.changes.edits import Edit
from moorage.insight.answer.finding import Case, Finding, FixRank, Proposal
from moorage.insight.answer.holders import waits_for_pods
from moorage.insight.messages import listed, nearest
from moorage.scheduler import volume_binding
from moorage.scheduler.framework import Unschedulable
from moorage.scheduler.pod_signature import PodInfo
from moorage.scheduler.volume_binding import claim_name_of


class _Use(NamedTuple):
    """A volume of the pod that is a claim: its place in the pod, and its name."""

    position: int
    claim: str
    is_ephemeral: bool


def volumes(case: Case) -> Iterator[Finding]:
    """Find the volume claims for which the pod waits."""
    status = case.explanation.pending.diagnosis.pre_filter_status
    if status is None or status.plugin != volume_binding.PLUGIN:
        return
    for use in _uses(case):
        found = case.cluster.volumes.claim(case.namespace, use.claim)
        if found is None:
            yield _missing(case, use)
        elif found.metadata.deletion_timestamp is not None:
            yield _advised(
                f"PersistentVolumeClaim {use.claim} is being deleted",
                f"wait until {use.claim} is gone and create it anew, or use another",
            )
        elif found.status.phase == LOST:
            yield _advised(
                f"PersistentVolumeClaim {use.claim} has lost its volume {found.spec.volume_name}",
                f"create {use.claim} anew; what was on its volume is gone",
            )
        elif (volume := _volume(case, found)) is None:
            yield _without_volume(case, found)
        elif isinstance(volume, str):
            yield _advised(
                f"volume {volume} of PersistentVolumeClaim {use.claim} does not exist",
                f"find out who deleted PersistentVolume {volume}",
            )


def volumes_on_nodes(case: Case, nodes: Sequence[str], status: Unschedulable) -> Iterator[Finding]:
    """Find the volume claims because of which nodes are not for the pod."""
    names = [use.claim for use in _uses(case)]
    if status.plugin == volume_binding.RESTRICTIONS:
        one = [name for name in names if _is_for_one(case, name)]
        claim = listed(one)
        users = {user for name in one for user in case.cluster.volumes.users(case.namespace, name)}
        yield Finding(
            f"PersistentVolumeClaim {claim} is for one pod at a time ({volume_binding.ONE_POD}), "
            f"and pod {listed(sorted(users))} uses it",
            (
                *waits_for_pods(case, _placed(case, users)),
                Proposal(f"give {claim} the access mode ReadWriteOnce anew", FixRank.ADVICE),
            ),
        )
    elif status.plugin == volume_binding.PLUGIN:
        placed = [name for name in names if _is_placed(case, name)]
        yield _advised(
            f"the volume of PersistentVolumeClaim {listed(placed)} cannot be reached from "
            f"{listed(nodes)}",
            "make room on a node that its node affinity names, or use another claim",
        )


def _placed(case: Case, names: Collection[str]) -> Iterator[PodInfo]:
    for state in case.cluster.snapshot.nodes.values():
        for pod in state.pods.values():
            if pod.name in names and pod.signature.namespace == case.namespace:
                yield pod


def _uses(case: Case) -> Iterator[_Use]:
    for index, volume in enumerate(case.pod.spec.volumes):
        name = claim_name_of(case.pod, volume)
        if name is not None:
            yield _Use(index, name, volume.get("ephemeral") is not None)


def _volume(case: Case, claim: PersistentVolumeClaim) -> PersistentVolume | str | None:
    """Return the volume of a claim, its name if it does not exist, or None without one."""
    name = claim.spec.volume_name
    return (case.cluster.volumes.volume(name) or name) if name else None


def _is_for_one(case: Case, name: str) -> bool:
    claim = case.cluster.volumes.claim(case.namespace, name)
    return claim is not None and volume_binding.ONE_POD in claim.spec.access_modes


def _is_placed(case: Case, name: str) -> bool:
    claim = case.cluster.volumes.claim(case.namespace, name)
    volume = None if claim is None else _volume(case, claim)
    return isinstance(volume, PersistentVolume) and volume.spec.node_affinity is not None


def _advised(cause: str, advice: str) -> Finding:
    return Finding(cause, (Proposal(advice, FixRank.ADVICE),))


def _missing(case: Case, use: _Use) -> Finding:
    name, namespace = use.claim, case.namespace
    if use.is_ephemeral:
        return _advised(
            f"PersistentVolumeClaim {name}, which is made for the pod, is not there yet",
            "see whether the controller manager runs and what its ephemeral volume controller says",
        )
    known = [c.metadata.name for c in case.snapshot.volume_claims if _is_in(c, namespace)]
    meant, source = nearest(name, known), case.sources.of_pod(case.pod)
    cause = f"PersistentVolumeClaim {name} does not exist in namespace {namespace}"
    if meant is None or source is None:
        return _advised(cause, f"create PersistentVolumeClaim {name} in namespace {namespace}")
    path = ("volumes", use.position, "persistentVolumeClaim", "claimName")
    change = source.change(Edit(path, meant))
    text = f"use PersistentVolumeClaim {meant} instead of {name}"
    proposal = Proposal(text, FixRank.REPAIR, (change,))
    return Finding(f"{cause}: did you mean {meant}?", (proposal,))


def _is_in(claim: PersistentVolumeClaim, namespace: str) -> bool:
    return claim.metadata.namespace == namespace


def _without_volume(case: Case, claim: PersistentVolumeClaim) -> Finding:
    """Return that no volume is there for a claim, and what would make one."""
    name, class_name = claim.metadata.name, storage_class_of(claim)
    size = claim.spec.resources.requests.get("storage")
    wanted = " and ".join(filter(None, (str(size or ""), ", ".join(claim.spec.access_modes))))
    if not class_name:
        return _advised(
            f"PersistentVolumeClaim {name} names no class, and no free volume fits it ({wanted})",
            f"name a StorageClass in {name}, or create a PersistentVolume with {wanted}",
        )
    known = {each.metadata.name for each in case.snapshot.storage_classes}
    if class_name not in known:
        meant = nearest(class_name, known)
        hint = f": did you mean {meant}?" if meant else ""
        return _advised(
            f"PersistentVolumeClaim {name} has no volume: there is no StorageClass "
            f"{class_name}{hint}",
            f"use class {meant} in {name}" if meant else f"create StorageClass {class_name}",
        )
    return _advised(
        f"PersistentVolumeClaim {name} of class {class_name} has no volume yet",
        f"see what the provisioner of class {class_name} says: kubectl describe pvc {name}",
    )
