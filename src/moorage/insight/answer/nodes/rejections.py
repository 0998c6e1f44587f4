"""Why nodes reject a pod for a reason other than devices: the cause, and what to do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from moorage.api.tolerations import tolerates
from moorage.insight.answer.cause_kinds import CauseKind, of_kind
from moorage.insight.answer.changes.edits import APPEND, Edit
from moorage.insight.answer.changes.sources import POD_COUNTS, Source
from moorage.insight.answer.finding import Case, Finding, FixRank, Proposal
from moorage.insight.answer.holders import waits_for_users
from moorage.insight.answer.nodes.amounts import amount_findings
from moorage.insight.answer.nodes.labels import HOSTNAME, label_findings
from moorage.insight.answer.nodes.neighbours import neighbour_findings
from moorage.insight.answer.preconditions.volumes import volumes_on_nodes
from moorage.insight.explain.verdicts import NODE_TROUBLES, NodeVerdict
from moorage.insight.messages import listed, nearest, taint_text
from moorage.scheduler import volume_binding
from moorage.scheduler.framework import Unschedulable
from moorage.scheduler.plugins import node_affinity, node_filters, node_resources, taint_toleration
from moorage.scheduler.plugins.dynamic_resources import NOT_AVAILABLE


def node_findings(case: Case, verdict: NodeVerdict) -> Iterator[Finding]:
    """Find why a node rejects the pod for another reason than its devices."""
    name = verdict.nodes[0]
    status = case.explanation.pending.diagnosis.node_to_status.get(name)
    yield from of_kind(CauseKind.CLAIM_ELSEWHERE, claims_elsewhere(case))
    if status is not None:
        kind = _KINDS.get(status.plugin, CauseKind.OTHER_PODS)
        yield from of_kind(kind, _of_status(case, verdict, status))


_KINDS: Final[Mapping[str, CauseKind]] = {
    node_resources.PLUGIN: CauseKind.NODE_RESOURCES,
    taint_toleration.PLUGIN: CauseKind.NODE_TAINT,
    node_affinity.PLUGIN: CauseKind.NODE_LABELS,
    node_filters.CORDONED.plugin: CauseKind.NODE_CORDONED,
    volume_binding.PLUGIN: CauseKind.VOLUME,
    volume_binding.RESTRICTIONS: CauseKind.VOLUME,
}


def _of_status(case: Case, verdict: NodeVerdict, status: Unschedulable) -> Iterator[Finding]:
    name = verdict.nodes[0]
    match status.plugin:
        case node_resources.PLUGIN:
            yield from amount_findings(case, name, status.reasons)
        case taint_toleration.PLUGIN:
            yield from _taints(case, name)
        case node_affinity.PLUGIN:
            yield from label_findings(case, verdict.nodes)
        case node_filters.CORDONED.plugin:
            text = f"kubectl uncordon {name}, once its administrator agrees"
            yield Finding(
                f"node {name}, which would do, is cordoned",
                (Proposal(text, FixRank.ADMINISTRATOR),),
            )
        case volume_binding.PLUGIN | volume_binding.RESTRICTIONS:
            yield from volumes_on_nodes(case, verdict.nodes, status)
        case _:
            yield from neighbour_findings(case, name, status)
    if status != NOT_AVAILABLE:
        yield Finding(f"{', '.join(status.reasons)} on {listed(verdict.nodes)}")


# --- claims with devices elsewhere ----------------------------------------------------------


def claims_elsewhere(case: Case) -> Iterator[Finding]:
    """Find allocated claims whose devices are on nodes that the pod cannot use."""
    pinned: dict[str, list[str]] = {}
    for entry in case.pod.spec.resource_claims:
        name = entry.resource_claim_name
        claim = case.cluster.find_claim(case.namespace, name) if name else None
        allocation = None if claim is None else claim.status.allocation
        nodes = [] if allocation is None else _nodes_of(allocation)
        if nodes and name:
            pinned[name] = nodes
    if len(pinned) > 1 and not set.intersection(*map(set, pinned.values())):
        yield _torn(case, pinned)
        return
    for name, nodes in pinned.items():
        yield from _pinned(case, name, nodes)


def _torn(case: Case, pinned: dict[str, list[str]]) -> Finding:
    parts = [f"claim {name} on {listed(nodes, shown_max=1)}" for name, nodes in pinned.items()]
    return Finding(
        f"the claims of the pod are allocated on different nodes: {listed(parts)}",
        (
            Proposal("give the pod claims of its own, from templates", FixRank.GIVE),
            *waits_for_users(case, pinned),
        ),
    )


def _nodes_of(allocation: Any) -> list[str]:
    selector = allocation.node_selector
    found: list[str] = []
    for term in () if selector is None else selector.node_selector_terms or ():
        for each in term.match_fields:
            if each.key == "metadata.name" and each.operator == "In":
                found += each.values
    return found


def _pinned(case: Case, claim: str, nodes: Sequence[str]) -> Iterator[Finding]:
    status = case.explanation.pending.diagnosis.node_to_status
    here = [node for node in nodes if node in case.cluster.snapshot.nodes]
    if not here:
        text = f"delete the pods that use claim {claim}, so that it is allocated anew"
        yield Finding(
            f"claim {claim} is allocated on node {listed(list(nodes))}, which is gone",
            (Proposal(text, FixRank.FREE),),
        )
        return
    rejection = status.get(here[0])
    selector = case.pod.spec.node_selector.get(HOSTNAME)
    if selector is not None and selector not in here:
        yield Finding(
            f"claim {claim} is allocated on {listed(here)}, but the node selector wants {selector}",
            tuple(_pinned_fixes(case, claim, here, selector)),
        )
        return
    behind = None if rejection is None else _first(case, here, rejection)
    if behind is not None:
        yield Finding(
            f"claim {claim} is allocated on {listed(here, shown_max=1)}: {behind.cause}",
            (*behind.proposals, *_pinned_fixes(case, claim, here, None)),
        )


def _first(case: Case, nodes: Sequence[str], rejection: Unschedulable) -> Finding | None:
    """Return why the node with the devices does not take the pod."""
    if rejection == NOT_AVAILABLE:
        return None
    found: Iterator[Finding] = iter(())
    match rejection.plugin:
        case node_resources.PLUGIN:
            found = amount_findings(case, nodes[0], rejection.reasons)
        case taint_toleration.PLUGIN:
            found = _taints(case, nodes[0])
        case node_affinity.PLUGIN:
            found = label_findings(case, nodes)
        case _:
            found = neighbour_findings(case, nodes[0], rejection)
    return next(found, Finding(f"it rejects the pod: {', '.join(rejection.reasons)}"))


def _pinned_fixes(
    case: Case, claim: str, nodes: Sequence[str], selector: str | None
) -> Iterator[Proposal]:
    source = case.sources.of_pod(case.pod)
    if source is None:
        return
    if selector is not None:
        change = source.change(Edit(("nodeSelector", HOSTNAME), nodes[0]))
        text = f"let the node selector want {nodes[0]}, where claim {claim} has its devices"
        yield Proposal(text, FixRank.REPAIR, (change,))
    elif source.value.kind in POD_COUNTS:
        workload = f"{source.value.kind.lower()} {source.value.metadata.name}"
        text = f"replace claim {claim}, which all pods of {workload} share, by a template of claims"
        yield Proposal(text, FixRank.GIVE)


# --- taints ---------------------------------------------------------------------------------


def _taints(case: Case, node: str) -> Iterator[Finding]:
    signature = case.cluster.signature(case.pod)
    taints = [
        taint
        for taint in case.cluster.snapshot.nodes[node].facts.hard_taints
        if not signature.tolerations.tolerate_all((taint,))
    ]
    if not taints:
        return
    texts = [taint_text(t.key, t.value, t.effect) for t in taints]
    trouble = next((t for t in taints if t.key in NODE_TROUBLES), None)
    if trouble is not None:
        what = NODE_TROUBLES[trouble.key]
        yield Finding(
            f"node {node}, which would do, {what}: taint {listed(texts)}",
            (
                Proposal(
                    f"see why node {node} {what}: kubectl describe node {node}", FixRank.ADVICE
                ),
            ),
        )
        return
    source = case.sources.of_pod(case.pod)
    hard = case.cluster.snapshot.nodes[node].facts.hard_taints
    near = near_toleration(case.pod.spec.tolerations, taints[0].key, hard)
    if near is None:
        proposals = tuple(_tolerating(source, taints))
        cause = f"node {node} has taint {listed(texts)}, which the pod does not tolerate"
        yield Finding(cause, proposals)
        return
    written = written_toleration(case.pod.spec.tolerations[near])
    yield Finding(
        f"node {node} has taint {texts[0]}; the pod tolerates {written}, which is another",
        tuple(_corrected(source, near, written, taints)),
    )


def _tolerating(source: Source | None, taints: Sequence[Any]) -> Iterator[Proposal]:
    if source is None:
        return
    edits = [Edit(("tolerations", APPEND), toleration_of(taint)) for taint in taints]
    texts = listed([taint_text(t.key, t.value, t.effect) for t in taints])
    yield Proposal(f"tolerate {texts} in the pod", FixRank.GIVE, (source.change(*edits),))


def _corrected(
    source: Source | None, index: int, written: str, taints: Sequence[Any]
) -> Iterator[Proposal]:
    """Yield the toleration that was meant in place of the one that is there."""
    if source is None:
        return
    first, *others = taints
    edits = [Edit(("tolerations", index), toleration_of(first))]
    edits += [Edit(("tolerations", APPEND), toleration_of(taint)) for taint in others]
    text = taint_text(first.key, first.value, first.effect)
    change = source.change(*edits)
    yield Proposal(f"tolerate {text} instead of {written} in the pod", FixRank.REPAIR, (change,))


def near_toleration(tolerations: Sequence[Any], key: str, taints: Sequence[Any] = ()) -> int | None:
    """Return the toleration that was probably meant for a taint: of the same or a similar key.

    One that tolerates another of the taints was meant for that.
    """
    for index, each in enumerate(tolerations):
        is_near = each.key and (each.key == key or nearest(each.key, (key,)) == key)
        if is_near and not any(tolerates(each, taint) for taint in taints):
            return index
    return None


def written_toleration(toleration: Any) -> str:
    """Return a toleration as taints are written: `key=value:Effect`."""
    return taint_text(toleration.key or "", toleration.value or "", toleration.effect or "").rstrip(
        ":"
    )


def toleration_of(taint: Any) -> dict[str, str]:
    """Return the toleration of exactly one taint, as a manifest has it."""
    value = {"key": taint.key, "operator": "Equal" if taint.value else "Exists"}
    if taint.value:
        value["value"] = taint.value
    return value | {"effect": taint.effect}
