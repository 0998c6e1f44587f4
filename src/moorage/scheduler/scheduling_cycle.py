"""The scheduling cycle: one pod, one decision.

    gated? ─ PreFilter ─ claims found ─ Filter ─ Score ─► Placed
                                          └ PostFilter ─► Pending

It decides and changes nothing; `reserve` applies the decision.

    # alone: not as a member of a pod group; only then PostFilter is run
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping

from msgspec import Struct

from moorage.api.core.pod import Pod
from moorage.claims.pod_claims import ClaimUse, NotCreated, group_name, reference_of
from moorage.scheduler.cluster import Cluster
from moorage.scheduler.diagnosis import (
    CLAIM_DEALLOCATED,
    CLAIM_DELETED,
    NO_PREEMPTION,
    ONGOING_PREEMPTION,
    FitDiagnosis,
    fit_message,
    preemption_message,
    within,
)
from moorage.scheduler.errors import CycleError
from moorage.scheduler.framework import (
    DEFAULT_PREEMPTION,
    DYNAMIC_RESOURCES,
    GANG_SCHEDULING,
    POST_FILTER,
    PRE_FILTER,
    SCHEDULING_GATES,
    PluginError,
    PluginStatus,
    Unschedulable,
    run_timed,
)
from moorage.scheduler.node_ranking import NodeRanking
from moorage.scheduler.plugins.claim_needs import ClaimNeeds, Waiting, claim_needs, find_uses
from moorage.scheduler.plugins.dynamic_resources import (
    ClaimDeallocation,
    ClaimFilter,
    FilterClaims,
    NodeAllocation,
    no_claims,
)
from moorage.scheduler.pod_signature import PodInfo, PodSignature, not_tried, pod_key
from moorage.scheduler.pre_filter import UNMODELLED
from moorage.scheduler.preemption import Preemption, is_under_way, preempt

NEVER_PREEMPTS = "Never"
SILENT = (SCHEDULING_GATES, UNMODELLED)  # Kubernetes does not try such pods and reports nothing.


class Placed(Struct, frozen=True):
    """The pod gets a node, and its claims get devices there."""

    pod: Pod
    node: str
    needs: ClaimNeeds | None
    allocation: NodeAllocation


class Pending(Struct, frozen=True):
    """The pod gets no node as things are."""

    pod: Pod
    diagnosis: FitDiagnosis
    reason: str  # why, in one line
    message: str  # what Kubernetes writes; "" where it writes nothing
    is_fault: bool = False  # the attempt failed; Kubernetes tries again by itself
    preemption: Preemption | None = None  # the pods that Kubernetes would preempt for it
    deallocation: ClaimDeallocation | None = None
    # The statuses of nodes even without all pods of lower priority.
    without_victims: Mapping[str, Unschedulable] = {}
    group_victims: tuple[PodInfo, ...] = ()  # the pods that would be preempted for its group
    nominated: str | None = ""  # the node that pods leave for it; None: the one it has stays


Outcome = Placed | Pending


def schedule(cluster: Cluster, pod: Pod, *, alone: bool = True) -> Outcome:
    """Return where a pod goes, or why nowhere."""
    with cluster.nominated.held(pod.spec.priority or 0, (pod_key(pod),)):
        ready = attempt(cluster, pod)
        return ready if isinstance(ready, Pending) else ready.best(alone=alone)


def attempt(cluster: Cluster, pod: Pod, nodes: Collection[str] | None = None) -> Attempt | Pending:
    """Return a pod whose nodes can be filtered, some or all, or what stops it before that."""
    signature = cluster.signature(pod)
    uses = _uses(cluster, pod, signature)
    if isinstance(uses, Pending):
        return uses
    if signature.pre_filter_status is not None:
        return _stopped(cluster, pod, signature.pre_filter_status)
    times = cluster.work.times
    claims = run_timed(times, DYNAMIC_RESOURCES, PRE_FILTER, _claim_filter, cluster, pod, uses)
    if isinstance(claims, Unschedulable | PluginError):
        return _stopped(cluster, pod, claims)
    if claims is None:
        ranking = cluster.ranking(signature, None, has_alternatives=False)
        return Attempt(cluster, pod, signature, ranking, nodes=nodes)
    ranking = cluster.ranking(
        signature,
        claims.key,
        has_alternatives=claims.needs.has_alternatives,
        needs_free_device=claims.needs_free_device,
    )
    return Attempt(cluster, pod, signature, ranking, claims, nodes)


def _claim_filter(
    cluster: Cluster, pod: Pod, uses: tuple[ClaimUse, ...]
) -> ClaimFilter | PluginStatus | None:
    """Return the filter for the pod's claims; None if it needs no devices."""
    needs = (
        claim_needs(pod, uses, cluster) if cluster.profile_for(pod).claims_are_filtered else None
    )
    return ClaimFilter(needs, cluster, cluster.budget) if isinstance(needs, ClaimNeeds) else needs


