"""What is said of a pod for which there is no node, in Kubernetes' words.

    0/3 nodes are available: 1 Insufficient cpu, 2 node(s) had untolerated taint(s). preemption: …

Reasons are counted over nodes and sorted as texts with their counts, so that `10 …` comes before
`2 …`, as there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from mooring.scheduler.filtering import Survey
from mooring.scheduler.refusals import Fault, Refusal

NO_NODES = "no nodes available to schedule pods"
NOT_HELPFUL = "Preemption is not helpful for scheduling"
NO_VICTIMS = "No preemption victims found for incoming pod"
CLAIM_DEALLOCATED = "deallocation of ResourceClaim completed"
CLAIM_DELETED = "deletion of ResourceClaim completed"
NEVER_PREEMPTS = "not eligible due to preemptionPolicy=Never."


def unavailable(survey: Survey, *after: str) -> str:
    """Return why no node will do, and then what was tried after that, such as preemption."""
    if survey.nodes_count == 0:
        return NO_NODES
    if isinstance(survey.obstacle, Fault):
        return survey.obstacle.text
    if survey.obstacle is not None:
        said = _sentence(survey.nodes_count, ", ".join(survey.obstacle.texts))
    else:
        said = _sentence(survey.nodes_count, _counted(_reasons(survey)))
    return f"{said} {', '.join(after)}" if after else said


def preemption(survey: Survey, outcomes: Mapping[str, Refusal] | None = None) -> str:
    """Return what came of preemption where it came to nothing.

    `outcomes` are the refusals that were left on nodes after all pods of lower priority were
    thought away; where there are none to think away, there are no victims. Nodes that refuse for
    good are not tried.
    """
    texts: Counter[str] = Counter()
    tried = 0
    if survey.obstacle is None:
        for name, refusal in survey.refusals.items():
            if not refusal.is_unresolvable:
                tried += 1
                outcome = (outcomes or {}).get(name)
                texts.update(outcome.texts if outcome else (NO_VICTIMS,))
    if survey.nodes_count > tried:
        texts[NOT_HELPFUL] = survey.nodes_count - tried
    return f"preemption: {_sentence(survey.nodes_count, _counted(texts))}"


def preempting(node: str, victims: int) -> str:
    """Return what is said once pods that must leave a node have been found."""
    said = f"found a potential placement for pod on node {node}, preempting {victims} victims"
    return f"preemption: {said}"


def preemption_fault(text: str) -> str:
    """Return what is said where it could not be found out whether preemption helps."""
    return f"preemption: {text}"


def no_preemption() -> str:
    """Return what is said of a pod that does not preempt others."""
    return f"preemption: {NEVER_PREEMPTS}"


def _reasons(survey: Survey) -> Counter[str]:
    texts: Counter[str] = Counter()
    for refusal in survey.refusals.values():
        texts.update(refusal.texts)
    unasked = survey.nodes_count - len(survey.refusals)
    if unasked and survey.elsewhere is not None:
        for text in survey.elsewhere.texts:
            texts[text] += unasked
    return texts


def _counted(texts: Counter[str]) -> str:
    return ", ".join(sorted(f"{count} {text}" for text, count in texts.items()))


def _sentence(nodes_count: int, reasons: str) -> str:
    said = f"0/{nodes_count} nodes are available:"
    return f"{said} {reasons}." if reasons else said
