"""Pods that must be near others, or apart from them; and those that others must be apart from."""

from __future__ import annotations

from mooring.scheduler.nodestate import NodeState
from mooring.scheduler.outlook import Outlook
from mooring.scheduler.refusals import Refusal
from mooring.scheduler.shape import PodShape

PLUGIN = "InterPodAffinity"
NOT_NEAR = Refusal(PLUGIN, ("node(s) didn't match pod affinity rules",), is_unresolvable=True)
NOT_APART = Refusal(PLUGIN, ("node(s) didn't match pod anti-affinity rules",))
REPELLED = Refusal(PLUGIN, ("node(s) didn't satisfy existing pods anti-affinity rules",))


def applies(shape: PodShape, outlook: Outlook) -> bool:
    """Return whether the pod, or a placed pod that means it, has required terms."""
    return bool(shape.terms.near or shape.terms.apart or outlook.repelled)


def check(shape: PodShape, state: NodeState, outlook: Outlook) -> Refusal | None:
    """Return a refusal if a term does not hold: a look-up for each term or label."""
    labels = state.facts.labels
    if shape.terms.near and not _is_near(shape, state, outlook):
        return NOT_NEAR
    if outlook.apart:
        for term in shape.terms.apart:
            if (term.topology_key, labels.get(term.topology_key)) in outlook.apart:
                return NOT_APART
    if outlook.repelled and not outlook.repelled.keys().isdisjoint(labels.items()):
        return REPELLED
    return None


def _is_near(shape: PodShape, state: NodeState, outlook: Outlook) -> bool:
    """Return whether pods that all terms mean are in every term's place.

    The first pod of a group that wants to be near itself may go anywhere that has the labels.
    """
    labels = state.facts.labels
    are_there = True
    for term in shape.terms.near:
        value = labels.get(term.topology_key)
        if value is None:
            return False
        are_there = are_there and (term.topology_key, value) in outlook.near
    return are_there or (not outlook.near and outlook.is_near_itself)
