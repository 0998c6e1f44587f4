"""Why a pod gets no node: node by node, down to the device.

    plan ─ pending pod ─┬─ stopped before nodes are asked: facts about that
                        └─ verdicts: nodes that say the same, together
                              └─ diagnosis of the claims, on one of them

Nodes that refuse a pod for the same reason, and whose devices leave requests equally short, are
told once. A node that refuses for another reason than claims is asked for its devices all the same:
one shortage must not hide the other.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

from msgspec import Struct

from mooring.allocator import Failed, Unsatisfied, allocate
from mooring.allocator.allocation import Budget
from mooring.api.core.pod import Pod
from mooring.claims.owners import group_name
from mooring.insight.explain.diagnosis import Diagnosis, diagnose_claims
from mooring.insight.explain.nodes import facts_of
from mooring.insight.explain.pod_fixes import PodFix, pod_fixes
from mooring.insight.explain.stoppages import group_facts, stoppage_facts, written_of
from mooring.insight.explain.trials import EFFORT, Effort
from mooring.insight.plan.planner import Plan, Progress, new_names
from mooring.scheduler.claimcheck import Grant
from mooring.scheduler.claimneeds import PLUGIN as CLAIMS
from mooring.scheduler.cycle import Attempt, Pending, attempt, schedule
from mooring.scheduler.errors import CycleFault
from mooring.scheduler.filtering import Survey
from mooring.scheduler.nodestate import NodeState
from mooring.scheduler.refusals import Refusal
from mooring.scheduler.reserving import Reservation, release, reserve

ENDS = "the attempt ends here, whatever other nodes have"
DIAGNOSES_MAX = 12  # kinds of nodes whose devices are looked into

Shortage = tuple[int, ...]  # how many devices each request finds; () if the devices are there
Kind = tuple[tuple[str, ...], Shortage]


class Verdict(Struct, frozen=True):
    """What some nodes say alike."""

    nodes: tuple[str, ...]
    texts: tuple[str, ...]  # Kubernetes' reasons; none if the nodes will do
    facts: tuple[str, ...] = ()  # what is behind these, on the first of the nodes
    diagnosis: Diagnosis | None = None  # of the claims, there
    is_behind: bool = False  # the diagnosis is not why the nodes refuse, but comes next


class Explanation(Struct, frozen=True):
    """Everything there is to say of one pod without a node."""

    pending: Pending
    stopped_by: str = ""  # what stops it wherever it might go
    written: tuple[str, ...] = ()  # what Kubernetes writes of it besides its scheduler's message
    facts: tuple[str, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    fixes: tuple[PodFix, ...] = ()  # changes to the pod itself, each tried
    undiagnosed: int = 0  # kinds of nodes that were not looked into
    companion: Explanation | None = None  # a pod of the group that gets none beside the others


def explain(
    plan: Plan,
    pending: Pending,
    *,
    effort: Callable[[], Effort] = lambda: EFFORT,
    progress: Progress = lambda _, __: None,
) -> Explanation:
    """Return why a pod gets no node on the cluster as the plan leaves it.

    `effort` is asked before each diagnosis, and once before nodes are told apart.
    """
    cluster, pod = plan.cluster, pending.pod
    ready = attempt(cluster, pod)
    if isinstance(ready, Pending):
        facts = tuple(stoppage_facts(plan.before, ready))
        return Explanation(pending, ready.reason, _written(plan, pending), facts)
    asked = _Asked(ready, effort)
    try:
        survey = ready.ranking.survey(asked)
    except CycleFault as fault:
        return asked.after_fault(pending, str(fault))
    verdicts, undiagnosed = asked.verdicts(survey, progress)
    return Explanation(
        pending,
        written=_written(plan, pending),
        facts=tuple(group_facts(plan.before, cluster, pod, survey)),
        verdicts=verdicts,
        fixes=tuple(pod_fixes(cluster, pod, survey)),
        undiagnosed=undiagnosed,
        companion=_companion(plan, pod, effort) if survey.fitting else None,
    )


def _written(plan: Plan, pending: Pending) -> tuple[str, ...]:
    """Return what Kubernetes writes of a pod, if its scheduler has no message."""
    if pending.message:
        return ()
    return written_of(plan.before, plan.cluster.features.claims, pending)


def _companion(plan: Plan, pod: Pod, effort: Callable[[], Effort]) -> Explanation | None:
    """Return why the next pod of a group gets no node, once those before it have theirs."""
    name = group_name(pod)
    if name is None:
        return None
    cluster, fresh = plan.cluster, new_names(plan.cluster)
    members = [
        each.pod
        for each in plan.pending
        if each.pod.metadata.namespace == pod.metadata.namespace and group_name(each.pod) == name
    ]
    reservations: list[Reservation] = []
    try:
        for member in members:
            outcome = schedule(cluster, member, alone=False)
            if isinstance(outcome, Pending):
                return explain(plan, outcome, effort=effort)
            reservations.append(reserve(cluster, outcome, fresh))
    finally:
        for reservation in reversed(reservations):
            release(cluster, reservation)
    return None


class _Asked:
    """Asks nodes for the devices of one pod, and remembers which it asked last."""

    def __init__(self, ready: Attempt, effort: Callable[[], Effort]) -> None:
        self._ready = ready
        self._cluster = ready.cluster
        self._effort = effort
        self._last = ""

    def __call__(self, state: NodeState) -> Grant | Refusal:
        self._last = state.facts.name
        return self._ready.ask(state)

    def after_fault(self, pending: Pending, fault: str) -> Explanation:
        """Return what is behind a fault, which ends the attempt on whatever node it is met."""
        diagnosis = self._diagnosis(self._last)
        verdict = Verdict((self._last,), (ENDS,), diagnosis=diagnosis)
        return Explanation(pending, fault, verdicts=(verdict,))

    def verdicts(self, survey: Survey, progress: Progress) -> tuple[tuple[Verdict, ...], int]:
        """Return what nodes say, those that say the same together; and kinds not looked into."""
        found: list[Verdict] = []
        left = DIAGNOSES_MAX
        undiagnosed = 0
        for (texts, shortage), nodes in self._kinds(survey, progress).items():
            is_looked_into = bool(shortage) and left > 0
            left -= is_looked_into
            undiagnosed += bool(shortage) and not is_looked_into
            found.append(self._verdict(survey, nodes, texts, is_looked_into=is_looked_into))
        if survey.fitting:
            found.append(Verdict(tuple(state.facts.name for state in survey.fitting), ()))
        unasked = sorted(set(self._cluster.fleet.nodes) - survey.refusals.keys())
        if survey.elsewhere is not None and unasked:
            found.append(Verdict(tuple(unasked), survey.elsewhere.texts))
        return tuple(found), undiagnosed

    def _kinds(self, survey: Survey, progress: Progress) -> dict[Kind, list[str]]:
        """Return nodes by what they say and how short their devices are."""
        kinds: dict[Kind, list[str]] = {}
        budget = Budget(interrupt=self._effort().interrupt)
        for number, (name, refusal) in enumerate(sorted(survey.refusals.items())):
            progress(number, len(survey.refusals))
            kinds.setdefault((refusal.texts, self._shortage(name, budget)), []).append(name)
        return kinds

    def _verdict(
        self, survey: Survey, nodes: list[str], texts: tuple[str, ...], *, is_looked_into: bool
    ) -> Verdict:
        refusal = survey.refusals[nodes[0]]
        return Verdict(
            tuple(nodes),
            texts,
            tuple(facts_of(refusal, self._ready, self._cluster.fleet.nodes[nodes[0]])),
            self._diagnosis(nodes[0]) if is_looked_into else None,
            is_behind=refusal.plugin != CLAIMS,
        )

    def _shortage(self, name: str, budget: Budget) -> Shortage:
        """Return how many devices each request finds on a node that cannot serve them all."""
        check = self._ready.check
        node = self._cluster.node(name)
        claims = check.wanted_on(node) if check is not None else ()
        if not claims:
            return ()
        match allocate(self._cluster.inventory, node, claims, budget=budget):
            case Unsatisfied(problem=problem):
                free = ~problem.taken.whole
                counts = [
                    (slot.candidates.bit_count(), (slot.candidates & free).bit_count())
                    for slot in problem.slots.values()
                ]
                return (0, *(count for pair in counts for count in pair))
            case Failed():
                return (1,)
        return ()

    def _diagnosis(self, name: str) -> Diagnosis | None:
        check = self._ready.check
        node = self._cluster.node(name)
        claims = check.wanted_on(node) if check is not None else ()
        if not claims:
            return None
        return diagnose_claims(
            self._cluster.inventory,
            node,
            claims,
            fleet_devices=self._fleet_devices,
            effort=self._effort(),
        )

    @cached_property
    def _fleet_devices(self) -> int:
        """How many devices there are: the same for every node."""
        return self._cluster.inventory.devices_count
