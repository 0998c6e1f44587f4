"""The scheduling cycle: one pod, one answer.

    waits? ─ stopped anywhere? ─ claims found ─ nodes filtered ─ weighed ─► Placed | Pending

It decides and changes nothing; `reserve` writes what was decided.

    # alone: not as one of a group; only then it is asked what else could make room for the pod
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from mooring.api.core.pod import Pod
from mooring.claims.owners import group_name
from mooring.claims.uses import Use
from mooring.scheduler import messages
from mooring.scheduler.claimcheck import ClaimCheck, GivenUp, Grant
from mooring.scheduler.claimneeds import PLUGIN, ClaimNeeds, Waiting, claim_needs, find_uses
from mooring.scheduler.cluster import Cluster
from mooring.scheduler.errors import CycleFault
from mooring.scheduler.filtering import Survey
from mooring.scheduler.obstacles import GANG_SCHEDULING, SCHEDULING_GATES
from mooring.scheduler.plugin_times import (
    DEFAULT_PREEMPTION,
    POST_FILTER,
    PRE_FILTER,
    run_timed,
)
from mooring.scheduler.preemption import Preemption, preempt
from mooring.scheduler.ranking import AskClaims, Ranking, ask_nothing
from mooring.scheduler.refusals import Fault, Obstacle, Refusal
from mooring.scheduler.shape import PodShape
from mooring.scheduler.unmodelled import PLUGIN as UNMODELLED

NEVER_PREEMPTS = "Never"
SILENT = (SCHEDULING_GATES, UNMODELLED)  # Kubernetes does not try such pods, and says nothing.


class Placed(Struct, frozen=True):
    """The pod gets a node, and its claims devices there."""

    pod: Pod
    node: str
    needs: ClaimNeeds | None
    grant: Grant


class Pending(Struct, frozen=True):
    """The pod gets no node as things are."""

    pod: Pod
    survey: Survey
    reason: str  # why, in one line
    message: str  # what Kubernetes writes; "" where it writes nothing
    is_fault: bool = False  # the attempt failed; Kubernetes tries again by itself
    preemption: Preemption | None = None  # the pods that Kubernetes would remove for it
    given_up: GivenUp | None = None  # the claim that Kubernetes would deallocate or delete for it
    # What nodes say even with all pods of lower priority thought away.
    refused_alone: Mapping[str, Refusal] = {}


Outcome = Placed | Pending


def schedule(cluster: Cluster, pod: Pod, *, alone: bool = True) -> Outcome:
    """Return where a pod goes, or why nowhere."""
    ready = attempt(cluster, pod)
    return ready if isinstance(ready, Pending) else ready.best(alone=alone)


def attempt(cluster: Cluster, pod: Pod) -> Attempt | Pending:
    """Return a pod that is ready to be put to nodes, or what stops it before that."""
    shape = cluster.shape(pod)
    uses = _uses(cluster, pod, shape)
    if isinstance(uses, Pending):
        return uses
    if shape.obstacle is not None:
        return _stopped(cluster, pod, shape.obstacle)
    check = run_timed(cluster.work.times, PLUGIN, PRE_FILTER, _claim_check, cluster, pod, uses)
    if isinstance(check, Refusal | Fault):
        return _stopped(cluster, pod, check)
    if check is None:
        ranking = cluster.ranking(shape, None, has_alternatives=False)
        return Attempt(cluster, pod, shape, ranking)
    ranking = cluster.ranking(
        shape,
        check.key,
        has_alternatives=check.needs.has_alternatives,
        needs_free_device=check.needs_free_device,
    )
    return Attempt(cluster, pod, shape, ranking, check)


def _claim_check(cluster: Cluster, pod: Pod, uses: tuple[Use, ...]) -> ClaimCheck | Obstacle | None:
    """Return what asks nodes for the pod's devices; None if it needs none."""
    needs = claim_needs(pod, uses, cluster)
    return ClaimCheck(needs, cluster, cluster.budget) if isinstance(needs, ClaimNeeds) else needs


def gate(cluster: Cluster, pod: Pod) -> Pending | None:
    """Return why a pod is not tried at all, if so; nothing is said of it then."""
    found = _uses(cluster, pod, cluster.shape(pod))
    return found if isinstance(found, Pending) else None


def _uses(cluster: Cluster, pod: Pod, shape: PodShape) -> tuple[Use, ...] | Pending:
    """Return the claims of a pod that may be tried, or what it waits for before that."""
    obstacle = shape.obstacle
    if obstacle is not None and obstacle.plugin in SILENT:
        return _stopped(cluster, pod, obstacle)
    uses = find_uses(pod, cluster)
    if isinstance(uses, Waiting):
        return _waiting(cluster, pod, Refusal(PLUGIN, (uses.text,)))
    if (name := _missing_group(cluster, pod)) is not None:
        text = f'waiting for pods\'s pod group "{name}" to appear in scheduling queue'
        return _waiting(cluster, pod, Refusal(GANG_SCHEDULING, (text,)))
    return uses


