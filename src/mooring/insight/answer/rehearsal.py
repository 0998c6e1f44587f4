"""Rehearsals: would the pod get a node if objects were changed?

    changes ─► edited objects ─► validated as on create ─► the pod and its claims made anew
                                                             │
                    node ◄─ the scheduler's cycle ◄──────────┘

The cluster is that of the plan, with all placed pods; it is changed for the rehearsal and put back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

from msgspec.structs import replace

from mooring.api.catalogue import CATALOGUE
from mooring.api.codec import decode_tree
from mooring.api.core.node import Node
from mooring.api.core.pod import Pod
from mooring.api.errors import DecodeError
from mooring.api.resource.v1 import ADMIN_NAMESPACE_LABEL, DeviceClass, ResourceClaim
from mooring.claims.pod_claims import is_controlled_by
from mooring.insight.answer.edits import ObjectChange, edited
from mooring.insight.answer.sources import POD_COUNTS, Source, Sources, nodes_of_siblings
from mooring.insight.messages import full_name
from mooring.insight.snapshot.completion import complete
from mooring.insight.snapshot.snapshot import Snapshot, key_of
from mooring.scheduler.cluster import Cluster
from mooring.scheduler.scheduling_cycle import Placed, schedule
from mooring.validation.registry import before_create
from mooring.validation.strategy import Context

Objects = dict[tuple[str, str, str], Any]


class Rehearsal:
    """Tries changes to objects for one pod."""

    def __init__(self, cluster: Cluster, snapshot: Snapshot, context: Context, pod: Pod) -> None:
        self._cluster, self._snapshot = cluster, snapshot
        self._context, self._pod = context, pod
        self._sources = Sources(snapshot)

    @property
    def sources(self) -> Sources:
        """Where pods and claims are written."""
        return self._sources

    def node(self, changes: Sequence[ObjectChange]) -> str | None:
        """Return the node that the pod would get with the changes; None if it would get none."""
        try:
            objects = dict(self._changed(changes))
        except (DecodeError, LookupError, TypeError):
            return None
        if any(value is None for value in objects.values()):
            return None
        return self._spared(objects) or self._scheduled(objects)

    def _spared(self, objects: Objects) -> str | None:
        """Return the node of another pod, if the workload has no more pods than have a node."""
        source = self._sources.of_pod(self._pod)
        changed = None if source is None else objects.get(key_of(source.value))
        field = None if changed is None else POD_COUNTS.get(changed.kind)
        if source is None or changed is None or field is None:
            return None
        before, after = getattr(source.value.spec, field), getattr(changed.spec, field)
        nodes = nodes_of_siblings(self._pod, self._snapshot, self._cluster)
        if before == after or after is None or not 0 < after <= len(nodes):
            return None
        return nodes[0]

    def _changed(self, changes: Sequence[ObjectChange]) -> Iterator[tuple[Any, Any]]:
        """Yield the changed objects by key; None where an API server would refuse one."""
        existing = {key_of(each): each for each in self._snapshot.objects()}
        labels = {
            change.name: edited(existing[change.key], change.edits).metadata.labels
            for change in changes
            if change.kind == "Namespace" and change.key in existing
        }
        for change in changes:
            before = existing.get(change.key)
            if change.new is not None:
                kind = CATALOGUE.find(change.new["apiVersion"], change.new["kind"])
                value = decode_tree(change.new, kind.struct).value
            elif before is None:
                yield change.key, None
                continue
            else:
                value = edited(before, change.edits)
            yield change.key, self._admitted(value, before, labels)

    def _admitted(
        self, value: Any, before: Any | None, labels: Mapping[str, Mapping[str, str]]
    ) -> Any | None:
        kind = CATALOGUE.find(value.api_version, value.kind)
        namespace = value.metadata.namespace or "default"
        is_admin = self._labels(namespace, labels).get(ADMIN_NAMESPACE_LABEL) == "true"
        context = self._context._replace(namespace_is_admin=is_admin)
        result = before_create(value, kind, context, namespace=namespace)
        if result.stored is None:
            return None
        kept = {"metadata": value.metadata}
        if before is not None and hasattr(before, "status"):
            kept["status"] = before.status
        return replace(result.stored, **kept)

    def _labels(
        self, namespace: str, changed: Mapping[str, Mapping[str, str]]
    ) -> Mapping[str, str]:
        if namespace in changed:
            return changed[namespace]
        found = (n for n in self._snapshot.namespaces if n.metadata.name == namespace)
        return next((each.metadata.labels for each in found), {})

    def _scheduled(self, objects: Objects) -> str | None:
        cluster, pod = self._cluster, self._changed_pod(objects)
        if pod is None:
            return None
        with ExitStack() as undo:
            for value in objects.values():
                if isinstance(value, DeviceClass):
                    undo.callback(_put_class(cluster, value))
                if isinstance(value, Node):
                    undo.callback(_put_node(cluster, value))
            made = self._completed(pod, objects, undo)
            if not made.pods:
                return None
            for claim in made.claims:
                undo.callback(_put_claim(cluster, claim))
            (completed,) = made.pods
            outcome = schedule(cluster, completed)
        return outcome.node if isinstance(outcome, Placed) else None

    def _changed_pod(self, objects: Objects) -> Pod | None:
        """Return the pod as its changed source makes it."""
        source = self._sources.of_pod(self._pod)
        if source is None or (value := objects.get(key_of(source.value))) is None:
            return self._pod
        return self._sources.pod_from(Source(value, source.prefix), self._pod, self._context)

    def _completed(self, pod: Pod, objects: Objects, undo: ExitStack) -> Snapshot:
        """Return the pod with its claims, made anew from templates."""
        cluster, namespace = self._cluster, pod.metadata.namespace
        bare = replace(pod, status=replace(pod.status, resource_claim_statuses=None))
        here: list[Any] = list(self._snapshot.namespaces)
        here += (t for t in self._snapshot.templates if t.metadata.namespace == namespace)
        here += (g for g in self._snapshot.groups if g.metadata.namespace == namespace)
        claims = [c for key, c in cluster.claims.items() if key[0] == namespace]
        for claim in claims:
            if is_controlled_by(claim, pod):
                undo.callback(_remove_claim(cluster, claim))
            else:
                here.append(claim)
        changed = (each for each in objects.values() if not isinstance(each, Pod))
        here += (c for c in self._snapshot.classes)
        quotas = [q for q in self._snapshot.quotas if q.metadata.namespace == namespace]
        snapshot = Snapshot.of([*here, *quotas]).with_objects(changed)
        others = self._snapshot.pods if quotas else ()
        beside = (
            p
            for p in others
            if p.metadata.namespace == namespace and p.metadata.name != pod.metadata.name
        )
        snapshot = replace(snapshot, pods=(*beside, bare), controllers=())
        completed = complete(snapshot, self._context)
        if full_name(pod) in completed.over_quota:
            return Snapshot()
        done = replace(completed.snapshot, pods=completed.snapshot.pods[-1:])
        known = {key_of(each): each for each in here if isinstance(each, ResourceClaim)}
        new = tuple(each for each in done.claims if known.get(key_of(each)) is not each)
        return replace(done, claims=new)


Undo = Callable[[], None]


def _put_claim(cluster: Cluster, claim: ResourceClaim) -> Undo:
    metadata = claim.metadata
    before = cluster.find_claim(metadata.namespace, metadata.name)
    cluster.put_claim(claim)
    if before is None:
        return lambda: cluster.remove_claim(metadata.namespace, metadata.name)
    return lambda: cluster.put_claim(before)


def _remove_claim(cluster: Cluster, claim: ResourceClaim) -> Undo:
    cluster.remove_claim(claim.metadata.namespace, claim.metadata.name)
    return lambda: cluster.put_claim(claim)


def _put_node(cluster: Cluster, node: Node) -> Undo:
    before = cluster.node(node.metadata.name)
    cluster.put_node(node)
    return lambda: cluster.put_node(before)


def _put_class(cluster: Cluster, device_class: DeviceClass) -> Undo:
    name = device_class.metadata.name
    before = cluster.inventory.device_class(name)
    cluster.put_class(device_class)
    if before is None:
        return lambda: cluster.remove_class(name)
    return lambda: cluster.put_class(before)
