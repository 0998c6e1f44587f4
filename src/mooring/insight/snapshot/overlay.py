"""Manifests over a cluster: what applying them would leave there."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from mooring.insight.concerns import Concern, listed, titled
from mooring.insight.snapshot.snapshot import Snapshot, key_of


def overlay(cluster: Snapshot, manifests: Snapshot) -> tuple[Snapshot, list[Concern]]:
    """Return the manifests as they would be in the cluster, and what became of them otherwise.

    Pods that have a node and claims that have devices stay as they are: nothing that is applied
    changes them. All else is replaced; it keeps its uid, so that it keeps what it owns.
    """
    existing = {key_of(each): each for each in cluster.objects()}
    taken: list[Any] = []
    left: list[str] = []
    for each in manifests.objects():
        old = existing.get(key_of(each))
        if old is None or each.metadata.resource_version:
            taken.append(each)
        elif _is_settled(old):
            taken.append(old)
            left.append(titled(each))
        else:
            taken.append(_updated(each, old))
    if not left:
        return Snapshot.of(taken), []
    meaning = "what has a node or devices is not changed by applying a file"
    return Snapshot.of(taken), [
        Concern("settled", f"left as it is in the cluster: {listed(left)}", meaning)
    ]


def _is_settled(value: Any) -> bool:
    match value.kind:
        case "Pod":
            return bool(value.spec.node_name)
        case "ResourceClaim":
            return value.status.allocation is not None
    return False


def _updated(new: Any, old: Any) -> Any:
    if new.kind in ("Pod", "ResourceClaim"):
        return new  # made anew, for their specs cannot be changed
    new = replace(new, metadata=replace(new.metadata, uid=old.metadata.uid))
    status = getattr(old, "status", None)
    if status is None or new.status != type(status)():
        return new
    return replace(new, status=status)
