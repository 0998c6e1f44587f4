"""Plugins: one module for each plugin of Kubernetes' scheduler, with its filter, its score or both.

registry             all plugins in Kubernetes' order, and how they are run
node_filters         plugins that look at one fact of a node: name, cordon, ports, features,
                     bound volumes
taint_toleration, node_affinity, node_resources, pod_topology_spread, inter_pod_affinity,
image_locality       plugins that look at a node and at pods
extension_points     which plugins a profile runs where, and what cannot be obeyed
resource_scores      scores by any resources and strategy
dynamic_resources    DynamicResources: devices for claims (Filter, PostFilter, Score)
claim_needs          its PreFilter: what the claims of a pod need, whatever the node

To add a filter: write its module with a `FILTER` that declares what it reads, list it in `registry`
and test it through `NodeRanking`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from enum import Flag, auto
from typing import NamedTuple

from moorage.api.core.node import Node
from moorage.api.core.pod import Pod
from moorage.scheduler.framework import Unschedulable
from moorage.scheduler.node_info import NodeInfo
from moorage.scheduler.pod_signature import PodSignature
from moorage.scheduler.topology_state import TopologyState

FilterStatus = Unschedulable | None
FilterNode = Callable[[PodSignature, NodeInfo, TopologyState], FilterStatus]
ScoreNode = Callable[[PodSignature, NodeInfo], int]
ScoreNodes = Callable[[PodSignature, Sequence[NodeInfo], TopologyState], list[int] | None]
Applies = Callable[[PodSignature, TopologyState], bool]

SCORE_MAX = 100


class Reads(Flag):
    """The inputs of a filter besides the pod, and so the events that can change its answer."""

    NODE = auto()  # the node itself
    PODS = auto()  # pods on the node
    OTHER_PODS = auto()  # pods on other nodes
    DEVICES = auto()  # devices and claims
    CLASSES = auto()  # device classes
    ALL = NODE | PODS | OTHER_PODS | DEVICES | CLASSES


class Filter(NamedTuple):
    """A plugin at the extension point Filter.

    `applies` says, once for a signature and its topology state, whether any node could be rejected;
    `filter_node` then answers for one node, in well under a µs where the node fits. Whatever saves
    work, such as remembered answers, the fast path and queueing hints, follows from `reads`; a
    filter that declares nothing depends on everything and runs whenever anything has changed.
    """

    plugin: str
    filter_node: FilterNode
    applies: Applies = lambda _signature, _state: True
    reads: Reads = Reads.ALL
    # Fields that only this plugin reads: they are in `by_plugin` of signatures and node facts.
    read_pod: Callable[[Pod], Hashable] | None = None
    read_node: Callable[[Node], Hashable] | None = None


class Score(NamedTuple):
    """A plugin at the extension point Score.

    It takes one node, or all feasible nodes if its scores are relative to each other, and returns 0
    to 100 for each by Kubernetes' own integer arithmetic; None where it has nothing to say.
    """

    plugin: str
    weight: int
    score_node: ScoreNode | None = None
    score_nodes: ScoreNodes | None = None
    applies: Applies = lambda _signature, _state: True  # whether its score differs between nodes


def proportional(scores: list[int]) -> list[int]:
    """Return the scores as parts of the largest."""
    largest = max(scores, default=0)
    if largest == 0:
        return scores
    return [SCORE_MAX * score // largest for score in scores]


def proportional_reversed(scores: list[int]) -> list[int]:
    """Return how far below the largest the scores are; where all are 0 all are best."""
    largest = max(scores, default=0)
    if largest == 0:
        return [SCORE_MAX] * len(scores)
    return [SCORE_MAX - SCORE_MAX * score // largest for score in scores]
