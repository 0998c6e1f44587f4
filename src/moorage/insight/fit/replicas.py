"""Replicas: pods alike, each with claims of its own, and a cluster filled with them.

The cluster is changed in place: because it remembers its nodes, the cost of one more replica
depends only on what the last one changed, not on the number of nodes.

    # model: the object that replicas copy; a claim or template alone represents a pod that only
    #   uses it, and each replica then has a claim of its own like it
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from moorage.api.core import Pod
from moorage.api.core.pod import PodStatus
from moorage.api.meta import ObjectMeta
from moorage.api.resource.v1 import ResourceClaim, ResourceClaimTemplate, ResourceClaimTemplateSpec
from moorage.claims.pod_claims import ClaimFeatures, group_name
from moorage.controllers.pod_control import is_active
from moorage.insight.fit.node_kinds import nodes_by_kind
from moorage.insight.messages import Concern, full_name, titled
from moorage.insight.plan.planner import Progress, new_names
from moorage.insight.snapshot.completion import ClaimMaker
from moorage.insight.snapshot.snapshot import Controller, Snapshot, identified
from moorage.insight.snapshot.stand_ins import stand_in, unused_in
from moorage.insight.snapshot.workloads import ExistingPods, model_pod
from moorage.scheduler.cluster import Cluster
from moorage.scheduler.errors import CycleError
from moorage.scheduler.framework import Unschedulable
from moorage.scheduler.plugins.claim_needs import ClaimKey, claim_key
from moorage.scheduler.plugins.registry import active_filters
from moorage.scheduler.reservation import IdSource, Reservation, release, reserve
from moorage.scheduler.scheduling_cycle import Attempt, Pending, Placed, attempt
from moorage.validation.strategy import Context

Subject = Pod | Controller | ResourceClaim | ResourceClaimTemplate


class Model(Struct, frozen=True):
    """What replicas are made from."""

    title: str  # the subject: `Deployment default/train`
    base: str  # the prefix of replica names
    pod: Pod
    templates: tuple[ResourceClaimTemplate, ...] = ()  # of the replicas' claims

    @property
    def shared(self) -> tuple[str, ...]:
        """The names of the claims that all replicas use together."""
        names = (entry.resource_claim_name for entry in self.pod.spec.resource_claims)
        return tuple(dict.fromkeys(name for name in names if name))

    @property
    def group(self) -> str | None:
        """The pod group that replicas would belong to."""
        return group_name(self.pod)


def model_of(subject: Subject, snapshot: Snapshot, context: Context) -> Model | Concern:
    """Return what replicas of a subject are made from, or why there can be none."""
    name, title = subject.metadata.name, titled(subject)
    match subject:
        case Pod():
            return Model(title, name, _fresh(subject), _templates(subject, snapshot))
        case ResourceClaimTemplate():
            return Model(title, name, _fresh(stand_in(subject)), (subject,))
        case ResourceClaim():
            template = _template_like(subject)
            return Model(title, name, _fresh(stand_in(template)), (template,))
    pod = model_pod(subject, context)
    if isinstance(pod, Concern):
        return pod
    return Model(title, name, _fresh(pod), _templates(pod, snapshot))


class Asked(NamedTuple):
    """The replicas of a subject that are asked for already."""

    waiting: frozenset[str]  # full names of pods without a node
    wanted: int  # these, or the claim that nothing uses
    running: int  # with a node


def asked_of(subject: Subject, snapshot: Snapshot) -> Asked:
    """Return the replicas of the subject that are asked for already."""
    pods: Collection[Pod] = ()
    match subject:
        case Pod():
            pods = [each for each in snapshot.pods if full_name(each) == full_name(subject)]
        case ResourceClaim():
            return Asked(frozenset(), len(unused_in(Snapshot(claims=(subject,)), snapshot)), 0)
        case ResourceClaimTemplate():
            pass
        case controller:
            pods = ExistingPods(snapshot).of(controller)
    active = [pod for pod in pods if is_active(pod)]
    waiting = frozenset(full_name(pod) for pod in active if not pod.spec.node_name)
    return Asked(waiting, len(waiting), len(active) - len(waiting))


def _fresh(pod: Pod) -> Pod:
    """Return a pod as it was created: without uid, node and status."""
    old = pod.metadata
    metadata = ObjectMeta(
        name=old.name,
        namespace=old.namespace,
        labels=old.labels,
        annotations=old.annotations,
        owner_references=old.owner_references,
    )
    return replace(pod, metadata=metadata, spec=replace(pod.spec, node_name=""), status=PodStatus())


def _templates(pod: Pod, snapshot: Snapshot) -> tuple[ResourceClaimTemplate, ...]:
    names = {entry.resource_claim_template_name for entry in pod.spec.resource_claims}
    return tuple(
        each
        for each in snapshot.templates
        if each.metadata.namespace == pod.metadata.namespace and each.metadata.name in names
    )


def _template_like(claim: ResourceClaim) -> ResourceClaimTemplate:
    metadata = ObjectMeta(name=claim.metadata.name, namespace=claim.metadata.namespace)
    spec = ResourceClaimTemplateSpec(spec=claim.spec)
    return ResourceClaimTemplate(metadata=metadata, spec=spec)


class Replica(NamedTuple):
    """A pod, and the claims that were created for it."""

    pod: Pod
    claims: tuple[ResourceClaim, ...]


class Replicas:
    """Creates replicas of a model, one after the other, under unused names."""

    def __init__(self, model: Model, around: Snapshot, features: ClaimFeatures) -> None:
        self._model = model
        self._names = {full_name(pod) for pod in around.pods}
        self._number = 0
        made_from = Snapshot(templates=model.templates, groups=around.groups, claims=around.claims)
        self._claims = ClaimMaker(made_from, features)

    @property
    def are_bound_together(self) -> bool:
        """Whether replicas share claims or belong to a pod group."""
        return bool(self._model.shared) or self._model.group is not None

    def next(self) -> Replica:
        """Return one more replica."""
        pod = self._claims.complete_pod(self._pod())
        namespace = pod.metadata.namespace
        shared = self._model.group is not None
        statuses = pod.status.resource_claim_statuses or ()
        names = [status.resource_claim_name for status in statuses]
        made = [self._claims.claim(namespace, name) for name in names if name is not None]
        if shared:  # The group's claims existed before.
            made = [
                c
                for c in made
                if any(owner.uid == pod.metadata.uid for owner in c.metadata.owner_references)
            ]
        for claim in made:
            self._claims.forget(claim)
        return Replica(pod, tuple(made))

    def _pod(self) -> Pod:
        model = self._model.pod
        while True:
            name = f"{self._model.base}-{self._number}"
            self._number += 1
            if f"{model.metadata.namespace}/{name}" not in self._names:
                break
        named: Pod = identified(replace(model, metadata=replace(model.metadata, name=name)))
        return named


class UnplacedReplica(NamedTuple):
    """The first replica that fits nowhere."""

    pending: Pending
    ready: Attempt | None  # None if it was rejected before any node was asked


class FilledKinds(NamedTuple):
    """What one node of each kind, filled, says about all nodes."""

    ready: Attempt  # of the replica that does not fit on these
    counts: Mapping[str, int]  # by node
    filled: Mapping[str, str]  # by node, the one that was filled for it
    rejections: Mapping[str, Unschedulable]  # by nodes that were filled; none if all replicas fit


class ReplicaFiller:
    """Fills a cluster with replicas, and empties it again."""

    def __init__(self, cluster: Cluster, replicas: Replicas) -> None:
        self.cluster = cluster
        self.placed: list[Reservation] = []
        self.refused: UnplacedReplica | None = None
        self._replicas = replicas
        self._fresh = IdSource(new_names(cluster).share_id, self._free_name)
        self._made: list[ClaimKey] = []  # of claims
        self._next: Replica | None = None
        self._namespace = ""

    def ask(self) -> Attempt | Pending:
        """Return an attempt to schedule the next replica, which stays the next until placed."""
        if self._next is None:
            self._next = self._replicas.next()
            self._namespace = self._next.pod.metadata.namespace
            for claim in self._next.claims:
                self._made.append(claim_key(claim))
                self.cluster.put_claim(claim)
        return attempt(self.cluster, self._next.pod)

    def run(self, replicas_max: int, progress: Progress, *, in_any_order: bool = False) -> None:
        """Place replicas until one is rejected or the maximum is reached.

        In any order, as many get to each node if all fit, but not on the nodes, one after the
        other, that Kubernetes would choose. That takes much less time.
        """
        if in_any_order:
            self._fill_nodes(replicas_max, progress)
        while len(self.placed) < replicas_max:
            ready = self.ask()
            # Preemption does not matter here.
            outcome = ready if isinstance(ready, Pending) else ready.best(alone=False)
            if isinstance(outcome, Pending):
                self.refused = UnplacedReplica(
                    outcome, None if isinstance(ready, Pending) else ready
                )
                return
            self._place(outcome, replicas_max, progress)

    def run_kinds(self, replicas_max: int, progress: Progress) -> FilledKinds | None:
        """Fill one node of each kind, as far as necessary; None if nodes have no kinds."""
        ready = self.ask()
        if isinstance(ready, Pending) or not self._is_each_node_alone(ready):
            return None
        kinds = nodes_by_kind(ready)
        if kinds is None:
            return None
        counts: dict[str, int] = {}
        for nodes in kinds:
            before = len(self.placed)
            self._fill(nodes[:1], replicas_max, progress)
            counts |= dict.fromkeys(nodes, len(self.placed) - before)
        progress(min(sum(counts.values()), replicas_max), replicas_max)
        ready = self.ask()
        if isinstance(ready, Pending):
            return None
        filled = {name: nodes[0] for nodes in kinds for name in nodes}
        if sum(counts.values()) >= replicas_max:
            return FilledKinds(ready, counts, filled, {})
        try:
            rejections = ready.rejections(nodes[0] for nodes in kinds)
        except CycleError:
            return None
        is_full = len(rejections) == len(kinds)
        return FilledKinds(ready, counts, filled, rejections) if is_full else None

    def _fill_nodes(self, replicas_max: int, progress: Progress) -> None:
        """Fill node after node, if a node takes as many replicas wherever the others are."""
        ready = self.ask()
        if isinstance(ready, Pending) or not self._is_each_node_alone(ready):
            return
        self._fill(self.cluster.snapshot.nodes, replicas_max, progress)

    def _fill(self, nodes: Iterable[str], replicas_max: int, progress: Progress) -> None:
        for node in nodes:
            while len(self.placed) < replicas_max:
                ready = self.ask()
                if isinstance(ready, Pending):
                    return
                try:
                    found = ready.anywhere((node,), asked_max=0)
                except CycleError:
                    return  # Whoever goes on reports it.
                if found is None:
                    break
                self._place(found, replicas_max, progress)

    def _is_each_node_alone(self, ready: Attempt) -> bool:
        """Return whether what a node takes depends on nothing that another node has or takes."""
        state = self.cluster.snapshot.topology_state(ready.signature)
        if self._replicas.are_bound_together:
            return False
        profile = self.cluster.profile_of(ready.signature)
        if active_filters(profile, ready.signature, state).reads_other_nodes:
            return False
        return all(each.spec.node_name for each in self.cluster.slices.values())

    def _place(self, outcome: Placed, replicas_max: int, progress: Progress) -> None:
        assert self._next is not None, "the replica was asked for"
        own = {claim_key(claim) for claim in self._next.claims}
        self.placed.append(self._for_good(reserve(self.cluster, outcome, self._fresh), own))
        self._next = None
        progress(len(self.placed), replicas_max)

    def _for_good(self, reservation: Reservation, own: Collection[ClaimKey]) -> Reservation:
        """Return the reservation without the replica's own claims as they were: they go with it.

        Thousands of replicas would have each claim twice.
        """
        before = zip(reservation.claims, reservation.before, strict=True)
        kept = tuple(None if claim_key(claim) in own else old for claim, old in before)
        for key in own:
            self.cluster.assumed_claims.pop(key, None)
        return replace(reservation, before=kept)

    def empty(self) -> None:
        """Take all replicas out of the cluster, with their claims."""
        for reservation in reversed(self.placed):
            release(self.cluster, reservation)
        for namespace, name in self._made:
            self.cluster.remove_claim(namespace, name)
        self.placed, self._made, self._next = [], [], None

    def _free_name(self, prefix: str) -> str:
        claims = self.cluster.claims
        names = (f"{prefix}{number}" for number in range(10**9))
        return next(name for name in names if (self._namespace, name) not in claims)
