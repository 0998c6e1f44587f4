"""What is known of every node for pods that ask the same: who will do, and who is best.

A ranking is made once for a shape and the claims that go with it, and kept: the next pod of the
kind looks again only at nodes that were touched since.

    # refusal: what the filters say of a node, all but claims
    # answer: what claims say of it; asked when it matters, since that is dear
    # heap: nodes by their score, the best first; entries that are no longer true are skipped
    # entry: how far a node's score is below the most there can be, and its place, in one number
    # overdue: nodes that had no devices, and have less since: looked at again for their words only

In a small fleet every node is asked for its devices, as Kubernetes does. In a large one Kubernetes
looks at a part of the nodes; a ranking asks the best first and stops at the first that has them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from heapq import heapify, heappop, heappush

from mooring.scheduler.claimcheck import CANNOT_ALLOCATE, NOTHING_NEEDED, Grant
from mooring.scheduler.claimneeds import PLUGIN as DYNAMIC_RESOURCES
from mooring.scheduler.filtering import Survey, judge
from mooring.scheduler.filters import FILTERS, LAST, Check
from mooring.scheduler.fleet import Fleet
from mooring.scheduler.measure import Measure, measure_for
from mooring.scheduler.nodestate import NodeFacts, NodeState
from mooring.scheduler.outlook import Outlook
from mooring.scheduler.plugin_times import FILTER, NODES_MEASURED_MAX, PluginTimes
from mooring.scheduler.refusals import Refusal
from mooring.scheduler.scores.claims import WEIGHT as CLAIMS_WEIGHT
from mooring.scheduler.scores.scale import proportional
from mooring.scheduler.scoring import OwnScore, is_relative, own_scores, own_total, totals
from mooring.scheduler.shape import PodShape

NODES_ALL_ASKED_MAX = 100
HEAP_FACTOR_MAX = 4  # entries for each node before the heap is made anew

PLACE_BITS = 24
PLACE_MASK = (1 << PLACE_BITS) - 1
SCORE_TOP = 1 << 16  # above any sum of scores

AskClaims = Callable[[NodeState], Grant | Refusal]

GRANTED = True
Known = Refusal | bool | None  # None: not asked yet


class Work:
    """How much was looked at, by all rankings of a cluster, and how long plugins take at it."""

    nodes_judged = 0  # by the filters and scores
    nodes_asked = 0  # for their devices
    times: PluginTimes | None = None  # None: this cycle is not measured
    measured_left = 0  # nodes of which filters and scores are still measured in this cycle

    def measure(self, times: PluginTimes | None) -> None:
        """Begin a cycle that is measured, or is not."""
        self.times = times
        self.measured_left = 0 if times is None else NODES_MEASURED_MAX


class Ranking:
    """The nodes of a fleet, as pods of one kind see them."""

    def __init__(
        self,
        fleet: Fleet,
        shape: PodShape,
        work: Work,
        *,
        has_alternatives: bool,
        needs_free_device: bool = False,
    ) -> None:
        self._fleet = fleet
        self._work = work
        self._shape = shape
        self._has_alternatives = has_alternatives
        # Nodes where no device is free are known to all rankings, and not asked by each.
        self._full = fleet.full if needs_free_device else frozenset[str]()
        self._epoch = -1
        self._touches = 0
        self._easings = 0
        self._device_touches = 0
        self._outlook: Outlook = fleet.outlook(shape)
        self._first: tuple[Check, ...] = ()  # all before claims: the fixed ones, and the others
        self._fixed: tuple[Check, ...] = ()
        self._varying: tuple[Check, ...] = ()
        self._last: tuple[Check, ...] = ()
        self._own_scores: tuple[OwnScore, ...] = ()
        self._measure: Measure | None = None
        self._is_wide = False
        self._names: list[str] = []
        self._places: dict[str, int] = {}
        self._facts: list[NodeFacts | None] = []  # that the fixed filters have looked at
        self._barred: list[Refusal | None] = []  # what these said
        self._refusals: list[Refusal | None] = []
        self._answers: list[Known] = []
        self._choices: list[int] = []  # by node, how good the alternatives are that claims get
        self._scores: list[int] = []
        self._heap: list[int] = []
        self._overdue: set[int] = set()

    # --- asking ---------------------------------------------------------------------------------

    def choose(self, ask: AskClaims) -> tuple[NodeState, Grant] | None:
        """Return the best node that will do and what it gives, or None if there is none."""
        self._refresh()
        if self._is_relative:
            return self._choose_weighed(ask)
        if len(self._names) < NODES_ALL_ASKED_MAX:
            self._ask_all(ask)
        heap, scores, names, full = self._heap, self._scores, self._names, self._full
        while heap:
            place = heap[0] & PLACE_MASK
            # Most entries are old ones of nodes that have another score by now.
            if SCORE_TOP - (heap[0] >> PLACE_BITS) == scores[place] and self._may_do(place):
                if names[place] in full:
                    self._answers[place] = CANNOT_ALLOCATE
                else:
                    grant = self._ask(place, ask)
                    if isinstance(grant, Grant):
                        return self._state(place), grant
            heappop(heap)
        return None

    def survey(self, ask: AskClaims) -> Survey:
        """Return what every node says; those that claims were not asked of are asked now."""
        self._refresh()
        self._judge_overdue()
        self._ask_all(ask)
        fitting, refusals = [], {}
        for place, name in enumerate(self._names):
            said = self._refusals[place] or self._answers[place]
            if isinstance(said, Refusal):
                refusals[name] = said
            else:
                fitting.append(self._state(place))
        count = len(self._fleet.nodes)
        return Survey(count, tuple(fitting), refusals, self._shape.elsewhere)

    @property
    def _is_relative(self) -> bool:
        return self._has_alternatives or is_relative(self._shape, self._outlook)

    def ordered(self, ask: AskClaims) -> list[str]:
        """Return the nodes that will do, the best first."""
        self._refresh()
        return [self._names[place] for place in self._weighed(ask)]

    def _choose_weighed(self, ask: AskClaims) -> tuple[NodeState, Grant] | None:
        """Weigh all nodes that will do against each other."""
        places = self._weighed(ask)
        if not places:
            return None
        grant = self._ask(places[0], ask)
        assert isinstance(grant, Grant), "a node that will do has what claims need"
        return self._state(places[0]), grant

    def _weighed(self, ask: AskClaims) -> list[int]:
        """Return all nodes that will do, the best first, and of equals the first by name."""
        self._ask_all(ask)
        places = [place for place in range(len(self._names)) if self._may_do(place)]
        states = [self._state(place) for place in places]
        scores = totals(self._shape, states, self._outlook, self._work.times)
        if self._has_alternatives:
            claims = proportional([self._choices[place] for place in places])
            scores = [
                score + CLAIMS_WEIGHT * part for score, part in zip(scores, claims, strict=True)
            ]
        # Places are in the order of names, and sorting keeps the order of equals.
        weighed = sorted(zip(scores, places, strict=True), key=lambda pair: -pair[0])
        return [place for _, place in weighed]

    def _may_do(self, place: int) -> bool:
        return self._refusals[place] is None and not isinstance(self._answers[place], Refusal)

    def _ask_all(self, ask: AskClaims) -> None:
        for place, refusal in enumerate(self._refusals):
            if refusal is None and self._answers[place] is None:
                self._ask(place, ask)

    def _ask(self, place: int, ask: AskClaims) -> Grant | Refusal:
        """Ask a node for its devices and remember what it said."""
        self._work.nodes_asked += 1
        state = self._state(place)
        times = self._work.times
        if times is None or ask is ask_nothing:
            grant = ask(state)
        else:
            grant = times.run(DYNAMIC_RESOURCES, FILTER, ask, state)
        if isinstance(grant, Grant):
            for check in self._last:
                refusal = check(self._shape, state, self._outlook)
                if refusal is not None:
                    self._answers[place] = refusal
                    return refusal
            self._answers[place] = GRANTED
            self._choices[place] = grant.choice_score
        else:
            self._answers[place] = grant
        return grant

    def _state(self, place: int) -> NodeState:
        return self._fleet.nodes[self._names[place]]

    # --- keeping up -----------------------------------------------------------------------------

    def _refresh(self) -> None:
        fleet = self._fleet
        self._outlook = fleet.outlook(self._shape)
        touched = fleet.touched_since(self._touches)
        eased = fleet.eased_since(self._easings)
        if self._epoch != fleet.epoch or touched is None or eased is None or self._is_changed():
            self._begin()
            return
        if fleet.device_touches != self._device_touches:
            self._judge_overdue()
            self._answers = [None] * len(self._names)
            self._device_touches = fleet.device_touches
            self._rebuild_heap()
        self._look_at(touched, eased)
        if self._is_wide and fleet.touches != self._touches:
            self._judge_all()
        self._touches, self._easings = fleet.touches, fleet.easings
        if len(self._heap) > HEAP_FACTOR_MAX * (len(self._names) + 16):
            self._rebuild_heap()

    def _look_at(self, touched: Collection[str], eased: Collection[str]) -> None:
        """Judge the nodes that changed, unless that cannot make a difference."""
        places, answers, refusals = self._places, self._answers, self._refusals
        heap, scores, full = self._heap, self._scores, self._full
        nodes, facts, barred = self._fleet.nodes, self._facts, self._barred
        measure = None if self._work.measured_left else self._measure
        judged = 0
        for name in touched:
            place = places.get(name)
            if place is None:
                continue
            if name in full:
                answers[place] = CANNOT_ALLOCATE
                self._overdue.add(place)
                continue
            if answers[place] is CANNOT_ALLOCATE and name not in eased:
                self._overdue.add(place)
                continue
            answers[place] = None
            state = nodes[name]
            # Most nodes are judged here: a call for each of them would cost more than the rest.
            if measure is None or barred[place] is not None or state.facts is not facts[place]:
                self._judge(place)
                continue
            score = measure(state)
            if score is None:
                self._judge(place)
                continue
            judged += 1
            refusals[place] = None
            scores[place] = score
            heappush(heap, SCORE_TOP - score << PLACE_BITS | place)
        self._work.nodes_judged += judged

    def _judge_overdue(self) -> None:
        for place in self._overdue:
            self._answers[place] = None
            self._judge(place)
        self._overdue.clear()

    def _is_changed(self) -> bool:
        """Return whether other filters apply than when the nodes were judged."""
        first, _ = self._applying()
        return first != self._first

    def _applying(self) -> tuple[tuple[Check, ...], tuple[Check, ...]]:
        rules = [rule for rule in FILTERS if rule.applies(self._shape, self._outlook)]
        self._is_wide = any(rule.is_wide for rule in rules)
        # Those that are fixed stand before all others.
        self._fixed = tuple([rule.check for rule in rules if rule.is_fixed])
        first = tuple([rule.check for rule in rules if rule.plugin not in LAST])
        self._varying = first[len(self._fixed) :]
        return first, tuple([rule.check for rule in rules if rule.plugin in LAST])

    def _begin(self) -> None:
        """Look at every node, for the first time or because all may have changed."""
        fleet = self._fleet
        self._epoch = fleet.epoch
        self._touches, self._easings = fleet.touches, fleet.easings
        self._device_touches = fleet.device_touches
        named = self._shape.node_names
        names = fleet.nodes if named is None else (n for n in named if n in fleet.nodes)
        self._names = sorted(names)
        self._places = {name: place for place, name in enumerate(self._names)}
        self._answers = [None] * len(self._names)
        self._choices = [0] * len(self._names)
        self._first, self._last = self._applying()
        self._own_scores = own_scores(self._shape, self._outlook)
        delegated = fleet.world.delegated
        self._measure = None if self._is_wide else measure_for(self._shape, delegated)
        self._facts = [None] * len(self._names)
        self._barred = [None] * len(self._names)
        self._overdue.clear()
        self._judge_all()

    def _judge_all(self) -> None:
        count = len(self._names)
        self._refusals = [None] * count
        self._scores = [0] * count
        self._heap = []
        if self._measure is None or self._fixed:
            for place in range(count):
                self._judge(place)
        else:
            self._measure_all(self._measure)

    def _measure_all(self, measure: Measure) -> None:
        """Judge every node where nothing but its room counts, without a call for each."""
        nodes, facts, scores = self._fleet.nodes, self._facts, self._scores
        heap = []
        rest = []
        timed = self._work.measured_left
        for place, name in enumerate(self._names):
            state = nodes[name]
            facts[place] = state.facts
            score = measure(state) if place >= timed else None
            if score is None:
                rest.append(place)
            else:
                scores[place] = score
                heap.append(SCORE_TOP - score << PLACE_BITS | place)
        heapify(heap)
        self._heap = heap
        self._work.nodes_judged += len(heap)
        for place in rest:
            self._judge(place)

    def _judge(self, place: int) -> None:
        self._work.nodes_judged += 1
        times = None
        if self._work.measured_left:
            times = self._work.times
            self._work.measured_left -= 1
        shape, outlook = self._shape, self._outlook
        state = self._fleet.nodes[self._names[place]]
        if state.facts is not self._facts[place]:
            self._facts[place] = state.facts
            self._barred[place] = judge(shape, state, outlook, self._fixed, times)
        refusal = self._barred[place]
        score = None
        if refusal is None and self._measure is not None and times is None:
            score = self._measure(state)
        if refusal is None and score is None:
            refusal = judge(shape, state, outlook, self._varying, times)
            if refusal is None:
                score = own_total(shape, state, self._own_scores, times)
        self._refusals[place] = refusal
        if refusal is None:
            assert score is not None
            self._scores[place] = score
            heappush(self._heap, SCORE_TOP - score << PLACE_BITS | place)

    def _rebuild_heap(self) -> None:
        self._heap = [
            SCORE_TOP - self._scores[place] << PLACE_BITS | place
            for place in range(len(self._names))
            if self._may_do(place)
        ]
        heapify(self._heap)


def ask_nothing(state: NodeState) -> Grant:  # noqa: ARG001
    """Return that nothing is needed: the pod has no claims."""
    return NOTHING_NEEDED
