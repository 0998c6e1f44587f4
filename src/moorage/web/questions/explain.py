"""Why a pod waits, as in `moor explain`, and the checks that reject devices, for painting."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from moorage.claims.pod_claims import group_name
from moorage.controllers.pod_control import is_active
from moorage.insight.answer.answer import answers
from moorage.insight.answer.finding import Answer
from moorage.insight.explain.diagnosis import Diagnosis
from moorage.insight.explain.funnel import STAGES, Funnel
from moorage.insight.explain.phrases import member_text, rejection_text
from moorage.insight.explain.pods import DiagnosisTimeLimit, Explanation
from moorage.insight.explain.report import nearest_first
from moorage.insight.explain.verdicts import NodeVerdict
from moorage.insight.messages import full_name
from moorage.insight.plan.decisions import decide
from moorage.insight.plan.planner import Plan, Result
from moorage.insight.plan.refused import with_unscheduled
from moorage.scheduler.reservation import Reservation
from moorage.scheduler.scheduling_cycle import Placed
from moorage.web.errors import NotFoundError, PageError, UnusableError
from moorage.web.fleet import Fleet
from moorage.web.questions.moment import ShownMoment
from moorage.web.questions.paint import painted

NODES_NAMED_MAX: Final = 20
VERDICTS_MAX: Final = 12
PREPARED_MAX: Final = 3  # causes
EACH_S: Final = 3.0
ALL_S: Final = 8.0


def explain_answer(moment: ShownMoment, namespace: str, name: str) -> dict[str, Any]:
    """Return why a pod waits, what would help, and the evidence."""
    with moment.alone() as plan:
        found = moment.explanations.get((namespace, name))
        if found is None:
            _, explanation, answer = answered(moment, plan, namespace, name)
            found = answer_tree(moment, explanation, answer)
            moment.explanations.put((namespace, name), found)
        return found


def answer_tree(moment: ShownMoment, explanation: Explanation, answer: Answer) -> dict[str, Any]:
    """Return an answer as JSON has it, with the devices painted."""
    pending = explanation.pending
    verdicts = nearest_first(explanation.verdicts)
    refusing = [n for v in verdicts if v.texts and not v.is_short for n in v.nodes]
    return {
        "cause": answer.cause,
        "kubernetes": pending.message or "; ".join(explanation.written),
        "fixes": [
            {"number": number, "text": fix.marked, "node": fix.node, "isAdvice": not fix.changes}
            for number, fix in enumerate(answer.fixes, 1)
        ],
        "nodes": list(map(_verdict, verdicts[:VERDICTS_MAX])),
        "facts": list(explanation.facts),
        "requests": list(_requests(verdicts)),
        "conflict": list(_conflict(verdicts)),
        "paint": painted(moment, pending.pod, refusing),
    }


def prepare(moment: ShownMoment) -> None:
    """Find out what questions about a moment share, and why the first pods of the list wait.

    So the first question is not the slowest. Once somebody asks, their question does what is left.
    """
    with moment.alone():
        pass
    if _is_asked(moment):
        return
    names = list(_listed_first(moment.fleet))
    if not names:
        len(moment.published_rows)
    for name in names:
        with suppress(PageError):
            explain_answer(moment, *name)
        if _is_asked(moment):
            return


def _is_asked(moment: ShownMoment) -> bool:
    """Return whether somebody waits for an answer."""
    return moment.askers > 0


def _listed_first(fleet: Fleet) -> Iterator[tuple[str, str]]:
    """Yield namespace and name of the first pods of the first causes."""
    pods, strings = fleet.tables["pods"], fleet.strings
    for group in fleet.groups[:PREPARED_MAX]:
        yield strings[pods["namespace"][group.first]], strings[pods["name"][group.first]]


def answered(moment: ShownMoment, plan: Plan, namespace: str, name: str) -> Answered:
    """Return the explanation and the answer for a pending pod, or raise PageError.

    If a plan of all pending pods exists, it decides; otherwise the pod is tried alone on the
    current cluster.
    """
    result: Placed | Result | None = _result(plan.results, namespace, name)
    if result is None and moment.plan is None:
        plan, result = _tried(moment, plan, namespace, name)
    if result is None:
        raise _absent(moment, namespace, name)
    if isinstance(result, Reservation | Placed):
        raise UnusableError(f"The pod is not held up: it would get node {result.node} now.")
    if not plan.results:
        plan = replace(plan, results=(result,))
    limit = DiagnosisTimeLimit(time.monotonic, each_s=EACH_S, all_s=ALL_S)
    found = answers(plan, [result], moment.context, effort=limit.effort)
    _, explanation, answer = next(iter(found))
    return Answered(plan, explanation, answer)


class Answered(NamedTuple):
    """The answer for a pending pod, and the plan that led to it."""

    plan: Plan
    explanation: Explanation
    answer: Answer


def _result(results: Iterable[Result], namespace: str, name: str) -> Result | None:
    for result in results:
        metadata = result.pod.metadata
        if (metadata.namespace, metadata.name) == (namespace, name):
            return result
    return None


def _tried(
    moment: ShownMoment, alone: Plan, namespace: str, name: str
) -> tuple[Plan, Placed | Result | None]:
    """Return the result of scheduling one pod on the current cluster.

    Pods of a group are placed together, and quotas count all pods: these need the plan of all.
    """
    for pod in alone.before.pods:
        if (pod.metadata.namespace, pod.metadata.name) != (namespace, name):
            continue
        if group_name(pod) is not None or full_name(pod) in alone.over_quota:
            break
        is_waiting = not pod.spec.node_name and is_active(pod)
        return alone, decide(alone.cluster, pod) if is_waiting else None
    plan = with_unscheduled(moment.before[1])
    return plan, _result(plan.results, namespace, name)


def _absent(moment: ShownMoment, namespace: str, name: str) -> PageError:
    for pod in moment.snapshot.pods:
        if (pod.metadata.namespace, pod.metadata.name) == (namespace, name):
            where = f" on node {pod.spec.node_name}" if pod.spec.node_name else " finished"
            return UnusableError(f"The pod does not wait for a node: it is{where}.")
    return NotFoundError(f"There is no pod {namespace[:100]}/{name[:100]}.")


def _verdict(verdict: NodeVerdict) -> dict[str, Any]:
    return {
        "names": verdict.nodes[:NODES_NAMED_MAX],
        "count": len(verdict.nodes),
        "texts": [*verdict.texts, *verdict.facts],
    }


def _diagnosis(verdicts: list[NodeVerdict]) -> Diagnosis | None:
    return next((each.diagnosis for each in verdicts if each.diagnosis is not None), None)


def _requests(verdicts: list[NodeVerdict]) -> Iterator[dict[str, Any]]:
    """Yield the funnels of the nearest node with a diagnosis."""
    diagnosis = _diagnosis(verdicts)
    for funnel in () if diagnosis is None else diagnosis.funnels:
        assert diagnosis is not None
        counts = zip(("in the fleet", *STAGES), (funnel.in_fleet, *funnel.counts), strict=True)
        near = funnel.nearest
        yield {
            "name": f"{funnel.claim}: {funnel.request}",
            "wants": _wanted(funnel),
            "node": diagnosis.situation.node.metadata.name,
            "funnel": [{"label": label, "count": count} for label, count in counts],
            "nearest": "" if near is None else f"{near.device}: {rejection_text(near.refusal)}",
        }


def _wanted(funnel: Funnel) -> str:
    if funnel.wanted is None:
        return "all that are selected"
    return f"{funnel.wanted} {'device' if funnel.wanted == 1 else 'devices'}"


def _conflict(verdicts: list[NodeVerdict]) -> Iterator[str]:
    diagnosis = _diagnosis(verdicts)
    if diagnosis is not None:
        for member in diagnosis.conflict.members:
            yield member_text(member, diagnosis.situation, diagnosis.obstacles)
