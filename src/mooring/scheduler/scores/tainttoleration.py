"""Nodes with fewer taints that pods should rather stay away from are better."""

from __future__ import annotations

from collections.abc import Sequence

from mooring.scheduler.nodestate import NodeState
from mooring.scheduler.outlook import Outlook
from mooring.scheduler.scores.scale import SCORE_MAX, proportional_reversed
from mooring.scheduler.shape import PodShape


def scores(
    shape: PodShape,
    states: Sequence[NodeState],
    outlook: Outlook,  # noqa: ARG001
) -> list[int] | None:
    """Return scores by the number of soft taints that the pod does not tolerate."""
    if not any(state.facts.soft_taints for state in states):
        return [SCORE_MAX] * len(states)
    tolerate = shape.soft_tolerations.tolerate
    return proportional_reversed(
        [sum(not tolerate(taint) for taint in state.facts.soft_taints) for state in states]
    )
