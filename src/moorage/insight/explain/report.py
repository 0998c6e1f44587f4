"""Explanations and diagnoses as lines of text.

`phrases` describes a single change, member of a conflict, or rejection.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from msgspec.structs import replace

from moorage.insight.explain.diagnosis import Diagnosis
from moorage.insight.explain.funnel import STAGES, Funnel, values_text
from moorage.insight.explain.phrases import member_texts, rejection_text
from moorage.insight.explain.pods import Explanation
from moorage.insight.explain.situation import DropConstraint, FreeClaim
from moorage.insight.explain.verdicts import Distance, NodeVerdict
from moorage.insight.messages import (
    counted,
    full_name,
    listed,
    most_frequent_first,
    natural_order,
)
from moorage.insight.plan.placements import placement_of
from moorage.insight.plan.planner import Result
from moorage.insight.snapshot.stand_ins import stands_for
from moorage.scheduler.reservation import Reservation

CLAIMS_SHOWN_MAX = 8
VERDICTS_SHOWN_MAX = 3  # in detail, the nearest; the rest is counted


def name_of(result: Result) -> str:
    """Return the name of a pod, or of the claim or template that it represents."""
    instead = stands_for(result.pod)
    return f"pod {full_name(result.pod)}" if instead is None else f"{instead} (no pod uses it)"


def placed_line(result: Reservation) -> str:
    """Return one line about a pod that gets a node."""
    placement = placement_of(result)
    devices = sum(len(granted.devices) for granted in placement.requests)
    with_devices = f" with {counted(devices, 'device')}" if devices else ""
    gets = "gets" if stands_for(result.pod) is None else "would get"
    return f"{name_of(result)} {gets} node {result.node}{with_devices}"


def evidence_lines(explanation: Explanation, *, is_full: bool = False) -> Iterator[str]:
    """Yield the lines behind the cause: what each node says, and Kubernetes' message.

    The nearest nodes are shown in detail and the rest is counted, unless the lines are to be full.
    """
    pending = explanation.pending
    yield from _reason_lines(explanation, is_full=is_full)
    if pending.preemption is not None:
        victims = listed([victim.full_name for victim in pending.preemption.victims])
        yield f"  it would evict pods of lower priority on {pending.preemption.node}: {victims}"
    if pending.group_victims:
        victims = listed([victim.full_name for victim in pending.group_victims])
        yield f"  its group would evict pods of lower priority: {victims}"
    if pending.message:
        yield f"  Kubernetes: {pending.message}"
    yield from (f"  Kubernetes writes {each}" for each in explanation.written)


def _reason_lines(explanation: Explanation, *, is_full: bool) -> Iterator[str]:
    """Yield the lines besides Kubernetes' message."""
    pending = explanation.pending
    stopped_by = explanation.stopped_by
    if not any(stopped_by in said for said in (pending.message, *explanation.written)):
        yield f"  {stopped_by}"
    yield from (f"  {fact}" for fact in explanation.facts)
    verdicts = nearest_first(explanation.verdicts)
    shown_max = len(verdicts) if is_full else VERDICTS_SHOWN_MAX
    for verdict in verdicts[:shown_max]:
        yield from (f"  {line}".rstrip() for line in _verdict(verdict))
    if verdicts[shown_max:]:
        yield ""
        yield f"  {_farther(verdicts[shown_max:])} (--verbose shows each)"
    if explanation.undiagnosed:
        kinds = counted(explanation.undiagnosed, "more kind")
        yield f"  {kinds} of nodes, whose devices were not looked into"
    if explanation.companion is not None:
        yield ""
        name = name_of(explanation.companion.pending)
        yield f"  once the pods of its group before it have nodes, {name} gets none:"
        lines = _reason_lines(explanation.companion, is_full=is_full)
        yield from (f"    {line}".rstrip() for line in lines)


def nearest_first(verdicts: Iterable[NodeVerdict]) -> list[NodeVerdict]:
    """Return verdicts, those of the nodes first that are closest to taking the pod."""
    return sorted(verdicts, key=distance)


def _farther(verdicts: Sequence[NodeVerdict]) -> str:
    """Return what the nodes say that are not shown: `1,994 more nodes: 1,990 Insufficient cpu`."""
    said = Counter[str]()
    for verdict in verdicts:
        said[", ".join(verdict.texts) or "would do"] += len(verdict.nodes)
    counts = (f"{count:,} {text}" for text, count in most_frequent_first(said))
    return f"{counted(said.total(), 'more node')}: {', '.join(counts)}"