def awaits_claims(cluster: Cluster, pod: Pod) -> bool:
    """Return whether `attempt` would find no more than that claims of a pod are not created yet.

    Nearly every pod with a template comes so, and nothing else of it need be looked at then.
    """
    if not cluster.profile_for(pod).claims_are_filtered:
        return False
    for entry in pod.spec.resource_claims:
        if isinstance(reference_of(pod, entry), NotCreated):
            return not_tried(pod, cluster.signatures.settings) is None
    return False


def pre_enqueue(cluster: Cluster, pod: Pod) -> Pending | None:
    """Return why a pod is not tried yet, if so; nothing is reported of it then."""
    found = _uses(cluster, pod, cluster.signature(pod))
    return found if isinstance(found, Pending) else None


def _uses(cluster: Cluster, pod: Pod, signature: PodSignature) -> tuple[ClaimUse, ...] | Pending:
    """Return the claims of a pod that can be tried, or what it must wait for first."""
    status = signature.pre_filter_status
    if status is not None and status.plugin in SILENT:
        return _stopped(cluster, pod, status)
    uses: tuple[ClaimUse, ...] | Waiting = ()
    if cluster.profile_of(signature).claims_are_filtered:
        uses = find_uses(pod, cluster)
    if isinstance(uses, Waiting):
        return _waiting(cluster, pod, Unschedulable(DYNAMIC_RESOURCES, (uses.text,)))
    name = group_name(pod) if cluster.features.pod_groups else None
    if name is not None and (pod.metadata.namespace, name) not in cluster.groups:
        text = f'waiting for pods\'s pod group "{name}" to appear in scheduling queue'
        return _waiting(cluster, pod, Unschedulable(GANG_SCHEDULING, (text,)))
    return uses


def _wants_company(signature: PodSignature) -> bool:
    """Return whether other pods can make a node feasible for pods of a signature."""
    return bool(signature.affinity_terms.affinity or signature.spread_constraints.hard)


