"""The scheduling cycle: one pod, one answer.

    waits? ─ stopped anywhere? ─ claims found ─ nodes filtered ─ weighed ─► Placed | Pending

It decides and changes nothing; `reserve` writes what was decided.
"""

from __future__ import annotations

from msgspec import Struct

from mooring.api.core.pod import Pod
from mooring.scheduler import messages
from mooring.scheduler.claimcheck import ClaimCheck, Grant
from mooring.scheduler.claimneeds import PLUGIN, ClaimNeeds, Waiting, claim_needs, find_uses
from mooring.scheduler.cluster import Cluster
from mooring.scheduler.errors import CycleFault
from mooring.scheduler.filtering import Survey
from mooring.scheduler.obstacles import SCHEDULING_GATES
from mooring.scheduler.ranking import AskClaims, Ranking, ask_nothing
from mooring.scheduler.refusals import Fault, Obstacle, Refusal
from mooring.scheduler.shape import PodShape
from mooring.scheduler.unmodelled import PLUGIN as UNMODELLED

NEVER_PREEMPTS = "Never"


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


Outcome = Placed | Pending


def schedule(cluster: Cluster, pod: Pod) -> Outcome:
    """Return where a pod goes, or why nowhere."""
    this = attempt(cluster, pod)
    if this.pending is not None:
        return this.pending
    try:
        found = this.ranking.choose(this.ask)
    except CycleFault as fault:
        return this.failed(Fault(PLUGIN, str(fault)))
    if found is None:
        return this.refused()
    state, grant = found
    return this.placed(state.facts.name, grant)


def attempt(cluster: Cluster, pod: Pod) -> Attempt:
    """Return a pod that is ready to be put to nodes, or stopped before that."""
    return Attempt(cluster, pod)


class Attempt:
    """All that is found out about a pod before nodes are asked."""

    pending: Pending | None = None
    needs: ClaimNeeds | None = None
    check: ClaimCheck | None = None
    ask: AskClaims = staticmethod(ask_nothing)
    ranking: Ranking
    shape: PodShape

    def __init__(self, cluster: Cluster, pod: Pod) -> None:
        self.cluster = cluster
        self.pod = pod
        self.shape = cluster.shape(pod)
        obstacle = self.shape.obstacle
        if obstacle is not None:
            self.pending = self.failed(obstacle)
            return
        uses = find_uses(pod, cluster)
        if isinstance(uses, Waiting):
            self.pending = self.waiting(uses.text)
            return
        needs = claim_needs(pod, uses, cluster)
        if isinstance(needs, Refusal | Fault):
            self.pending = self.failed(needs)
            return
        self.needs = needs
        plan, held, has_alternatives = None, None, False
        if needs is not None:
            self.check = self.ask = ClaimCheck(needs, cluster)
            plan, held, has_alternatives = self.check.plan, needs.key, needs.has_alternatives
        self.ranking = cluster.ranking(self.shape, plan, held, has_alternatives=has_alternatives)

    def nodes_by_score(self) -> list[str]:
        """Return the nodes that will do, the best first."""
        if self.pending is not None:
            return []
        try:
            return self.ranking.ordered(self.ask)
        except CycleFault:
            return []

    def on(self, node: str) -> Outcome:
        """Return what comes of the pod on a node that will do."""
        grant = self.ask(self.cluster.fleet.nodes[node])
        return self.refused() if isinstance(grant, Refusal) else self.placed(node, grant)

    def placed(self, node: str, grant: Grant) -> Placed:
        """Return the pod on a node that gives this."""
        return Placed(self.pod, node, self.needs, grant)

    def waiting(self, text: str) -> Pending:
        """Return that the pod is not tried yet."""
        survey = Survey(len(self.cluster.fleet.nodes), obstacle=Refusal(PLUGIN, (text,)))
        return Pending(self.pod, survey, reason=text, message="")

    def failed(self, obstacle: Obstacle) -> Pending:
        """Return that the pod is stopped wherever it might go."""
        survey = Survey(len(self.cluster.fleet.nodes), obstacle=obstacle)
        is_fault = isinstance(obstacle, Fault)
        reason = obstacle.text if isinstance(obstacle, Fault) else ", ".join(obstacle.texts)
        if obstacle.plugin in (SCHEDULING_GATES, UNMODELLED):
            return Pending(self.pod, survey, reason, message="")
        after = () if is_fault else (self._preemption(survey),)
        return Pending(self.pod, survey, reason, messages.unavailable(survey, *after), is_fault)

    def refused(self) -> Pending:
        """Return what the nodes say, none of which will do."""
        if self.pending is not None:
            return self.pending
        try:
            survey = self.ranking.survey(self.ask)
        except CycleFault as fault:
            return self.failed(Fault(PLUGIN, str(fault)))
        message = messages.unavailable(survey, self._preemption(survey))
        return Pending(self.pod, survey, messages.unavailable(survey), message)

    def _preemption(self, survey: Survey) -> str:
        if self.pod.spec.preemption_policy == NEVER_PREEMPTS:
            return messages.no_preemption()
        return messages.preemption(survey)
