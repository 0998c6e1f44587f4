"""The objects in which users wrote what a pod and its claims are.

    pod ──► Pod, or the workload whose template it has
    claim ─► ResourceClaim, or the ResourceClaimTemplate that it was created from

A fix changes these, never what controllers made of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from moorage.api.apps import DaemonSet
from moorage.api.codec import to_tree
from moorage.api.core.pod import Pod
from moorage.api.resource.v1 import POD_CLAIM_ANNOTATION, ResourceClaim
from moorage.claims.pod_claims import controller_of, group_name
from moorage.controllers.daemonsets import node_of_daemon
from moorage.controllers.pod_control import pinned
from moorage.insight.answer.changes.edits import Edit, EditPath, ObjectChange, change_of, value_at
from moorage.insight.messages import Concern
from moorage.insight.snapshot.snapshot import Snapshot, key_of
from moorage.insight.snapshot.stand_ins import stands_for
from moorage.insight.snapshot.workloads import model_pod
from moorage.scheduler.cluster import Cluster
from moorage.validation.strategy import Context

POD_SPEC: Final = ("spec",)
TEMPLATE_SPEC: Final = ("spec", "template", "spec")
CLAIM_SPEC: Final = ("spec",)
CLAIM_TEMPLATE_SPEC: Final = ("spec", "spec")
# Where each kind of workload says how many pods there are at a time.
POD_COUNTS: Final = {
    "Deployment": "replicas",
    "ReplicaSet": "replicas",
    "StatefulSet": "replicas",
    "Job": "parallelism",
}


class Source(NamedTuple):
    """An object, and the path below which the spec of a pod or claim is written in it."""

    value: Any
    prefix: EditPath

    def has(self, path: EditPath) -> bool:
        """Return whether something is written there; defaults are not."""
        return value_at(to_tree(self.value), (*self.prefix, *path)) is not None

    def change(self, *edits: Edit) -> ObjectChange:
        """Return edits of the spec as a change of the object."""
        return change_of(
            self.value, *(replace(edit, path=(*self.prefix, *edit.path)) for edit in edits)
        )


class Sources:
    """Finds the objects in which pods and claims of a snapshot are written."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot

    @cached_property
    def _objects(self) -> dict[tuple[str, str, str], Any]:
        return {key_of(each): each for each in self.snapshot.objects()}

    @cached_property
    def of_namespace(self) -> Mapping[str, Snapshot]:
        """What is in each namespace that decides about claims and quotas there."""
        fields = ("quotas", "templates", "groups", "pods")
        found: dict[str, dict[str, list[Any]]] = {}
        for field in fields:
            for each in getattr(self.snapshot, field):
                here = found.setdefault(each.metadata.namespace, {})
                here.setdefault(field, []).append(each)
        return {
            namespace: Snapshot.of(each for objects in here.values() for each in objects)
            for namespace, here in found.items()
        }

    def find(self, kind: str, namespace: str, name: str) -> Any | None:
        """Return an object of the snapshot."""
        return self._objects.get((kind, namespace, name))

    def of_pod(self, pod: Pod) -> Source | None:
        """Return where a pod is written; None if it only stands for a claim."""
        if stands_for(pod) is not None:
            return None
        namespace, owner = pod.metadata.namespace, controller_of(pod.metadata)
        if owner is not None:
            found = self.find(owner.kind, namespace, owner.name)
            if owner.kind == "ReplicaSet":
                found = self._deployment(namespace, owner.name, found) or found
            if found is not None:
                return Source(found, TEMPLATE_SPEC)
        return Source(pod, POD_SPEC)

    def _deployment(self, namespace: str, name: str, replica_set: Any | None) -> Any | None:
        owner = None if replica_set is None else controller_of(replica_set.metadata)
        named = name.rpartition("-")[0] if owner is None else owner.name
        return self.find("Deployment", namespace, named)

    def of_claim(self, claim: ResourceClaim, pod: Pod) -> Source | None:
        """Return where a claim of a pod is written; None for claims of extended resources."""
        namespace = claim.metadata.namespace
        if controller_of(claim.metadata) is None:
            found = self.find("ResourceClaim", namespace, claim.metadata.name)
            return None if found is None else Source(found, CLAIM_SPEC)
        entry = claim.metadata.annotations.get(POD_CLAIM_ANNOTATION, "")
        group = self.find("PodGroup", namespace, group_name(pod) or "")
        for owner in (pod, group):
            for each in () if owner is None else owner.spec.resource_claims:
                name = each.resource_claim_template_name
                if each.name == entry and name is not None:
                    template = self.find("ResourceClaimTemplate", namespace, name)
                    if template is not None:
                        return Source(template, CLAIM_TEMPLATE_SPEC)
        return None

    def pod_from(self, source: Source, pod: Pod, context: Context) -> Pod | None:
        """Return the pod as its changed source makes it; None if a cluster would refuse it."""
        if source.prefix == POD_SPEC:
            return replace(pod, spec=source.value.spec)
        made = model_pod(source.value, context)
        if isinstance(made, Concern):
            return None
        spec = made.spec
        if isinstance(source.value, DaemonSet):
            spec = pinned(spec, node_of_daemon(pod))  # Each daemon is for one node.
        return replace(pod, spec=spec)


def nodes_of_siblings(pod: Pod, snapshot: Snapshot, cluster: Cluster) -> list[str]:
    """Return the nodes of the placed pods that the same controller created."""
    owner = controller_of(pod.metadata)
    if owner is None:
        return []
    uids = {
        each.metadata.uid
        for each in snapshot.pods
        if (other := controller_of(each.metadata)) is not None and other.uid == owner.uid
    }
    nodes = cluster.snapshot.nodes
    return [name for name, state in nodes.items() for _ in uids & state.pods.keys()]
