"""Weighs the nodes that will do."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mooring.scheduler.nodestate import NodeState
from mooring.scheduler.outlook import Outlook
from mooring.scheduler.plugin_times import SCORE as SCORE_POINT
from mooring.scheduler.plugin_times import PluginTimes, run_timed
from mooring.scheduler.scores import SCORES
from mooring.scheduler.shape import PodShape

OWN = tuple(score for score in SCORES if score.own is not None)
RELATIVE = tuple(score for score in SCORES if score.own is None)

OwnScore = tuple[int, Callable[[PodShape, NodeState], int]]  # with its weight

_PLUGIN_OF = {score.own: score.plugin for score in OWN}


def totals(
    shape: PodShape,
    states: Sequence[NodeState],
    outlook: Outlook,
    times: PluginTimes | None = None,
) -> list[int]:
    """Return the weighed sum of all scores for each node."""
    found = [0] * len(states)
    for score in SCORES:
        one = run_timed(times, score.plugin, SCORE_POINT, score.scores, shape, states, outlook)
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


def own_total(
    shape: PodShape,
    state: NodeState,
    own: tuple[OwnScore, ...],
    times: PluginTimes | None = None,
) -> int:
    """Return the weighed sum of a node's own scores."""
    if times is None:
        return sum([weight * score(shape, state) for weight, score in own])
    return sum(
        weight * times.run(_PLUGIN_OF[score], SCORE_POINT, score, shape, state)
        for weight, score in own
    )


def best(states: Sequence[NodeState], scores: Sequence[int]) -> NodeState:
    """Return the node with the highest score; of equals the first by name, always the same."""
    return min(zip(states, scores, strict=True), key=lambda pair: (-pair[1], pair[0].facts.name))[0]
