"""Indexes that find the best of the feasible nodes, without a look at every node.

NodesByScore is for scores that a node has by itself.

SpreadRanking is for pods that are spread over a topology. How crowded a node is counts relative to
all other feasible nodes, so one more pod changes the scores of all. But it changes them alike for
nodes that are alike: these have the same score of their own, as many pods, and the same domains.
There are few such classes, however many nodes.

    # alike: what the score of a node depends on, but for counts that all nodes of a domain share
    # members: the nodes that are alike; the first by place is the best of them
    # stale: places whose node changed since it was put
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from heapq import heappop, heappush
from math import log
from typing import NamedTuple

from moorage.scheduler.node_info import NodeInfo
from moorage.scheduler.plugins.pod_topology_spread import crowd_of, reversed_score
from moorage.scheduler.pod_signature import PodSignature
from moorage.scheduler.topology_spread import HOSTNAME
from moorage.scheduler.topology_state import DomainCounts, TopologyState

# Of each constraint: the domain, the number of pods for the host topology, None without a label.
Domains = tuple[str | int | None, ...]


class NodesByScore:
    """The places of nodes by their score; of each score as an integer with the bits of places."""

    __slots__ = ("_by_score", "_listed")

    def __init__(self, count: int) -> None:
        self._listed: list[int | None] = [None] * count
        self._by_score: dict[int, int] = {}

    def put(self, place: int, score: int | None) -> None:
        """List a node by its score; None: by none."""
        by_score, before = self._by_score, self._listed[place]
        if before == score:
            return
        bit = 1 << place
        if before is not None:
            by_score[before] ^= bit
            if not by_score[before]:
                del by_score[before]
        if score is not None:
            by_score[score] = by_score.get(score, 0) | bit
        self._listed[place] = score

    def best(self, besides: int = 0) -> int | None:
        """Return the place of the highest score, the first of equals; None if none is listed.

        Places in the set `besides` do not count.
        """
        by_score = self._by_score
        if not by_score:
            return None
        places = by_score[max(by_score)] & ~besides
        if not places:
            for score in sorted(by_score, reverse=True):
                places = by_score[score] & ~besides
                if places:
                    break
        return (places & -places).bit_length() - 1 if places else None


class _Alike(NamedTuple):
    score: int  # the node's own
    is_counted: bool  # it has all labels that are needed
    domains: Domains


class _Members:
    """Places of nodes that are alike; those that left are skipped when they come first."""

    __slots__ = ("count", "places")

    def __init__(self) -> None:
        self.count = 0
        self.places: list[int] = []


class SpreadRanking:
    """The feasible nodes of a ranking, in classes of nodes that are alike."""

    def __init__(self, signature: PodSignature, places: Iterable[int], *, weight: int) -> None:
        self.stale = set(places)
        self._weight = weight  # of the plugin in scores
        self._needs_all = signature.spread_constraints.needs_all_keys
        self._alike: dict[int, _Alike] = {}  # by place, of feasible nodes
        self._classes: dict[_Alike, _Members] = {}

    def put(self, place: int, node: NodeInfo, state: TopologyState, score: int | None) -> None:
        """Say what a node is like now; it is not feasible if it has no score."""
        before = self._alike.pop(place, None)
        if before is not None:
            members = self._classes[before]
            members.count -= 1
            if not members.count:
                del self._classes[before]
        if score is None:
            return
        domains = tuple(_domain(node, counts) for counts in state.soft_spread)
        is_counted = not self._needs_all or None not in domains
        now = self._alike[place] = _Alike(score, is_counted, domains)
        members = self._classes.setdefault(now, _Members())
        members.count += 1
        heappush(members.places, place)

    def best(self, state: TopologyState) -> list[int]:
        """Return the best place, of equals the first; nothing if no node is feasible."""
        crowds = self._crowds(state)
        least, most = min(crowds.values(), default=0), max(crowds.values(), default=0)
        found: tuple[int, int] | None = None
        for alike, members in self._classes.items():
            spread = reversed_score(crowds.get(alike.domains), least, most)
            total = alike.score + self._weight * (spread if alike.is_counted else 0)
            if found is None or -total <= found[0]:
                each = (-total, self._first(alike, members))
                found = each if found is None else min(found, each)
        return [] if found is None else [found[1]]

    def _crowds(self, state: TopologyState) -> Mapping[Domains, int]:
        """Return how crowded the domains of counted nodes are."""
        counted = [(alike, m.count) for alike, m in self._classes.items() if alike.is_counted]
        nodes = sum(count for _, count in counted)
        weights = [
            log(nodes + 2)
            if counts.constraint.topology_key == HOSTNAME
            else log(len({alike.domains[i] or "" for alike, _ in counted}) + 2)
            for i, counts in enumerate(state.soft_spread)
        ]
        return {
            domains: crowd_of(_pods(domains, state), state.soft_spread, weights)
            for domains in {alike.domains for alike, _ in counted}
        }

    def _first(self, alike: _Alike, members: _Members) -> int:
        places = members.places
        while self._alike.get(places[0]) != alike:
            heappop(places)
        return places[0]


def _domain(node: NodeInfo, counts: DomainCounts) -> str | int | None:
    key = counts.constraint.topology_key
    domain = node.facts.labels.get(key)
    if domain is None or key != HOSTNAME:
        return domain
    return counts.pods_on.get(node.facts.name, 0)


def _pods(domains: Domains, state: TopologyState) -> list[int | None]:
    """Return the pods in the domain of each constraint; None without a label."""
    return [
        counts.pods_in.get(domain, 0) if isinstance(domain, str) else domain
        for domain, counts in zip(domains, state.soft_spread, strict=True)
    ]
