"""The plugins that apply to pods of one kind, and what they say of one node.

Which plugins matter changes with nodes and with other pods: without any taint in the cluster, for
instance, nobody asks for tolerations.
"""

from __future__ import annotations

from moorage.kit.checkpoints import checkpoint
from moorage.scheduler.framework import DYNAMIC_RESOURCES, FILTER, RankingWork, Unschedulable
from moorage.scheduler.node_info import NodeInfo
from moorage.scheduler.node_snapshot import NodeSnapshot
from moorage.scheduler.plugins.dynamic_resources import FilterClaims, NodeAllocation, no_claims
from moorage.scheduler.plugins.node_resources import FAST_PATH_SCORES, FastPath, fast_path
from moorage.scheduler.plugins.registry import (
    Profile,
    WeightedScore,
    active_filters,
    active_scores,
    has_relative_scores,
    is_only_spread,
    run_filters,
)
from moorage.scheduler.pod_signature import PodSignature
from moorage.scheduler.topology_state import TopologyState


class KindPlugins:
    """The plugins for one kind of pods, followed as the cluster changes."""

    def __init__(
        self,
        snapshot: NodeSnapshot,
        signature: PodSignature,
        work: RankingWork,
        profile: Profile,
        *,
        has_alternatives: bool,
    ) -> None:
        self._snapshot, self._signature = snapshot, signature
        self._work, self._profile = work, profile
        self._has_alternatives = has_alternatives
        self._generation = -1
        self._terms_version = (-1, -1)
        self.state: TopologyState = snapshot.topology_state(signature)
        self.filters = active_filters(profile, signature, self.state)
        self.own_scores: tuple[WeightedScore, ...] = ()
        self.path: FastPath | None = None  # for the varying filters and the own scores together
        self.is_relative = False  # whether scores depend on which other nodes are feasible

    @property
    def are_spread_only(self) -> bool:
        """Whether how pods are spread is the only score that depends on other nodes."""
        return is_only_spread(self._profile, self._signature, self.state)

    def follow(self) -> bool:
        """Find out which plugins apply, and return whether others do than before."""
        snapshot, signature, profile = self._snapshot, self._signature, self._profile
        state = self.state = snapshot.topology_state(signature)
        version, self._terms_version = self._terms_version, snapshot.terms_version
        is_same_generation = self._generation == snapshot.generation
        self._generation = snapshot.generation
        if is_same_generation and state.is_idle and self._terms_version == version:
            return False
        is_relative = has_relative_scores(profile, signature, state)
        self.is_relative = self._has_alternatives or is_relative
        filters = active_filters(profile, signature, state)
        if is_same_generation and filters == self.filters:
            return False
        self.filters = filters
        self.own_scores, scored = active_scores(profile, signature, state)
        self.path = None
        if filters.has_fast_path and scored <= FAST_PATH_SCORES:
            self.path = fast_path(signature, snapshot.inputs.class_resources)
        return True

    def rejected(self, info: NodeInfo) -> Unschedulable | None:
        """Return why filters that read nothing but the node reject it."""
        return run_filters(self.filters.fixed, self._signature, info, self.state)

    def answer(self, claims: FilterClaims, info: NodeInfo) -> NodeAllocation | Unschedulable:
        """Return what a node allocates to the claims, or which filter rejects it from here on."""
        checkpoint()
        self._work.nodes_asked += 1
        times = self._work.times
        if times is None or claims is no_claims:
            answer = claims(info)
        else:
            answer = times.run(DYNAMIC_RESOURCES, FILTER, claims, info)
        after = self.filters.after_claims
        if after and isinstance(answer, NodeAllocation):
            return run_filters(after, self._signature, info, self.state) or answer
        return answer
