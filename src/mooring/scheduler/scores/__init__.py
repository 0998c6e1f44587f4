"""What makes one node better than another, one rule a module.

A score takes all nodes that will do, since most scores are relative to each other, and returns a
number from 0 to 100 for each, by Kubernetes' own integer arithmetic; or None where the rule has
nothing to say. Each costs a fraction of a µs for a node.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from mooring.scheduler.nodestate import NodeState
from mooring.scheduler.outlook import Outlook
from mooring.scheduler.scores import (
    balancedallocation,
    imagelocality,
    interpodaffinity,
    leastallocated,
    nodeaffinity,
    podtopologyspread,
    tainttoleration,
)
from mooring.scheduler.shape import PodShape


class Score(NamedTuple):
    """One rule, and how much it counts."""

    plugin: str
    weight: int
    scores: Callable[[PodShape, Sequence[NodeState], Outlook], list[int] | None]


SCORES = (
    Score("TaintToleration", 3, tainttoleration.scores),
    Score("NodeAffinity", 2, nodeaffinity.scores),
    Score("NodeResourcesFit", 1, leastallocated.scores),
    Score("PodTopologySpread", 2, podtopologyspread.scores),
    Score("InterPodAffinity", 2, interpodaffinity.scores),
    Score("NodeResourcesBalancedAllocation", 1, balancedallocation.scores),
    Score("ImageLocality", 1, imagelocality.scores),
)
