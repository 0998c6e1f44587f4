"""Nodes in domains with fewer of the pods that are to be spread are better."""

from __future__ import annotations

from collections.abc import Sequence
from math import floor, log

from mooring.scheduler.nodestate import NodeState
from mooring.scheduler.outlook import Outlook
from mooring.scheduler.scores.scale import SCORE_MAX
from mooring.scheduler.shape import PodShape
from mooring.scheduler.spreading import HOSTNAME
from mooring.scheduler.tally import Tally


def scores(shape: PodShape, states: Sequence[NodeState], outlook: Outlook) -> list[int] | None:
    """Return scores by the pods in each node's domains, a topology of more domains weighing more.

    Nodes without the label of some constraint get nothing.
    """
    if not outlook.soft:
        return None
    keys = [tally.constraint.topology_key for tally in outlook.soft]
    needs_all = shape.spreading.needs_all_keys
    judged = [
        state for state in states if not needs_all or all(key in state.facts.labels for key in keys)
    ]
    weights = [_topology_weight(tally, judged) for tally in outlook.soft]
    raw = {state.facts.name: _crowd(state, outlook.soft, weights) for state in judged}
    least, most = min(raw.values(), default=0), max(raw.values(), default=0)
    return [_reversed(raw.get(state.facts.name), least, most) for state in states]


def _reversed(crowd: int | None, least: int, most: int) -> int:
    if crowd is None:
        return 0
    return SCORE_MAX if most == 0 else SCORE_MAX * (most + least - crowd) // most


def _topology_weight(tally: Tally, judged: Sequence[NodeState]) -> float:
    key = tally.constraint.topology_key
    if key == HOSTNAME:
        return log(len(judged) + 2)
    return log(len({state.facts.labels.get(key, "") for state in judged}) + 2)


def _crowd(state: NodeState, tallies: Sequence[Tally], weights: Sequence[float]) -> int:
    """Return the weighed pods in the node's domains, rounded half up."""
    labels, total = state.facts.labels, 0.0
    for tally, weight in zip(tallies, weights, strict=True):
        key = tally.constraint.topology_key
        domain = labels.get(key)
        if domain is None:
            continue
        if key == HOSTNAME:
            pods = tally.pods_on.get(state.facts.name, 0)
        else:
            pods = tally.pods_in.get(domain, 0)
        total += pods * weight + (tally.constraint.max_skew - 1)
    return _rounded(total)


def _rounded(number: float) -> int:
    whole = floor(number)
    return whole + (number - whole >= 0.5)
