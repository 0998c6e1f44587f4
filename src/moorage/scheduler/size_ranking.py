"""Nodes by their scores for pods of one size, and the choice among them for pods of one kind.

Kinds of pods differ in labels, affinity and claims more often than in how much CPU and memory they
request. Where nothing else counts, the scores of nodes follow from that alone. So all kinds of one
size share them: a node that changed is scored once for the size. What else a kind needs of a node
is found out when the node is the best for it, and remembered.

    # size: what pods request, and what scores count of it
    # unusual: a node whose score follows from more than the size; then nobody shares scores
    # barred: a node that the filters which read nothing but the node reject
    # refused: a node without devices for the claims; it may have some once it is eased
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable
from functools import reduce
from operator import or_

from moorage.allocator.pools import bits
from moorage.scheduler.framework import RankingWork, Unschedulable
from moorage.scheduler.node_info import NodeFacts, NodeInfo
from moorage.scheduler.node_snapshot import NodePlaces, NodeSnapshot
from moorage.scheduler.plugins.dynamic_resources import CANNOT_ALLOCATE, NodeAllocation
from moorage.scheduler.plugins.node_resources import FastPath
from moorage.scheduler.pod_signature import PodSignature
from moorage.scheduler.ranking_indexes import NodesByScore

Ask = Callable[[NodeInfo], NodeAllocation | Unschedulable]
Reject = Callable[[NodeInfo], Unschedulable | None]


def size_of(signature: PodSignature) -> Hashable:
    """Return all that `SizeScores` reads of a signature."""
    requests = signature.requests
    others = tuple(requests.others)
    return requests.milli_cpu, requests.memory, *signature.non_zero_requests, others


class SizeScores:
    """The nodes by their scores for pods of one size."""

    def __init__(self, signature: PodSignature, path: FastPath) -> None:
        self.places = NodePlaces(-1, (), {})
        self.by_score = NodesByScore(0)
        self.unusual: set[str] = set()
        self._touches = 0
        self._path = path
        self._wanted = signature.requests.milli_cpu, signature.requests.memory

    def refresh(self, snapshot: NodeSnapshot, work: RankingWork) -> None:
        """Score the nodes that changed."""
        touched = snapshot.touched_since(self._touches)
        self._touches = snapshot.touches
        if touched is None or self.places is not snapshot.places:
            self.places = snapshot.places
            touched = self.places.names
            self.by_score = NodesByScore(len(touched))
            self.unusual.clear()
        nodes, path, put = snapshot.nodes, self._path, self.by_score.put
        place_of = self.places.place_of
        for name in touched:
            info = nodes.get(name)
            if info is None:
                continue  # Devices may be for nodes that do not exist.
            score = path(info)
            put(place_of[name], score)
            if score is None and not self._is_short(info):
                self.unusual.add(name)
            elif self.unusual:
                self.unusual.discard(name)
        work.nodes_filtered += len(touched)

    def _is_short(self, info: NodeInfo) -> bool:
        """Return whether a node certainly lacks what the pods request."""
        free, (cpu, memory) = info.free, self._wanted
        is_short = (cpu and cpu > free.cpu_free) or (memory and memory > free.memory_free)
        return free.pods_free <= 0 or bool(is_short)


def choice_by_size(
    snapshot: NodeSnapshot, signature: PodSignature, path: FastPath
) -> SizeChoice | None:
    """Return the choice for a signature, all of whose nodes and scores the fast path decides."""
    if signature.node_names is not None:
        return None
    key = size_of(signature), snapshot.inputs.class_resources
    scores = snapshot.size_scores.get(key)
    if scores is None:
        scores = SizeScores(signature, path)
        snapshot.size_scores.put(key, scores, signature.text_bytes)
    return SizeChoice(scores)


class SizeChoice:
    """The choice among the nodes of a size for pods of one kind."""

    def __init__(self, scores: SizeScores) -> None:
        self._scores = scores
        self._places = NodePlaces(-1, (), {})
        self._touches = self._easings = self._device_touches = self._fillings = 0
        self._facts: list[NodeFacts | None] = []  # that the filters have looked at
        self._barred = 0
        self._refused = 0
        self._refused_otherwise = 0  # until the node changes

    @property
    def refused(self) -> Iterable[int]:
        """The places of nodes without devices for the claims, in the order of names."""
        return bits(self._refused)

    def can_choose(self, snapshot: NodeSnapshot, work: RankingWork) -> bool:
        """Take in what changed, and return whether scores follow from the size."""
        self._scores.refresh(snapshot, work)
        self._refresh(snapshot)
        return not self._scores.unusual

    def choose(
        self, snapshot: NodeSnapshot, full: Collection[str], rejected: Reject, ask: Ask
    ) -> tuple[NodeInfo, NodeAllocation] | None:
        """Return the best feasible node and its allocation, or None if there is none."""
        if full and self._fillings != snapshot.fillings:
            self._note_full(snapshot, full)
        while True:
            away = self._barred | self._refused | self._refused_otherwise
            place = self._scores.by_score.best(besides=away)
            if place is None:
                return None
            name, bit = self._places.names[place], 1 << place
            info = snapshot.nodes[name]
            if self._facts[place] is not info.facts:
                self._facts[place] = info.facts
                if rejected(info) is not None:
                    self._barred |= bit
                    continue
            answer = CANNOT_ALLOCATE if name in full else ask(info)
            if isinstance(answer, NodeAllocation):
                return info, answer
            if answer is CANNOT_ALLOCATE:
                self._refused |= bit
            else:
                self._refused_otherwise |= bit

    def _refresh(self, snapshot: NodeSnapshot) -> None:
        touched: Collection[str] | None = ()
        if self._barred or self._refused_otherwise:  # nothing else depends on it
            touched = snapshot.touched_since(self._touches)
        eased = snapshot.eased_since(self._easings)
        self._touches, self._easings = snapshot.touches, snapshot.easings
        if touched is None or eased is None or self._places is not snapshot.places:
            self._places = snapshot.places
            self._facts = [None] * len(self._places.names)
            self._barred = self._refused = self._refused_otherwise = self._fillings = 0
            return
        if self._device_touches != snapshot.device_touches:
            self._device_touches = snapshot.device_touches
            self._refused = self._refused_otherwise = self._fillings = 0
        if eased:
            self._refused &= ~self._mask(eased)
        if touched:
            changed = self._mask(touched)
            self._refused_otherwise &= ~changed
            for place in bits(self._barred & changed):
                if self._facts[place] is not snapshot.nodes[self._places.names[place]].facts:
                    self._barred ^= 1 << place

    def _note_full(self, snapshot: NodeSnapshot, full: Collection[str]) -> None:
        """Take in which nodes were found to have no free device, and still have none."""
        filled = snapshot.filled_since(self._fillings)
        self._fillings = snapshot.fillings
        self._refused |= self._mask(full if filled is None else [n for n in filled if n in full])

    def _mask(self, names: Iterable[str]) -> int:
        place_of = self._places.place_of
        return reduce(or_, [1 << place_of[name] for name in names if name in place_of], 0)