class Attempt(Struct, frozen=True):
    """A pod whose nodes can be filtered."""

    cluster: Cluster
    pod: Pod
    signature: PodSignature
    ranking: NodeRanking
    claims: ClaimFilter | None = None  # None if it needs no devices
    nodes: Collection[str] | None = None  # where it may go; None: anywhere

    @property
    def kind(self) -> tuple[PodSignature, Hashable]:
        """What pods share that get the same answer from the same cluster."""
        return self.signature, None if self.claims is None else self.claims.key

    @property
    def filter_claims(self) -> FilterClaims:
        """The filter that a node's devices must pass."""
        return self.claims or no_claims

    def best(self, *, alone: bool) -> Outcome:
        """Return the pod on the best feasible node, or that there is none."""
        try:
            found = self.best_placed()
        except CycleError as error:
            return self._failed(error)
        if found is None:
            return self.rejected(alone=alone)
        if not self._may_follow_nominated:
            return found
        names = [found.node, *(name for name in self.nodes_by_score() if name != found.node)]
        kept = self._without_nominated(names, alone=alone)
        if isinstance(kept, Pending):
            return kept
        return found if kept[0] == found.node else self.on(kept[0]) or self.rejected(alone=alone)

    def choices(self) -> list[str]:
        """Return the nodes that a pod of a group may try, the best first."""
        names = self.nodes_by_score()
        if not names or not self._may_follow_nominated:
            return names
        kept = self._without_nominated(names, alone=False)
        return [] if isinstance(kept, Pending) else kept

    @property
    def _may_follow_nominated(self) -> bool:
        """Whether pods that are only nominated can make a node feasible."""
        return self.cluster.nominated.are_held and _wants_company(self.signature)

    def _without_nominated(self, names: list[str], *, alone: bool) -> list[str] | Pending:
        """Return the nodes that are feasible also without the nominated pods; or why none is."""
        with self.cluster.nominated.set_aside():
            again = attempt(self.cluster, self.pod, self.nodes)
            if isinstance(again, Pending):
                return again
            feasible = set(again.nodes_by_score())
            kept = [name for name in names if name in feasible]
            return kept or again.rejected(alone=alone)

    def best_placed(self) -> Placed | None:
        """Return the pod on the best feasible node, or raise CycleError."""
        if self.nodes is not None:
            names = self.ranking.ordered(self.filter_claims, self.nodes)
            return self.on(names[0]) if names else None
        found = self.ranking.choose(self.filter_claims)
        return None if found is None else self._placed(found[0].facts.name, found[1])

    def anywhere(self, preferred: Iterable[str], *, asked_max: int) -> Placed | None:
        """Return the pod on any feasible node among those asked, or raise CycleError."""
        found = self.ranking.find_any(self.filter_claims, preferred, asked_max=asked_max)
        return None if found is None else self._placed(found[0].facts.name, found[1])

    def nodes_by_score(self) -> list[str]:
        """Return the feasible nodes, the best first."""
        try:
            return self.ranking.ordered(self.filter_claims, self.nodes)
        except CycleError:
            return []

    def on(self, node: str) -> Placed | None:
        """Return the pod on a node, if that has devices for it."""
        allocation = self.filter_claims(self.cluster.snapshot.nodes[node])
        return None if isinstance(allocation, Unschedulable) else self._placed(node, allocation)

    def rejections(self, nodes: Iterable[str]) -> Mapping[str, Unschedulable]:
        """Return why those of some nodes reject the pod that do, or raise CycleError."""
        return self.ranking.rejections(nodes, self.filter_claims)

    def rejected(self, *, alone: bool) -> Pending:
        """Return the diagnosis where no node is feasible."""
        try:
            diagnosis = self.ranking.diagnose(self.filter_claims)
        except CycleError as error:
            return self._failed(error)
        if self.nodes is not None:
            diagnosis = within(diagnosis, self.nodes)
        reason = fit_message(diagnosis)
        if not alone:
            return Pending(self.pod, diagnosis, reason, reason)
        times = self.cluster.work.times
        profile = self.cluster.profile_of(self.signature)
        deallocation = None
        if self.claims is not None and profile.deallocates:
            call = self.claims.post_filter
            deallocation = run_timed(times, DYNAMIC_RESOURCES, POST_FILTER, call, diagnosis)
        preemption: Preemption | None = None
        outcomes: Mapping[str, Unschedulable] = {}
        after: list[str] = []
        if profile.preempts:
            preemption, text, outcomes = run_timed(
                times, DEFAULT_PREEMPTION, POST_FILTER, self._preempt, diagnosis
            )
            after = [text]
        if preemption is None and deallocation is not None:
            after.insert(0, CLAIM_DELETED if deallocation.is_deleted else CLAIM_DEALLOCATED)
        message = fit_message(diagnosis, *after)
        nominated = None if ONGOING_PREEMPTION in after else ""
        return Pending(
            self.pod,
            diagnosis,
            reason,
            message,
            preemption=preemption,
            deallocation=deallocation,
            without_victims=outcomes,
            nominated=nominated if preemption is None else preemption.node,
        )

    def _failed(self, error: CycleError) -> Pending:
        return _stopped(self.cluster, self.pod, PluginError(DYNAMIC_RESOURCES, str(error)))

    def _placed(self, node: str, allocation: NodeAllocation) -> Placed:
        needs = None if self.claims is None else self.claims.needs
        return Placed(self.pod, node, needs, allocation)

    def _preempt(
        self, diagnosis: FitDiagnosis
    ) -> tuple[Preemption | None, str, Mapping[str, Unschedulable]]:
        """Return the pods to preempt, the message about it, and statuses without any victims."""
        if self.pod.spec.preemption_policy == NEVER_PREEMPTS:
            return None, NO_PREEMPTION, {}
        if is_under_way(self.cluster, self.pod, diagnosis):
            return None, ONGOING_PREEMPTION, {}
        priority = self.pod.spec.priority or 0
        found = preempt(self.cluster, self.signature, priority, diagnosis, self.filter_claims)
        if isinstance(found, Preemption):
            text = f"found a potential placement for pod on node {found.node}"
            return found, f"preemption: {text}, preempting {len(found.victims)} victims", {}
        if found.fault is not None:
            return None, f"preemption: {found.fault}", {}
        return None, preemption_message(diagnosis, found.outcomes), found.outcomes


# --- pods that are stopped before nodes are filtered ----------------------------------------------


def _waiting(cluster: Cluster, pod: Pod, status: Unschedulable) -> Pending:
    """Return that the pod is not tried yet."""
    diagnosis = FitDiagnosis(len(cluster.snapshot.nodes), pre_filter_status=status)
    return Pending(pod, diagnosis, reason=", ".join(status.reasons), message="")


def _stopped(cluster: Cluster, pod: Pod, status: PluginStatus) -> Pending:
    """Return that the pod is stopped wherever it might go."""
    diagnosis = FitDiagnosis(len(cluster.snapshot.nodes), pre_filter_status=status)
    if isinstance(status, PluginError):
        return Pending(pod, diagnosis, status.message, fit_message(diagnosis), is_fault=True)
    if status.plugin in SILENT:
        return _waiting(cluster, pod, status)
    never = pod.spec.preemption_policy == NEVER_PREEMPTS
    after = [NO_PREEMPTION if never else preemption_message(diagnosis)]
    if not cluster.profile_for(pod).preempts:
        after = []
    return Pending(pod, diagnosis, ", ".join(status.reasons), fit_message(diagnosis, *after))
