"""Nodes that the pod's preferred node affinity means are better."""

from __future__ import annotations

from collections.abc import Sequence

from mooring.scheduler.nodestate import NodeState
from mooring.scheduler.outlook import Outlook
from mooring.scheduler.scores.scale import proportional
from mooring.scheduler.shape import PodShape


def scores(
    shape: PodShape,
    states: Sequence[NodeState],
    outlook: Outlook,  # noqa: ARG001
) -> list[int] | None:
    """Return scores by the sum of the weights of the terms that match."""
    if not shape.tastes:
        return None
    return proportional([_weight(shape, state) for state in states])


def _weight(shape: PodShape, state: NodeState) -> int:
    name, labels = state.facts.name, state.facts.labels
    return sum(taste.weight for taste in shape.tastes if taste.term.matches(name, labels))
