"""All plugins in the order in which Kubernetes runs them, and how they are run."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from typing import NamedTuple

from mooring.scheduler.framework import (
    DYNAMIC_RESOURCES,
    FILTER,
    SCORE,
    PluginTimes,
    run_timed,
)
from mooring.scheduler.node_info import NodeInfo
from mooring.scheduler.plugins import (
    FilterNode,
    FilterStatus,
    Reads,
    Score,
    ScoreNode,
    image_locality,
    inter_pod_affinity,
    node_affinity,
    node_filters,
    node_resources,
    pod_topology_spread,
    taint_toleration,
)
from mooring.scheduler.pod_signature import PodSignature
from mooring.scheduler.topology_state import TopologyState

FILTERS = (
    node_filters.NODE_NAME,
    node_filters.NODE_UNSCHEDULABLE,
    taint_toleration.FILTER,
    node_affinity.FILTER,
    node_filters.NODE_PORTS,
    node_resources.FILTER,
    pod_topology_spread.FILTER,
    inter_pod_affinity.FILTER,
    node_filters.NODE_DECLARED_FEATURES,  # after DynamicResources
)

SCORES = (
    taint_toleration.SCORE,
    node_affinity.SCORE,
    node_resources.FIT_SCORE,
    pod_topology_spread.SCORE,
    inter_pod_affinity.SCORE,
    node_resources.BALANCED_SCORE,
    image_locality.SCORE,
)

POD_READERS = {each.plugin: each.read_pod for each in FILTERS if each.read_pod is not None}
NODE_READERS = {each.plugin: each.read_node for each in FILTERS if each.read_node is not None}

_READS = {each.plugin: each.reads for each in FILTERS} | {
    DYNAMIC_RESOURCES: Reads.NODE | Reads.PODS | Reads.DEVICES | Reads.CLASSES
}
_PLUGIN_OF: dict[object, str] = {
    **{each.filter_node: each.plugin for each in FILTERS},
    **{each.score_node: each.plugin for each in SCORES},
}

WeightedScore = tuple[int, ScoreNode]


def reads_of(plugin: str) -> Reads:
    """Return what can change the answer of a plugin; of an unknown one, everything."""
    return _READS.get(plugin, Reads.ALL)


class ActiveFilters(NamedTuple):
    """The filters that can reject a node for one signature, in order."""

    fixed: tuple[FilterNode, ...]  # the first ones, as long as they read the node alone
    varying: tuple[FilterNode, ...]  # the others before claims
    after_claims: tuple[FilterNode, ...]
    reads_other_nodes: bool
    has_fast_path: bool  # the fast path replaces all varying ones

    @property
    def before_claims(self) -> tuple[FilterNode, ...]:
        """The filters that run before claims."""
        return self.fixed + self.varying


def active_filters(signature: PodSignature, state: TopologyState) -> ActiveFilters:
    """Return the filters that apply to a signature."""
    active = [each for each in FILTERS if each.applies(signature, state)]
    first = [each for each in active if not each.runs_after_claims]
    fixed = [*takewhile(lambda each: each.reads is Reads.NODE, first)]
    varying = first[len(fixed) :]
    return ActiveFilters(
        tuple([each.filter_node for each in fixed]),
        tuple([each.filter_node for each in varying]),
        tuple([each.filter_node for each in active if each.runs_after_claims]),
        any(Reads.OTHER_PODS in each.reads for each in active),
        all(each.plugin in node_resources.FAST_PATH_FILTERS for each in varying),
    )


def run_filters(
    filters: tuple[FilterNode, ...],
    signature: PodSignature,
    node: NodeInfo,
    state: TopologyState,
    times: PluginTimes | None = None,
) -> FilterStatus:
    """Return the first status that rejects the node, or None if it fits."""
    if times is not None:
        for each in filters:
            status = times.run(_PLUGIN_OF[each], FILTER, each, signature, node, state)
            if status is not None:
                return status
        return None
    for each in filters:
        status = each(signature, node, state)
        if status is not None:
            return status
    return None


def has_relative_scores(signature: PodSignature, state: TopologyState) -> bool:
    """Return whether some score depends on which other nodes are feasible."""
    return any(s.score_node is None and s.applies(signature, state) for s in SCORES)


def is_only_spread(signature: PodSignature, state: TopologyState) -> bool:
    """Return whether PodTopologySpread is the only score that depends on other nodes."""
    relative = [s.plugin for s in SCORES if s.score_node is None and s.applies(signature, state)]
    return relative == [pod_topology_spread.PLUGIN]


def active_scores(
    signature: PodSignature, state: TopologyState
) -> tuple[tuple[WeightedScore, ...], frozenset[str]]:
    """Return the scores that depend on the node alone and differ, and their plugins."""
    active = [each for each in SCORES if each.score_node and each.applies(signature, state)]
    scores = tuple([(each.weight, each.score_node) for each in active if each.score_node])
    return scores, frozenset([each.plugin for each in active])


def score_node(
    scores: tuple[WeightedScore, ...],
    signature: PodSignature,
    node: NodeInfo,
    times: PluginTimes | None = None,
) -> int:
    """Return the weighted sum of a node's own scores."""
    if times is None:
        return sum([weight * score(signature, node) for weight, score in scores])
    return sum(
        weight * times.run(_PLUGIN_OF[score], SCORE, score, signature, node)
        for weight, score in scores
    )


def score_nodes(
    signature: PodSignature,
    nodes: Sequence[NodeInfo],
    state: TopologyState,
    times: PluginTimes | None = None,
) -> list[int]:
    """Return the weighted sum of all scores for each feasible node."""
    totals = [0] * len(nodes)
    for each in SCORES:
        scores = run_timed(times, each.plugin, SCORE, plugin_scores, each, signature, nodes, state)
        if scores is not None:
            weight = each.weight
            totals = [total + weight * part for total, part in zip(totals, scores, strict=True)]
    return totals


def plugin_scores(
    score: Score, signature: PodSignature, nodes: Sequence[NodeInfo], state: TopologyState
) -> list[int] | None:
    """Return the scores of one plugin, or None if it has nothing to say."""
    if score.score_nodes is not None:
        return score.score_nodes(signature, nodes, state)
    if score.score_node is None or not score.applies(signature, state):
        return None
    return [score.score_node(signature, node) for node in nodes]
