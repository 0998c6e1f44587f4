"""All plugins in the order in which Kubernetes runs them, profiles, and how plugins are run."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import takewhile
from typing import NamedTuple

from msgspec import Struct

from moorage.scheduler.framework import (
    DYNAMIC_RESOURCES,
    FILTER,
    SCORE,
    PluginTimes,
    run_timed,
)
from moorage.scheduler.node_info import NodeInfo
from moorage.scheduler.plugins import (
    Filter,
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
from moorage.scheduler.pod_signature import DEFAULT_READING, PodReading, PodSignature
from moorage.scheduler.topology_state import TopologyState

FILTERS = (
    node_filters.NODE_NAME,
    node_filters.NODE_UNSCHEDULABLE,
    taint_toleration.FILTER,
    node_affinity.FILTER,
    node_filters.NODE_PORTS,
    node_resources.FILTER,
    node_filters.VOLUME_RESTRICTIONS,
    node_filters.VOLUME_BINDING,
    pod_topology_spread.FILTER,
    inter_pod_affinity.FILTER,
)
FILTERS_AFTER_CLAIMS = (node_filters.NODE_DECLARED_FEATURES,)

SCORES = (
    taint_toleration.SCORE,
    node_affinity.SCORE,
    node_resources.FIT_SCORE,
    pod_topology_spread.SCORE,
    inter_pod_affinity.SCORE,
    node_resources.BALANCED_SCORE,
    image_locality.SCORE,
)

_ALL_FILTERS = (*FILTERS, *FILTERS_AFTER_CLAIMS)
POD_READERS = {each.plugin: each.read_pod for each in _ALL_FILTERS if each.read_pod is not None}
NODE_READERS = {each.plugin: each.read_node for each in _ALL_FILTERS if each.read_node is not None}

_READS = {each.plugin: each.reads for each in _ALL_FILTERS} | {
    DYNAMIC_RESOURCES: Reads.NODE | Reads.PODS | Reads.DEVICES | Reads.CLASSES
}

WeightedScore = tuple[int, ScoreNode]


def reads_of(plugin: str) -> Reads:
    """Return what can change the answer of a plugin; of an unknown one, everything."""
    return _READS.get(plugin, Reads.ALL)


# --- profiles -------------------------------------------------------------------------------------


class PlacementScores(Struct, frozen=True):
    """How the placements of a group are compared: by which plugins, and by which resources."""

    pods_weight: int = 1  # PodGroupPodsCount; 0: it is off
    fit_weight: int = 1  # NodeResourcesFit
    resources: tuple[tuple[str, int], ...] = (("cpu", 1), ("memory", 1))  # with their weights


class Profile(Struct, frozen=True, eq=False, dict=True):
    """The plugins of one scheduler by name, set up as its configuration says."""

    reading: PodReading = DEFAULT_READING
    filters: tuple[Filter, ...] = FILTERS
    filters_after_claims: tuple[Filter, ...] = FILTERS_AFTER_CLAIMS
    scores: tuple[Score, ...] = SCORES
    claims_are_filtered: bool = True  # DynamicResources
    claims_weight: int = 2  # of DynamicResources in scores; 0: it does not score
    deallocates: bool = True  # DynamicResources at PostFilter
    preempts: bool = True  # DefaultPreemption at PostFilter
    groups_deallocate: bool = True  # DynamicResources at PodGroupPostFilter
    groups_preempt: bool = True  # DefaultPreemption at PodGroupPostFilter
    candidates_min: int = 100  # nodes that are enough to choose victims from
    candidates_percent: int = 10
    placement_scores: PlacementScores = PlacementScores()
    has_placements: bool = True  # TopologyPlacementGenerator
    filter_timeout_s: float = 10.0  # 0: none
    binding_timeout_s: float = 600.0

    @property
    def name(self) -> str:
        """What pods call it in `schedulerName`."""
        return self.reading.scheduler_name

    @cached_property
    def plugin_of(self) -> dict[object, str]:
        """The plugins by the functions that filter or score one node."""
        filters = (*self.filters, *self.filters_after_claims)
        return {each.filter_node: each.plugin for each in filters} | {
            each.score_node: each.plugin for each in self.scores
        }

    @cached_property
    def has_fast_path(self) -> bool:
        """Whether resources are filtered and scored as the fast path does it."""
        scores = [each for each in self.scores if each.plugin in node_resources.FAST_PATH_SCORES]
        return node_resources.FILTER in self.filters and scores == [
            node_resources.FIT_SCORE,
            node_resources.BALANCED_SCORE,
        ]

    @cached_property
    def spread_weight(self) -> int:
        """The weight of PodTopologySpread in scores."""
        return sum(e.weight for e in self.scores if e.plugin == pod_topology_spread.PLUGIN)


DEFAULT_PROFILE = Profile()


# --- filters --------------------------------------------------------------------------------------


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


def active_filters(
    profile: Profile, signature: PodSignature, state: TopologyState
) -> ActiveFilters:
    """Return the filters that apply to a signature."""
    first = [each for each in profile.filters if each.applies(signature, state)]
    last = [each for each in profile.filters_after_claims if each.applies(signature, state)]
    fixed = [*takewhile(lambda each: each.reads is Reads.NODE, first)]
    varying = first[len(fixed) :]
    return ActiveFilters(
        tuple([each.filter_node for each in fixed]),
        tuple([each.filter_node for each in varying]),
        tuple([each.filter_node for each in last]),
        any(Reads.OTHER_PODS in each.reads for each in first + last),
        profile.has_fast_path
        and all(each.plugin in node_resources.FAST_PATH_FILTERS for each in varying),
    )


def run_filters(
    filters: tuple[FilterNode, ...],
    signature: PodSignature,
    node: NodeInfo,
    state: TopologyState,
    times: tuple[PluginTimes, Profile] | None = None,
) -> FilterStatus:
    """Return the first status that rejects the node, or None if it fits."""
    if times is not None:
        measure, profile = times
        for each in filters:
            plugin = profile.plugin_of[each]
            status = measure.run(plugin, FILTER, each, signature, node, state)
            if status is not None:
                return status
        return None
    for each in filters:
        status = each(signature, node, state)
        if status is not None:
            return status
    return None


# --- scores ---------------------------------------------------------------------------------------


def has_relative_scores(profile: Profile, signature: PodSignature, state: TopologyState) -> bool:
    """Return whether some score depends on which other nodes are feasible."""
    return any(s.score_node is None and s.applies(signature, state) for s in profile.scores)


def is_only_spread(profile: Profile, signature: PodSignature, state: TopologyState) -> bool:
    """Return whether PodTopologySpread is the only score that depends on other nodes."""
    scores = profile.scores
    relative = [s.plugin for s in scores if s.score_node is None and s.applies(signature, state)]
    return relative == [pod_topology_spread.PLUGIN]


def active_scores(
    profile: Profile, signature: PodSignature, state: TopologyState
) -> tuple[tuple[WeightedScore, ...], frozenset[str]]:
    """Return the scores that depend on the node alone and differ, and their plugins."""
    active = [each for each in profile.scores if each.score_node and each.applies(signature, state)]
    scores = tuple([(each.weight, each.score_node) for each in active if each.score_node])
    return scores, frozenset([each.plugin for each in active])


def score_node(
    scores: tuple[WeightedScore, ...],
    signature: PodSignature,
    node: NodeInfo,
    times: tuple[PluginTimes, Profile] | None = None,
) -> int:
    """Return the weighted sum of a node's own scores."""
    if times is None:
        return sum([weight * score(signature, node) for weight, score in scores])
    measure, profile = times
    return sum(
        weight * measure.run(profile.plugin_of[score], SCORE, score, signature, node)
        for weight, score in scores
    )


def score_nodes(
    profile: Profile,
    signature: PodSignature,
    nodes: Sequence[NodeInfo],
    state: TopologyState,
    times: PluginTimes | None = None,
) -> list[int]:
    """Return the weighted sum of all scores for each feasible node."""
    totals = [0] * len(nodes)
    for each in profile.scores:
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
