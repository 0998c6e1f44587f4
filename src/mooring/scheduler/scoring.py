"""Weighs the nodes that will do."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mooring.scheduler.nodestate import NodeState
from mooring.scheduler.outlook import Outlook
from mooring.scheduler.scores import SCORES
from mooring.scheduler.shape import PodShape

OWN = tuple(score for score in SCORES if score.own is not None)
RELATIVE = tuple(score for score in SCORES if score.own is None)

OwnScore = tuple[int, Callable[[PodShape, NodeState], int]]  # with its weight


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


def own_scores(shape: PodShape, outlook: Outlook) -> tuple[OwnScore, ...]:
    """Return the scores that depend on the node alone and tell nodes apart."""
    return tuple([(s.weight, s.own) for s in OWN if s.own is not None and s.tells(shape, outlook)])


def best(states: Sequence[NodeState], scores: Sequence[int]) -> NodeState:
    """Return the node with the highest score; of equals the first by name, always the same."""
    return min(zip(states, scores, strict=True), key=lambda pair: (-pair[1], pair[0].facts.name))[0]
