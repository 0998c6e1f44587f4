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
    # Whether it can tell nodes apart; one that cannot need not be asked.
    tells: Callable[[PodShape, Outlook], bool] = lambda _, __: True
    # The score of one node, of rules for which it does not matter which others will do.
    own: Callable[[PodShape, NodeState], int] | None = None


def _has_pulls(shape: PodShape, outlook: Outlook) -> bool:  # noqa: ARG001
    return bool(outlook.pulls)


def _has_soft_constraints(shape: PodShape, outlook: Outlook) -> bool:  # noqa: ARG001
    return bool(outlook.soft)


def _has_tastes(shape: PodShape, outlook: Outlook) -> bool:  # noqa: ARG001
    return bool(shape.tastes)


def _has_images(shape: PodShape, outlook: Outlook) -> bool:
    return any(outlook.world.images.sizes(image) for image in shape.images)


def _has_soft_taints(shape: PodShape, outlook: Outlook) -> bool:  # noqa: ARG001
    return outlook.world.soft_tainted > 0


SCORES = (
    Score("TaintToleration", 3, tainttoleration.scores, _has_soft_taints),
    Score("NodeAffinity", 2, nodeaffinity.scores, _has_tastes),
    Score("NodeResourcesFit", 1, leastallocated.scores, own=leastallocated.score),
    Score("PodTopologySpread", 2, podtopologyspread.scores, _has_soft_constraints),
    Score("InterPodAffinity", 2, interpodaffinity.scores, _has_pulls),
    Score(
        "NodeResourcesBalancedAllocation",
        1,
        balancedallocation.scores,
        balancedallocation.tells,
        own=balancedallocation.score,
    ),
    Score("ImageLocality", 1, imagelocality.scores, _has_images),
)
