"""The cluster with a fix applied: the changed objects, and what controllers would recreate.

Pending pods that were created from changed objects are deleted with their claims, as if their
workloads had replaced them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from msgspec.structs import replace

from moorage.api.catalogue import CATALOGUE
from moorage.api.codec import decode_tree
from moorage.api.core.pod import Pod
from moorage.api.errors import DecodeError
from moorage.api.resource.v1 import ResourceClaim
from moorage.claims.pod_claims import controller_of
from moorage.insight.answer.changes.edits import ObjectChange, edited
from moorage.insight.answer.changes.sources import Sources
from moorage.insight.snapshot.snapshot import Snapshot, identified, key_of
from moorage.web.errors import UnusableError

ObjectKey = tuple[str, str, str]


def fixed_snapshot(
    snapshot: Snapshot, completed: Snapshot, changes: Sequence[ObjectChange]
) -> Snapshot:
    """Return the cluster with the changes of a fix.

    The fix was found with `completed`, which has pods that controllers would create.
    """
    changed = dict(_changed(completed, changes))
    sources = Sources(completed)
    again = [pod for pod in snapshot.pods if _is_made_again(pod, sources, changed)]
    owners = {pod.metadata.uid for pod in again}
    claims = [each for each in snapshot.claims if _is_of(each, owners)]
    left = snapshot.without([*claims, *(pod for pod in again if controller_of(pod.metadata))])
    bare = [_without_claims(pod) for pod in again if not controller_of(pod.metadata)]
    return left.with_objects([*bare, *changed.values()])


def _changed(snapshot: Snapshot, changes: Sequence[ObjectChange]) -> Iterator[tuple[Any, Any]]:
    existing = {key_of(each): each for each in snapshot.objects()}
    for change in changes:
        before = existing.get(change.key)
        try:
            if change.new is not None:
                kind = CATALOGUE.find(change.new["apiVersion"], change.new["kind"])
                yield change.key, identified(decode_tree(change.new, kind.struct).value)
            elif before is not None:
                yield change.key, edited(before, change.edits)
            else:
                raise UnusableError(f"There is no {change}.")
        except (DecodeError, LookupError, TypeError, ValueError) as error:
            raise UnusableError(f"{change} cannot be changed: {error}") from None


def _is_made_again(pod: Pod, sources: Sources, changed: dict[ObjectKey, Any]) -> bool:
    """Return whether a pod is pending, and it or the object that it was created from changes."""
    if pod.spec.node_name:
        return False
    source, namespace = sources.of_pod(pod), pod.metadata.namespace
    if source is not None and key_of(source.value) in changed:
        return key_of(source.value) != key_of(pod) or bool(pod.spec.resource_claims)
    return any(
        ("ResourceClaimTemplate", namespace, entry.resource_claim_template_name) in changed
        for entry in pod.spec.resource_claims
    )


def _is_of(claim: ResourceClaim, owners: set[str]) -> bool:
    owner = controller_of(claim.metadata)
    return owner is not None and owner.uid in owners and claim.status.allocation is None


def _without_claims(pod: Pod) -> Pod:
    return replace(pod, status=replace(pod.status, resource_claim_statuses=None))
