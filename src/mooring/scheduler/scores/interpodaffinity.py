"""Nodes near pods that this one likes, or that like it, are better; near disliked ones worse."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mooring.scheduler.nodestate import NodeState
from mooring.scheduler.outlook import Outlook
from mooring.scheduler.scores.scale import SCORE_MAX
from mooring.scheduler.shape import PodShape


def scores(
    shape: PodShape,  # noqa: ARG001
    states: Sequence[NodeState],
    outlook: Outlook,
) -> list[int] | None:
    """Return scores between the least and the most liked node: a look-up for each topology."""
    if not outlook.pulls or not states:
        return None
    sums = [_sum(state.facts.labels, outlook.pulls) for state in states]
    least, most = min(sums), max(sums)
    if least == most:
        return [0] * len(sums)
    return [int(SCORE_MAX * ((one - least) / (most - least))) for one in sums]


def _sum(labels: Mapping[str, str], pulls: Mapping[str, Mapping[str, int]]) -> int:
    total = 0
    for key, values in pulls.items():
        value = labels.get(key)
        if value is not None:
            total += values.get(value, 0)
    return total
