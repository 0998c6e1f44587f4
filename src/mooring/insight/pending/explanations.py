"""An explanation as lines of text and as a tree for JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mooring.insight.concerns import full_name, listed
from mooring.insight.diagnosis import lines as diagnosis_lines
from mooring.insight.diagnosis import tree as diagnosis_tree
from mooring.insight.pending.explain import Explanation, Verdict
from mooring.insight.planning.placements import placement_of
from mooring.insight.planning.plan import Result
from mooring.insight.planning.standins import stands_for
from mooring.insight.wording import counted
from mooring.scheduler.reserving import Reservation


def name_of(result: Result) -> str:
    """Return the pod of a result, or the claim or template that it stands for."""
    return stands_for(result.pod) or f"pod {full_name(result.pod)}"


def placed_line(result: Reservation) -> str:
    """Return what a pod gets that needs no explanation."""
    placement = placement_of(result)
    devices = sum(len(granted.devices) for granted in placement.requests)
    with_devices = f" with {counted(devices, 'device')}" if devices else ""
    return f"{name_of(result)} gets node {result.node}{with_devices}"


def lines(explanation: Explanation) -> Iterator[str]:
    """Give the lines that tell why a pod gets no node."""
    pending = explanation.pending
    yield from _told(explanation)
    if pending.preemption is not None:
        victims = listed([victim.full_name for victim in pending.preemption.victims])
        yield f"  it would evict pods of lower priority on {pending.preemption.node}: {victims}"
    if pending.message:
        yield f"  Kubernetes: {pending.message}"
    yield from (f"  Kubernetes writes {each}" for each in explanation.written)


def _told(explanation: Explanation) -> Iterator[str]:
    """Give what is said besides Kubernetes' message."""
    pending = explanation.pending
    yield f"{name_of(pending)} gets no node"
    if explanation.stopped_by and explanation.stopped_by != pending.message:
        yield f"  {explanation.stopped_by}"
    yield from (f"  {fact}" for fact in explanation.facts)
    for verdict in explanation.verdicts:
        yield from (f"  {line}".rstrip() for line in _verdict(verdict))
    if explanation.undiagnosed:
        kinds = counted(explanation.undiagnosed, "more kind")
        yield f"  {kinds} of nodes, whose devices were not looked into"
    if explanation.companion is not None:
        yield ""
        yield "  once the pods of its group before it have nodes:"
        yield from (f"    {line}".rstrip() for line in _told(explanation.companion))
    if explanation.fixes:
        yield "  any of these changes to the pod would give it a node, each was tried:"
        for fix in explanation.fixes:
            yield f"    {fix.text} → {fix.node}"


def _verdict(verdict: Verdict) -> Iterator[str]:
    yield ""
    nodes = listed(verdict.nodes)
    title = f"{'node' if len(verdict.nodes) == 1 else 'nodes'} {nodes}"
    yield f"{title}: {', '.join(verdict.texts) or 'would do'}"
    yield from (f"  {fact}" for fact in verdict.facts)
    if verdict.diagnosis is not None:
        if verdict.is_behind:
            yield "  and behind that its claims cannot be allocated there either:"
        indent = "    " if verdict.is_behind else "  "
        if len(verdict.nodes) > 1:
            # Whose devices they are and who has them may differ from node to node.
            yield f"{indent}on {verdict.diagnosis.situation.node.metadata.name}, as an example:"
        yield from (f"{indent}{line}" for line in diagnosis_lines(verdict.diagnosis))


def tree(explanation: Explanation) -> dict[str, Any]:
    """Return an explanation as JSON holds it."""
    pending = explanation.pending
    return {
        "pod": full_name(pending.pod),
        "standsFor": stands_for(pending.pod),
        "stoppedBy": explanation.stopped_by,
        "facts": list(explanation.facts),
        "verdicts": [
            {
                "nodes": list(verdict.nodes),
                "reasons": list(verdict.texts),
                "facts": list(verdict.facts),
                "diagnosis": verdict.diagnosis and diagnosis_tree(verdict.diagnosis),
                "isBehind": verdict.is_behind,
            }
            for verdict in explanation.verdicts
        ],
        "companion": explanation.companion and tree(explanation.companion),
        "podFixes": [{"text": fix.text, "node": fix.node} for fix in explanation.fixes],
        "message": pending.message,
        "written": list(explanation.written),
    }
