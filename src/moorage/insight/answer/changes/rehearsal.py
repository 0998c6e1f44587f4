"""Rehearsals: would the pod get a node if objects were changed?

    changes ─► edited objects ─► validated as on create ─► the pod and its claims made anew
                                                             │
                    node ◄─ the scheduler's cycle ◄──────────┘

The cluster is that of the plan, with all placed pods; it is changed for the rehearsal and put back.
Other pending pods that the changes help as well, and that come before the pod, are placed before
it. Pods of a group are placed together, or none is.

    # stage: what all rehearsals of a plan share
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import cached_property
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from moorage.api.catalogue import CATALOGUE
from moorage.api.codec import decode_tree, to_tree
from moorage.api.core.pod import Pod
from moorage.api.errors import DecodeError
from moorage.api.resource.v1 import ADMIN_NAMESPACE_LABEL, ResourceClaim
from moorage.api.scheduling import PodGroup
from moorage.claims.extended_resources import is_device_resource
from moorage.claims.pod_claims import controller_of, group_name
from moorage.claims.pod_resources import pod_requests
from moorage.insight.answer.changes.changed_cluster import (
    put_affinity,
    put_claim,
    put_object,
    remove_claim,
)
from moorage.insight.answer.changes.departures import Departure, depart
from moorage.insight.answer.changes.edits import ObjectChange, edited, without_server_fields
from moorage.insight.answer.changes.sources import (
    POD_COUNTS,
    TEMPLATE_SPEC,
    Source,
    Sources,
    nodes_of_siblings,
)
from moorage.insight.messages import full_name
from moorage.insight.plan.decisions import placed_anywhere
from moorage.insight.plan.planner import Plan, new_names, plan_completed, standing
from moorage.insight.snapshot.completion import Completed, complete
from moorage.insight.snapshot.consistency import classes_of
from moorage.insight.snapshot.snapshot import Snapshot, key_of
from moorage.scheduler.group_forest import GROUP, GroupKey
from moorage.scheduler.pod_groups import Gang, schedule_group, unit_of
from moorage.scheduler.pod_signature import pod_key
from moorage.scheduler.reservation import Reservation, release, reserve
from moorage.validation.registry import before_create
from moorage.validation.strategy import Context

Objects = dict[tuple[str, str, str], Any]
# Changes of these may help every pod: of the namespace, or wherever it is.
_OF_NAMESPACE: Final = ("ResourceQuota", "Namespace")
_OF_CLUSTER: Final = ("Node", "DeviceClass")
QUEUE_MAX: Final = 500  # pods that are tried before, when nothing is changed
BEFORE_MAX: Final = 8  # pods that are placed before the one that is asked about


class Stage:
    """What all rehearsals of a plan share."""

    def __init__(self, plan: Plan, context: Context) -> None:
        self.plan, self.context = plan, context
        self.sources = Sources(plan.before)

    @cached_property
    def labels(self) -> Mapping[str, Mapping[str, str]]:
        """The labels of namespaces, by name."""
        return {each.metadata.name: each.metadata.labels for each in self.plan.before.namespaces}

    @cached_property
    def claims(self) -> Mapping[str, Sequence[ResourceClaim]]:
        """The claims of the cluster, by namespace."""
        found: dict[str, list[ResourceClaim]] = {}
        for (namespace, _), claim in self.plan.cluster.claims.items():
            found.setdefault(namespace, []).append(claim)
        return found

    def here(self, namespace: str) -> Snapshot:
        """Return the templates, groups, quotas and pods of a namespace."""
        return self.sources.of_namespace.get(namespace, Snapshot())

    @cached_property
    def placed(self) -> Mapping[str, str]:
        """The nodes of the pods that get one, by full name."""
        return {full_name(each.pod): each.node for each in self.plan.placed}

    @cached_property
    def after(self) -> Snapshot:
        """The objects once the plan has come true, with stand-ins."""
        placed = self.plan.placed
        claims = (claim for each in placed for claim in each.claims)
        return self.plan.before.with_objects((*claims, *(each.pod for each in placed)))

    @cached_property
    def running(self) -> Mapping[str, Pod]:
        """The pods with a node, those that get one included, by uid."""
        return {each.metadata.uid: each for each in self.after.pods if each.spec.node_name}

    @cached_property
    def names(self) -> frozenset[str]:
        """The full names of all pods without a node, once the plan has come true."""
        return frozenset(full_name(each) for each in self.after.pods if not each.spec.node_name)

    @cached_property
    def queue(self) -> Sequence[Pod]:
        """The pending pods, in the order in which they are tried again."""
        pods = [each.pod for each in self.plan.pending]
        ordered = sorted(enumerate(pods), key=lambda each: standing(each[1], each[0]))
        return [pod for _, pod in ordered]

    def siblings_of(self, pod: Pod) -> Sequence[Pod]:
        """Return the pods with a node that the same controller created."""
        owner = controller_of(pod.metadata)
        return () if owner is None else self._created.get(owner.uid, ())

    @cached_property
    def _created(self) -> Mapping[str, Sequence[Pod]]:
        """The pods with a node by the uid of their controller, as the cluster has them."""
        found: dict[str, list[Pod]] = {}
        running = (each for each in self.plan.before.pods if each.spec.node_name)
        for pod in (*running, *(each.pod for each in self.plan.placed)):
            owner = controller_of(pod.metadata)
            if owner is not None and self.plan.cluster.snapshot.node_of(pod_key(pod)) is not None:
                found.setdefault(owner.uid, []).append(pod)
        return found

    @cached_property
    def queues(self) -> Mapping[str, Sequence[Pod]]:
        """The pending pods by namespace, in the order in which they are tried again."""
        found: dict[str, list[Pod]] = {}
        for each in self.queue:
            found.setdefault(each.metadata.namespace, []).append(each)
        return found


class ChangedPod(NamedTuple):
    """The pod as changes make it, and the objects beside it."""

    pod: Pod
    snapshot: Snapshot


class Rehearsal:
    """Tries changes to objects for one pod."""

    def __init__(self, stage: Stage, pod: Pod, nearest: Sequence[str] = ()) -> None:
        """Expect that the nearest nodes are those where a change is most likely to help."""
        self._stage, self._pod, self._nearest = stage, pod, nearest
        self._cluster, self._context = stage.plan.cluster, stage.context

    def node(self, changes: Sequence[ObjectChange], departure: Departure = ()) -> str | None:
        """Return the node that the pod would get with the changes; None if it would get none.

        It gets one once everybody of a departure has gone. A pod that the changes spare needs
        none: "".
        """
        objects = self._objects(changes)
        if objects is None:
            return None
        if self._is_spared(objects):
            return ""
        with ExitStack() as undo:
            stage = self._stage
            if departure:
                depart(
                    self._cluster,
                    departure,
                    pods=stage.running,
                    now=self._context.now,
                    undo=undo,
                )
            return self._scheduled(objects) if objects else self._planned()

    def _first(self) -> Iterator[str]:
        """Yield the full names of the pending pods that are tried before the pod, and with it."""
        units = set[object]()
        for each in self._stage.queue:
            if full_name(each) == full_name(self._pod):
                break
            units.add(self._unit(each))
        units.add(self._unit(self._pod))
        yield full_name(self._pod)
        yield from (full_name(e) for e in self._stage.queue if self._unit(e) in units)

    def _unit(self, pod: Pod) -> object:
        """Return what pods share that are tried together: the root of their groups."""
        return self._root_of(pod, {}) or full_name(pod)

    def _planned(self) -> str | None:
        """Return the node that the pod gets in a plan of all pods that are tried before it."""
        stage, name = self._stage, full_name(self._pod)
        left_out = stage.names.difference(self._first())
        if len(stage.names) - len(left_out) > QUEUE_MAX:
            return None
        waiting = Completed(stage.after, (), stage.plan.over_quota)
        found = plan_completed(waiting, self._context, left_out=left_out, kept=self._cluster)
        for each in reversed(found.placed):
            release(self._cluster, each)
        results = (*found.results, *found.stand_ins)
        placed = (each for each in results if isinstance(each, Reservation))
        return next((each.node for each in placed if full_name(each.pod) == name), None)

    def accepts(self, changes: Sequence[ObjectChange]) -> bool:
        """Return whether an API server would accept the changes."""
        return self._objects(changes) is not None

    def users(self, changes: Sequence[ObjectChange]) -> list[Pod]:
        """Return the active pods that are written in changed objects, or use them."""
        keys = dict.fromkeys(each.key for each in changes)
        return [pod for pod in self._stage.plan.before.pods if self._uses(pod, keys)]

    @contextmanager
    def changed(self, changes: Sequence[ObjectChange]) -> Iterator[ChangedPod | None]:
        """Make changes in the cluster for a while; None if a cluster would refuse them."""
        objects = self._objects(changes)
        with ExitStack() as undo:
            made = None if objects is None else self._made([self._pod], objects, undo)
            if objects is None or made is None:
                yield None
            else:
                known = (*objects.values(), *made.claims, *made.pods)
                yield ChangedPod(made.pods[0], self._stage.plan.before.with_objects(known))

    def _objects(self, changes: Sequence[ObjectChange]) -> Objects | None:
        """Return the changed objects by key; None if an API server would refuse one."""
        try:
            objects = dict(self._changed(changes))
        except (DecodeError, LookupError, TypeError, ValueError):
            return None
        return None if any(value is None for value in objects.values()) else objects

    def _is_spared(self, objects: Objects) -> bool:
        """Return whether the workload has no more pods than have a node."""
        source = self._stage.sources.of_pod(self._pod)
        changed = None if source is None else objects.get(key_of(source.value))
        field = None if changed is None else POD_COUNTS.get(changed.kind)
        if source is None or changed is None or field is None:
            return False
        before, after = getattr(source.value.spec, field), getattr(changed.spec, field)
        if before == after or after is None:
            return False
        nodes = nodes_of_siblings(self._pod, self._stage.plan.before, self._cluster)
        return 0 < int(after) <= len(nodes)

    def _changed(self, changes: Sequence[ObjectChange]) -> Iterator[tuple[Any, Any]]:
        """Yield the changed objects by key; None where an API server would refuse one."""
        find = self._stage.sources.find
        labels = {
            change.name: edited(before, change.edits).metadata.labels
            for change in changes
            if change.kind == "Namespace" and (before := find(*change.key)) is not None
        }
        for change in changes:
            before = find(*change.key)
            if change.new is not None:
                kind = CATALOGUE.find(change.new["apiVersion"], change.new["kind"])
                value = decode_tree(change.new, kind.struct).value
            elif before is None:
                yield change.key, None
                continue
            else:
                value = _as_created(edited(before, change.edits))
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
        kept = {"metadata": replace(value.metadata, namespace=result.stored.metadata.namespace)}
        if before is not None and hasattr(before, "status"):
            kept["status"] = before.status
        return replace(result.stored, **kept)

    def _labels(
        self, namespace: str, changed: Mapping[str, Mapping[str, str]]
    ) -> Mapping[str, str]:
        return changed.get(namespace) or self._stage.labels.get(namespace, {})

    def _scheduled(self, objects: Objects) -> str | None:
        """Return the node that the pod gets in the cluster with the changed objects."""
        with ExitStack() as undo:
            made = self._made(self._queue(objects), objects, undo)
            return None if made is None else self._placed(made.pods, objects, undo)

    def _made(self, pods: Sequence[Pod], objects: Objects, undo: ExitStack) -> Snapshot | None:
        """Change the cluster; return pods with their claims, None if the pod would be refused."""
        changed = [self._changed_pod(each, objects) for each in pods]
        own = changed[pods.index(self._pod)]
        if own is None:
            return None
        for value in objects.values():
            put_object(self._cluster, value, undo)
        for sibling in self._stage.siblings_of(self._pod):
            put_affinity(self._cluster, sibling, own.spec.affinity, undo)
        wanted = [pod for pod in changed if pod is not None]
        completed = self._completed(wanted, objects, undo)
        for claim in () if completed is None else completed.claims:
            put_claim(self._cluster, claim, undo)
        return completed

    def _queue(self, objects: Objects) -> list[Pod]:
        """Return the pods to place, in their order: all of its group, or the pod as the last.

        Before it come pending pods that use a changed object.
        """
        pod = self._pod
        others = self._stage.queues.get(pod.metadata.namespace, ())
        changed = self._changed_pod(pod, objects)
        group = None if changed is None else self._group_of(changed, objects)
        if group is not None:
            known = others if any(each is pod for each in others) else (*others, pod)
            root = self._root_of(pod, objects)
            return [each for each in known if each is pod or self._root_of(each, objects) == root]
        if any(kind in _OF_CLUSTER for kind, _, _ in objects):
            others = self._stage.queue  # of all namespaces
        found: list[Pod] = []
        for each in others:
            if each is pod or len(found) == BEFORE_MAX:
                break
            if self._uses(each, objects):
                found.append(each)
        return [*found, pod]

    def _group_of(self, pod: Pod, objects: Objects) -> PodGroup | None:
        """Return the group of a changed pod, with which it is placed or not."""
        cluster, name = self._cluster, group_name(pod)
        if name is None or not cluster.features.pod_groups:
            return None
        key = pod.metadata.namespace, name
        found: PodGroup | None = objects.get(("PodGroup", *key)) or cluster.groups.get(key)
        return found

    def _is_in(self, pod: Pod, group: PodGroup, objects: Objects) -> bool:
        changed = self._changed_pod(pod, objects)
        return changed is not None and group_name(changed) == group.metadata.name

    def _root_of(self, pod: Pod, objects: Objects) -> GroupKey | None:
        """Return the root of the groups that a changed pod is placed together with."""
        changed = self._changed_pod(pod, objects)
        name = None if changed is None else group_name(changed)
        key = (GROUP, pod.metadata.namespace, name or "")
        return None if name is None else self._cluster.forest.root_of(key)

    def _uses(self, pod: Pod, objects: Objects) -> bool:
        """Return whether a changed object matters for a pod."""
        kinds = {kind for kind, _, _ in objects}
        if "Node" in kinds or kinds.intersection(_OF_NAMESPACE):
            return True
        if "DeviceClass" in kinds and self._asks_for_class(pod, objects):
            return True
        namespace, source = pod.metadata.namespace, self._stage.sources.of_pod(pod)
        if source is not None and key_of(source.value) in objects:
            return True
        return any(
            ("ResourceClaimTemplate", namespace, entry.resource_claim_template_name) in objects
            or ("ResourceClaim", namespace, entry.resource_claim_name) in objects
            for entry in pod.spec.resource_claims
        )

    def _asks_for_class(self, pod: Pod, objects: Objects) -> bool:
        """Return whether a pod asks for devices of a changed class, as far as that is written."""
        if any(map(is_device_resource, pod_requests(pod))):
            return True  # Which class serves an extended resource may be what changes.
        namespace, find = pod.metadata.namespace, self._stage.sources.find
        for entry in pod.spec.resource_claims:
            template, name = entry.resource_claim_template_name, entry.resource_claim_name
            kind = "ResourceClaimTemplate" if template else "ResourceClaim"
            written = find(kind, namespace, template or name or "")
            if written is None:
                continue
            spec = written.spec.spec if template else written.spec
            if any(("DeviceClass", "", each) in objects for each in classes_of(spec.devices)):
                return True
        return False

    def _changed_pod(self, pod: Pod, objects: Objects) -> Pod | None:
        """Return a pod as its changed source makes it."""
        sources = self._stage.sources
        source, owner = sources.of_pod(pod), controller_of(pod.metadata)
        if owner is not None:  # of a workload that was refused before, the snapshot has none
            changed = objects.get((owner.kind, pod.metadata.namespace, owner.name))
            if changed is not None:
                return sources.pod_from(Source(changed, TEMPLATE_SPEC), pod, self._context)
        if source is None or (value := objects.get(key_of(source.value))) is None:
            return pod
        return sources.pod_from(Source(value, source.prefix), pod, self._context)

    def _completed(self, pods: Sequence[Pod], objects: Objects, undo: ExitStack) -> Snapshot | None:
        """Return the pods with their claims, made anew from templates; None if a quota refuses."""
        own, claims, made = full_name(self._pod), list[ResourceClaim](), dict[str, Pod]()
        for namespace in dict.fromkeys(each.metadata.namespace for each in pods):
            here = [each for each in pods if each.metadata.namespace == namespace]
            kept = self._kept_claims(namespace, here, undo)
            completed = self._completed_here(namespace, here, kept, objects)
            if own in completed.over_quota:
                return None
            known = {id(claim) for claim in kept}
            claims += (each for each in completed.snapshot.claims if id(each) not in known)
            made |= {full_name(each): each for each in completed.snapshot.pods}
        return Snapshot(claims=tuple(claims), pods=tuple(made[full_name(each)] for each in pods))

    def _kept_claims(
        self, namespace: str, pods: Sequence[Pod], undo: ExitStack
    ) -> list[ResourceClaim]:
        """Remove the claims that were made for pods; return the others of the namespace."""
        owners = {each.metadata.uid for each in pods}
        kept: list[ResourceClaim] = []
        for claim in self._stage.claims.get(namespace, ()):
            owner = controller_of(claim.metadata)
            if owner is not None and owner.uid in owners:
                remove_claim(self._cluster, claim, undo)
            else:
                kept.append(claim)
        return kept

    def _completed_here(
        self, namespace: str, pods: Sequence[Pod], kept: list[ResourceClaim], objects: Objects
    ) -> Completed:
        """Return pods of a namespace with new claims, as its quotas and changed objects say."""
        here, plan = self._stage.here(namespace), self._stage.plan
        bare = [replace(p, status=replace(p.status, resource_claim_statuses=None)) for p in pods]
        named = {full_name(each) for each in pods}
        beside = [p for p in here.pods if full_name(p) not in named] if here.quotas else []
        snapshot = Snapshot(
            namespaces=plan.before.namespaces,
            runtimes=plan.before.runtimes,
            quotas=here.quotas,
            classes=plan.before.classes if here.quotas else (),
            priorities=plan.before.priorities,
            templates=here.templates,
            groups=here.groups,
            claims=tuple(kept),
        ).with_objects(each for each in objects.values() if not isinstance(each, Pod))
        snapshot = replace(snapshot, pods=(*beside, *bare), controllers=())
        return complete(snapshot, self._context)

    def _placed(self, pods: Sequence[Pod], objects: Objects, undo: ExitStack) -> str | None:
        """Return the node of the last pod, once those before it have theirs."""
        cluster = self._cluster
        *before, last = pods
        group = self._group_of(last, objects)
        if group is not None:
            return self._node_in_group(pods, objects, undo)
        fresh = new_names(cluster) if before else None
        for pod in before:
            outcome = placed_anywhere(cluster, pod, self._nearest)
            if outcome is not None and fresh is not None:
                undo.callback(release, cluster, reserve(cluster, outcome, fresh))
        found = placed_anywhere(cluster, last, self._nearest)
        return None if found is None else found.node

    def _node_in_group(self, pods: Sequence[Pod], objects: Objects, undo: ExitStack) -> str | None:
        cluster, namespace = self._cluster, self._pod.metadata.namespace
        name = group_name(pods[-1]) or ""
        here, placed = self._stage.here(namespace).pods, self._stage.placed

        def gang(group: PodGroup) -> Gang:
            members = [each for each in here if self._is_in(each, group, objects)]
            found = ((e, e.spec.node_name or placed.get(full_name(e), "")) for e in members)
            there = [(each, node) for each, node in found if node]
            own = tuple(each for each in pods if group_name(each) == group.metadata.name)
            on, nodes = zip(*there, strict=True) if there else ((), ())
            return Gang(group, own, len(there), len(members), nodes=nodes, placed=on)

        root = cluster.forest.root_of((GROUP, namespace, name))
        unit = unit_of(cluster, root, gang)
        node = None
        for each in () if unit is None else schedule_group(cluster, unit, new_names(cluster)):
            if isinstance(each, Reservation):
                undo.callback(release, cluster, each)
                if full_name(each.pod) == full_name(self._pod):
                    node = each.node
        return node


def _as_created(value: Any) -> Any:
    """Return a stored object as it was when it was created, as far as validation asks for that."""
    if value.kind != "Job":
        return value
    created = decode_tree(without_server_fields(to_tree(value)), type(value)).value
    return replace(created, metadata=value.metadata)
