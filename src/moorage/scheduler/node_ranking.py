"""All nodes for pods that request the same: which are feasible, and which is best.

A ranking is made once for a signature and the claims that go with it, and kept: the next pod of the
kind looks again only at nodes that were touched since.

    # status: the result of all filters for a node, except claims
    # claim status: the result of the claims filter; computed on demand, because it is expensive
    # place: the index of a node in the order of names, which decides among equal scores
    # by score: nodes that may fit; one that does not any more is dropped when it is the best
    # overdue: nodes that had no devices, and have less since: filtered again for their reasons only

In a small cluster every node is asked for its devices, as Kubernetes does. In a large one
Kubernetes looks at a part of the nodes; a ranking asks the best first and stops at the first that
has them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from functools import partial
from itertools import chain, islice

from moorage.scheduler.diagnosis import FitDiagnosis
from moorage.scheduler.framework import (
    RankingWork,
    Unschedulable,
)
from moorage.scheduler.kind_plugins import KindPlugins
from moorage.scheduler.node_info import NodeFacts, NodeInfo
from moorage.scheduler.node_snapshot import NodeSnapshot
from moorage.scheduler.plugins import proportional
from moorage.scheduler.plugins.dynamic_resources import (
    CANNOT_ALLOCATE,
    FilterClaims,
    NodeAllocation,
    no_claims,
)
from moorage.scheduler.plugins.registry import (
    DEFAULT_PROFILE,
    Profile,
    run_filters,
    score_node,
    score_nodes,
)
from moorage.scheduler.pod_signature import PodSignature
from moorage.scheduler.ranking_indexes import NodesByScore, SpreadRanking
from moorage.scheduler.size_ranking import SizeChoice, choice_by_size

NODES_ALL_ASKED_MAX = 100

ALLOCATABLE = True
ClaimStatus = Unschedulable | bool | None  # None: not asked yet


class NodeRanking:
    """The nodes of a snapshot for pods of one kind."""

    def __init__(
        self,
        snapshot: NodeSnapshot,
        signature: PodSignature,
        work: RankingWork,
        *,
        profile: Profile = DEFAULT_PROFILE,
        has_alternatives: bool = False,
        needs_free_device: bool = False,
    ) -> None:
        self._snapshot, self._signature = snapshot, signature
        self._profile, self._work = profile, work
        self._has_alternatives = has_alternatives and profile.claims_weight > 0
        # All rankings share the nodes where no device is free, so each need not check them.
        self._full = snapshot.full if needs_free_device else frozenset[str]()
        self._generation = -1
        self._touches = self._easings = self._device_touches = 0
        self._plugins = KindPlugins(
            snapshot, signature, work, profile, has_alternatives=self._has_alternatives
        )
        self._names: list[str] = []
        self._places: dict[str, int] = {}
        self._facts: list[NodeFacts | None] = []  # that the fixed filters have looked at
        self._fixed: list[Unschedulable | None] = []  # what these said
        self._statuses: list[Unschedulable | None] = []
        self._claim_statuses: list[ClaimStatus] = []
        self._claim_scores: list[int] = []
        self._scores: list[int] = []
        self._by_score = NodesByScore(0)
        self._overdue: set[int] = set()
        self._new_spread = partial(SpreadRanking, signature, weight=profile.spread_weight)
        self._spread = self._new_spread(())  # used if pods are spread
        self._choice: SizeChoice | None = None  # where the scores of its size are enough

    # --- choosing -------------------------------------------------------------------------------

    def choose(self, claims: FilterClaims = no_claims) -> tuple[NodeInfo, NodeAllocation] | None:
        """Return the best feasible node and its allocation, or None if there is none."""
        choice = self._choice_by_size()
        if choice is not None:
            ask = partial(self._plugins.answer, claims)
            found = choice.choose(self._snapshot, self._full, self._plugins.rejected, ask)
            if found is None:
                self._note_refused(choice.refused)
            return found
        self._refresh()
        if self._plugins.is_relative:
            return self._choose_scored(claims)
        if len(self._names) < NODES_ALL_ASKED_MAX:
            self._ask_all(claims)
        by_score, names, full = self._by_score, self._names, self._full
        while (place := by_score.best()) is not None:
            if self._may_fit(place):
                if names[place] in full:
                    self._claim_statuses[place] = CANNOT_ALLOCATE
                else:
                    allocation = self._ask(place, claims)
                    if isinstance(allocation, NodeAllocation):
                        return self._info(place), allocation
            by_score.put(place, None)
        return None

    def _choice_by_size(self) -> SizeChoice | None:
        """Return the choice among nodes scored for all pods of the size, if that is enough."""
        snapshot, work = self._snapshot, self._work
        self._follow_plugins()
        if self._choice is None or self._plugins.is_relative or work.times is not None:
            return None
        if len(snapshot.nodes) < NODES_ALL_ASKED_MAX or not self._choice.can_choose(snapshot, work):
            return None
        return self._choice

    def _note_refused(self, places: Iterable[int]) -> None:
        """Remember which nodes have no devices, for the diagnosis that follows."""
        self._refresh()
        for place in places:
            if self._claim_statuses[place] is None:
                self._claim_statuses[place] = CANNOT_ALLOCATE

    def find_any(
        self, claims: FilterClaims = no_claims, preferred: Iterable[str] = (), *, asked_max: int
    ) -> tuple[NodeInfo, NodeAllocation] | None:
        """Return any feasible node, where which one does not matter, preferred nodes first.

        Of the others at most `asked_max` are asked for their devices.
        """
        self._refresh()
        self._filter_overdue()
        first = [self._places[name] for name in preferred if name in self._places]
        places = filter(self._may_fit, chain(first, range(len(self._names) if asked_max else 0)))
        for place in dict.fromkeys(islice(places, len(first) + asked_max)):
            allocation = self._ask(place, claims)
            if isinstance(allocation, NodeAllocation):
                return self._info(place), allocation
        return None

    def diagnose(self, claims: FilterClaims = no_claims) -> FitDiagnosis:
        """Return the status of every node; check the devices of nodes not checked yet."""
        self._refresh()
        self._filter_overdue()
        self._ask_all(claims)
        feasible, statuses = [], {}
        for place, name in enumerate(self._names):
            status = self._statuses[place] or self._claim_statuses[place]
            if isinstance(status, Unschedulable):
                statuses[name] = status
            else:
                feasible.append(self._info(place))
        count = len(self._snapshot.nodes)
        return FitDiagnosis(count, tuple(feasible), statuses, self._signature.excluded)

    def rejections(
        self, names: Iterable[str], claims: FilterClaims = no_claims
    ) -> dict[str, Unschedulable]:
        """Return the statuses of those of some nodes that reject a pod; no others are asked."""
        self._refresh()
        self._filter_overdue()
        asked = sorted(self._places[name] for name in names)
        self._ask_all(claims, asked)
        statuses = {p: self._statuses[p] or self._claim_statuses[p] for p in asked}
        return {
            self._names[place]: status
            for place, status in statuses.items()
            if isinstance(status, Unschedulable)
        }

    def ordered(
        self, claims: FilterClaims = no_claims, within: Collection[str] | None = None
    ) -> list[str]:
        """Return the feasible nodes, the best first; of some nodes, or of all."""
        self._refresh()
        return [self._names[place] for place in self._scored(claims, within)]

    def _choose_scored(self, claims: FilterClaims) -> tuple[NodeInfo, NodeAllocation] | None:
        """Return the best of all feasible nodes, where scores are relative to each other."""
        is_other = self._has_alternatives or self._work.times is not None
        if not is_other and self._plugins.are_spread_only:
            places = self._best_spread(claims)
        else:
            places = self._scored(claims)
        if not places:
            return None
        allocation = self._ask(places[0], claims)
        assert isinstance(allocation, NodeAllocation), "a feasible node has what claims need"
        return self._info(places[0]), allocation

    def _best_spread(self, claims: FilterClaims) -> list[int]:
        """Return the best node where pods are spread; look at nodes that changed only."""
        spread = self._spread
        self._ask_all(claims, sorted(spread.stale))
        for place in spread.stale:
            score = self._scores[place] if self._may_fit(place) else None
            spread.put(place, self._info(place), self._plugins.state, score)
        self._work.nodes_compared += len(spread.stale)
        spread.stale.clear()
        return spread.best(self._plugins.state)

    def _scored(self, claims: FilterClaims, within: Collection[str] | None = None) -> list[int]:
        """Return all feasible nodes, the best first, and of equals the first by name."""
        asked: Sequence[int] = range(len(self._names))
        if within is not None:
            asked = sorted(self._places[name] for name in within if name in self._places)
        self._ask_all(claims, asked)
        places = [place for place in asked if self._may_fit(place)]
        nodes = [self._info(place) for place in places]
        self._work.nodes_compared += len(nodes)
        state = self._plugins.state
        scores = score_nodes(self._profile, self._signature, nodes, state, self._work.times)
        if self._has_alternatives:
            by_claims = proportional([self._claim_scores[place] for place in places])
            weight = self._profile.claims_weight
            scores = [one + weight * part for one, part in zip(scores, by_claims, strict=True)]
        # Places are in the order of names, and sorting keeps the order of equals.
        ranked = sorted(zip(scores, places, strict=True), key=lambda pair: -pair[0])
        return [place for _, place in ranked]

    def _may_fit(self, place: int) -> bool:
        return self._statuses[place] is None and not isinstance(
            self._claim_statuses[place], Unschedulable
        )

    def _ask_all(self, claims: FilterClaims, places: Iterable[int] | None = None) -> None:
        for place in range(len(self._names)) if places is None else places:
            if self._statuses[place] is None and self._claim_statuses[place] is None:
                self._ask(place, claims)

    def _ask(self, place: int, claims: FilterClaims) -> NodeAllocation | Unschedulable:
        """Ask a node for its devices and remember the answer."""
        self._spread.stale.add(place)
        answer = self._plugins.answer(claims, self._info(place))
        if isinstance(answer, NodeAllocation):
            self._claim_statuses[place] = ALLOCATABLE
            self._claim_scores[place] = answer.score
        else:
            self._claim_statuses[place] = answer
        return answer

    def _info(self, place: int) -> NodeInfo:
        return self._snapshot.nodes[self._names[place]]

    # --- keeping up -----------------------------------------------------------------------------

    def _refresh(self) -> None:
        snapshot = self._snapshot
        self._follow_plugins()
        touched = snapshot.touched_since(self._touches)
        eased = snapshot.eased_since(self._easings)
        if self._generation != snapshot.generation or touched is None or eased is None:
            self._begin()
            return
        if snapshot.device_touches != self._device_touches:
            self._filter_overdue()
            self._claim_statuses = [None] * len(self._names)
            self._spread.stale.update(range(len(self._names)))
            self._device_touches = snapshot.device_touches
            self._list_again()
        if self._plugins.is_relative:  # else the spread is not looked at
            self._spread.stale.update(self._places[n] for n in touched if n in self._places)
        self._look_at(touched, eased)
        if self._plugins.filters.reads_other_nodes and snapshot.touches != self._touches:
            self._filter_all()
        self._touches, self._easings = snapshot.touches, snapshot.easings

    def _follow_plugins(self) -> None:
        """Find out which plugins apply; with others, all nodes are looked at again."""
        plugins, was_relative = self._plugins, self._plugins.is_relative
        if plugins.follow():
            self._generation = -1
            self._choice = None
            if plugins.path is not None and not plugins.filters.reads_other_nodes:
                self._choice = choice_by_size(self._snapshot, self._signature, plugins.path)
        elif plugins.is_relative and not was_relative:
            self._spread.stale.update(range(len(self._names)))

    def _look_at(self, touched: Collection[str], eased: Collection[str]) -> None:
        """Filter the nodes that changed, unless that cannot make a difference."""
        places, claim_statuses, statuses = self._places, self._claim_statuses, self._statuses
        scores, put = self._scores, self._by_score.put
        full, nodes, facts, fixed = self._full, self._snapshot.nodes, self._facts, self._fixed
        path = None if self._work.measured_left else self._plugins.path
        judged = 0
        for name in touched:
            place = places.get(name)
            if place is None:
                continue
            if name in full:
                claim_statuses[place] = CANNOT_ALLOCATE
                self._overdue.add(place)
                continue
            if claim_statuses[place] is CANNOT_ALLOCATE and name not in eased:
                self._overdue.add(place)
                continue
            claim_statuses[place] = None
            info = nodes[name]
            # Most nodes are done here: a call for each of them would cost more than the rest.
            if path is None or fixed[place] is not None or info.facts is not facts[place]:
                self._filter(place)
                continue
            score = path(info)
            if score is None:
                self._filter(place)
                continue
            judged += 1
            statuses[place] = None
            scores[place] = score
            put(place, score)
        self._work.nodes_filtered += judged

    def _filter_overdue(self) -> None:
        self._spread.stale |= self._overdue
        for place in self._overdue:
            self._claim_statuses[place] = None
            self._filter(place)
        self._overdue.clear()

    def _begin(self) -> None:
        """Look at every node, for the first time or because all may have changed."""
        snapshot, signature = self._snapshot, self._signature
        self._generation = snapshot.generation
        self._touches, self._easings = snapshot.touches, snapshot.easings
        self._device_touches = snapshot.device_touches
        named = signature.node_names
        names = snapshot.nodes if named is None else [n for n in named if n in snapshot.nodes]
        self._names = sorted(names)
        self._places = {name: place for place, name in enumerate(self._names)}
        self._claim_statuses = [None] * len(self._names)
        self._claim_scores = [0] * len(self._names)
        self._facts = [None] * len(self._names)
        self._fixed = [None] * len(self._names)
        self._overdue.clear()
        self._filter_all()

    def _filter_all(self) -> None:
        count = len(self._names)
        self._statuses = [None] * count
        self._scores = [0] * count
        self._by_score = NodesByScore(count)
        self._spread = self._new_spread(range(count))
        for place in range(count):
            self._filter(place)

    def _filter(self, place: int) -> None:
        """Run the filters on a node, and the scores if it passes."""
        self._work.nodes_filtered += 1
        times = None
        if self._work.measured_left and self._work.times is not None:
            times = (self._work.times, self._profile)
            self._work.measured_left -= 1
        signature, plugins = self._signature, self._plugins
        state = plugins.state
        info = self._snapshot.nodes[self._names[place]]
        if info.facts is not self._facts[place]:
            self._facts[place] = info.facts
            self._fixed[place] = run_filters(plugins.filters.fixed, signature, info, state, times)
        status = self._fixed[place]
        score = None
        if status is None and plugins.path is not None and times is None:
            score = plugins.path(info)
        if status is None and score is None:
            status = run_filters(plugins.filters.varying, signature, info, state, times)
            if status is None:
                score = score_node(plugins.own_scores, signature, info, times)
        self._statuses[place] = status
        if status is None:
            assert score is not None
            self._scores[place] = score
            self._by_score.put(place, score)

    def _list_again(self) -> None:
        """List the nodes that were dropped, too: they may have devices now."""
        for place in filter(self._may_fit, range(len(self._names))):
            self._by_score.put(place, self._scores[place])
