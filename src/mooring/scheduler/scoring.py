"""Weighs the nodes that will do."""

from __future__ import annotations

from collections.abc import Sequence

from mooring.scheduler.nodestate import NodeState
from mooring.scheduler.outlook import Outlook
from mooring.scheduler.scores import SCORES
from mooring.scheduler.shape import PodShape

OWN = tuple(score for score in SCORES if score.is_own)
RELATIVE = tuple(score for score in SCORES if not score.is_own)


def totals(shape: PodShape, states: Sequence[NodeState], outlook: Outlook) -> list[int]:
    """Return the weighed sum of all scores for each node."""
    found = [0] * len(states)
    for score in SCORES:
        one = score.scores(shape, states, outlook)
        if one is not None:
            weight = score.weight
            found = [total + weight * part for total, part in zip(found, one, strict=True)]
    return found


def is_relative(shape: PodShape, outlook: Outlook) -> bool:
    """Return whether some score depends on which other nodes will do."""
    return any(score.tells(shape, outlook) for score in RELATIVE)


def own_total(shape: PodShape, state: NodeState, outlook: Outlook) -> int:
    """Return the weighed sum of the scores that depend on the node alone."""
    total = 0
    for score in OWN:
        one = score.scores(shape, (state,), outlook)
        if one is not None:
            total += score.weight * one[0]
    return total


def best(states: Sequence[NodeState], scores: Sequence[int]) -> NodeState:
    """Return the node with the highest score; of equals the first by name, always the same."""
    return min(zip(states, scores, strict=True), key=lambda pair: (-pair[1], pair[0].facts.name))[0]