class Attempt(Struct, frozen=True):
    """A pod that is ready to be put to nodes."""

    cluster: Cluster
    pod: Pod
    shape: PodShape
    ranking: Ranking
    check: ClaimCheck | None = None  # None if it needs no devices

    @property
    def ask(self) -> AskClaims:
        """What asks a node for the devices."""
        return self.check or ask_nothing

    def best(self, *, alone: bool) -> Outcome:
        """Return the pod on the best node that will do, or that there is none."""
        try:
            found = self.ranking.choose(self.ask)
        except CycleFault as fault:
            return _stopped(self.cluster, self.pod, Fault(PLUGIN, str(fault)))
        if found is None:
            return self.refused(alone=alone)
        state, grant = found
        return self._placed(state.facts.name, grant)

    def nodes_by_score(self) -> list[str]:
        """Return the nodes that will do, the best first."""
        try:
            return self.ranking.ordered(self.ask)
        except CycleFault:
            return []

    def on(self, node: str) -> Placed | None:
        """Return the pod on a node, if that has devices for it."""
        grant = self.ask(self.cluster.fleet.nodes[node])
        return None if isinstance(grant, Refusal) else self._placed(node, grant)

    def refused(self, *, alone: bool) -> Pending:
        """Return what the nodes say, none of which will do."""
        try:
            survey = self.ranking.survey(self.ask)
        except CycleFault as fault:
            return _stopped(self.cluster, self.pod, Fault(PLUGIN, str(fault)))
        said = messages.unavailable(survey)
        if not alone:
            return Pending(self.pod, survey, said, said)
        times = self.cluster.work.times
        given_up = None
        if self.check is not None:
            given_up = run_timed(times, PLUGIN, POST_FILTER, self.check.given_up, survey)
        preemption, text, outcomes = run_timed(
            times, DEFAULT_PREEMPTION, POST_FILTER, self._preempted, survey
        )
        after = (text,) if preemption is not None else (*_of_claim(given_up), text)
        message = messages.unavailable(survey, *after)
        return Pending(self.pod, survey, said, message, False, preemption, given_up, outcomes)

    def _placed(self, node: str, grant: Grant) -> Placed:
        return Placed(self.pod, node, None if self.check is None else self.check.needs, grant)

    def _preempted(self, survey: Survey) -> tuple[Preemption | None, str, Mapping[str, Refusal]]:
        """Return which pods could make room, what is said of that, and what nodes would say."""
        if self.pod.spec.preemption_policy == NEVER_PREEMPTS:
            return None, messages.no_preemption(), {}
        priority = self.pod.spec.priority or 0
        found = preempt(self.cluster, self.shape, priority, survey, self.ask)
        if isinstance(found, Preemption):
            return found, messages.preempting(found.node, len(found.victims)), {}
        if found.fault is not None:
            return None, messages.preemption_fault(found.fault), {}
        return None, messages.preemption(survey, found.outcomes), found.outcomes


# --- pods that are stopped before nodes are asked -------------------------------------------------


def _missing_group(cluster: Cluster, pod: Pod) -> str | None:
    """Return the group of the pod if that is not there."""
    name = group_name(pod) if cluster.features.pod_groups else None
    is_there = name is None or (pod.metadata.namespace, name) in cluster.groups
    return None if is_there else name


def _waiting(cluster: Cluster, pod: Pod, obstacle: Refusal) -> Pending:
    """Return that the pod is not tried yet."""
    survey = Survey(len(cluster.fleet.nodes), obstacle=obstacle)
    return Pending(pod, survey, reason=", ".join(obstacle.texts), message="")


def _stopped(cluster: Cluster, pod: Pod, obstacle: Obstacle) -> Pending:
    """Return that the pod is stopped wherever it might go."""
    survey = Survey(len(cluster.fleet.nodes), obstacle=obstacle)
    if isinstance(obstacle, Fault):
        return Pending(pod, survey, obstacle.text, messages.unavailable(survey), is_fault=True)
    reason = ", ".join(obstacle.texts)
    if obstacle.plugin in SILENT:
        return Pending(pod, survey, reason, message="")
    never = pod.spec.preemption_policy == NEVER_PREEMPTS
    after = messages.no_preemption() if never else messages.preemption(survey)
    return Pending(pod, survey, reason, messages.unavailable(survey, after))


def _of_claim(given_up: GivenUp | None) -> tuple[str, ...]:
    """Return what is said of a claim that is given up."""
    if given_up is None:
        return ()
    return (messages.CLAIM_DELETED if given_up.is_deleted else messages.CLAIM_DEALLOCATED,)