def _verdict(verdict: NodeVerdict) -> Iterator[str]:
    yield ""
    nodes = listed(sorted(verdict.nodes, key=natural_order))
    title = f"{'node' if len(verdict.nodes) == 1 else 'nodes'} {nodes}"
    yield f"{title}: {', '.join(verdict.texts) or 'would do'}"
    yield from (f"  {fact}" for fact in verdict.facts)
    if verdict.diagnosis is not None:
        if verdict.is_behind:
            yield "  and behind that its claims cannot be allocated there either:"
        indent = "    " if verdict.is_behind else "  "
        if len(verdict.nodes) > 1:
            # Devices and holders may differ from node to node.
            yield f"{indent}on {verdict.diagnosis.situation.node.metadata.name}, as an example:"
        lines = diagnosis_lines(verdict.diagnosis)
        yield from (f"{indent}{line}" for line in lines)


def distance(verdict: NodeVerdict) -> Distance:
    """Return how far nodes are from taking a pod."""
    return verdict.distance


# --- diagnoses --------------------------------------------------------------------------


def diagnosis_lines(diagnosis: Diagnosis) -> Iterator[str]:
    """Yield the lines of a diagnosis, without the node's name."""
    if diagnosis.message:
        yield diagnosis.message
    for pool in diagnosis.pools:
        reason = f": {pool.reason}" if pool.reason else ""
        yield f"pool {pool.pool} is {pool.state}{reason}; none of its devices is given away"
    for alike in _alike(diagnosis.funnels):
        yield from _funnel(alike, diagnosis)
    yield from _conflict(diagnosis)
    yield from _limits(diagnosis)


def _alike(funnels: Iterable[Funnel]) -> Iterable[list[Funnel]]:
    """Group funnels that differ only in the name of the request."""
    found: dict[Funnel, list[Funnel]] = {}
    for funnel in funnels:
        found.setdefault(replace(funnel, request=""), []).append(funnel)
    return found.values()


def _funnel(alike: list[Funnel], diagnosis: Diagnosis) -> Iterator[str]:
    funnel, *others = alike
    of = f" of claim {funnel.claim}" if len(diagnosis.situation.claims) > 1 else ""
    names = ", ".join(each.request for each in alike)
    noun, each = ("requests", " each") if others else ("request", "")
    yield f"{noun} {names}{of}: {_wanted(funnel)} wanted{each}"
    steps = [f"{funnel.in_fleet:,} in the fleet"]
    before = funnel.in_fleet
    for stage, count in zip(STAGES, funnel.counts, strict=True):
        # A question that excludes no device is not worth showing, except the first.
        if count != before or stage == STAGES[0]:
            steps.append(f"{count:,} {stage}")
        before = count
    yield f"  devices: {' → '.join(steps)}"
    if funnel.nearest is not None:
        refusal = rejection_text(funnel.nearest.refusal)
        yield f"  nearest: {funnel.nearest.device} {refusal}"


def _wanted(funnel: Funnel) -> str:
    return "all" if funnel.wanted is None else f"{funnel.wanted:,}"


def _conflict(diagnosis: Diagnosis) -> Iterator[str]:
    members = diagnosis.conflict.members
    if not members:
        return
    if len(members) == 1:
        yield "impossible by itself:"
    else:
        known = "" if diagnosis.conflict.is_minimal else " (not all may be needed)"
        yield f"impossible together{known}:"
    for text in _member_lines(diagnosis):
        yield f"  {text}"
    if diagnosis.obstacles.holders_left_out:
        more = counted(diagnosis.obstacles.holders_left_out, "more claim")
        yield f"  {more} with devices of these pools, which were not looked at one by one"


def _member_lines(diagnosis: Diagnosis) -> list[str]:
    situation, obstacles = diagnosis.situation, diagnosis.obstacles
    found: list[str] = []
    for kind, members in groupby(diagnosis.conflict.members, type):
        texts = member_texts(alike := list(members), situation, obstacles)
        if kind is DropConstraint:
            shown = [values_text(diagnosis.values, constraint) for constraint in alike]
            texts = [f"{text} ({values})" for text, values in zip(texts, shown, strict=True)]
        elif kind is FreeClaim and len(texts) > CLAIMS_SHOWN_MAX:
            more = len(texts) - CLAIMS_SHOWN_MAX
            texts = [*texts[:CLAIMS_SHOWN_MAX], f"{counted(more, 'more claim')} with such devices"]
        found += texts
    return found


def _limits(diagnosis: Diagnosis) -> Iterator[str]:
    """Yield what limited the diagnosis."""
    if diagnosis.ended_by:
        yield f"the diagnosis was ended: {diagnosis.ended_by}; there may be more fixes"
    elif diagnosis.trials_given_up:
        given_up = counted(diagnosis.trials_given_up, "trial")
        yield f"{given_up} took too long; there may be more fixes"
