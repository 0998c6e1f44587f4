"""Limits: why nodes take no more replicas, those that say the same together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from msgspec import Struct

from mooring.insight.explain.nodes import facts_of
from mooring.insight.fit.filling import Refused
from mooring.insight.fit.shortages import Shortage, shortages_of
from mooring.insight.fit.stocks import names_of, problem_on
from mooring.scheduler.claimcheck import CANNOT_ALLOCATE
from mooring.scheduler.cycle import Attempt
from mooring.scheduler.refusals import Refusal


class Full(NamedTuple):
    """What one node says."""

    texts: tuple[str, ...]  # Kubernetes' reasons
    facts: tuple[str, ...] = ()  # what is behind them
    shortages: tuple[Shortage, ...] = ()  # of devices, if that is the reason


class Limit(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """Why some nodes take no more."""

    nodes: tuple[str, ...]
    replicas: int  # that these nodes have taken
    reasons: tuple[str, ...]  # in Kubernetes' words
    facts: tuple[str, ...] = ()
    shortages: tuple[Shortage, ...] = ()

    def __str__(self) -> str:
        """Return it in one line, without the nodes."""
        if self.shortages:
            return "; ".join(map(str, self.shortages))
        reasons = ", ".join(self.reasons)
        return f"{reasons} ({'; '.join(self.facts)})" if self.facts else reasons


Fullness = Mapping[str, Full]  # by node


def fullness_of(refused: Refused) -> Fullness:
    """Return what each node says to the replica that was refused."""
    pending, ready = refused
    names = sorted(pending.survey.refusals)
    if ready is None or pending.survey.obstacle is not None:
        return {}
    found = {name: _full(ready, name, pending.survey.refusals[name]) for name in names}
    elsewhere = pending.survey.elsewhere
    if elsewhere is not None:
        unasked = sorted(set(ready.cluster.fleet.nodes) - found.keys())
        found |= dict.fromkeys(unasked, Full(elsewhere.texts))
    return found


def limits_of(refused: Refused, fullness: Fullness, replicas: Mapping[str, int]) -> list[Limit]:
    """Return why nodes are full, the limit behind the most replicas first."""
    if not fullness:
        return [Limit((), sum(replicas.values()), (refused.pending.reason,))]
    groups: dict[Full, list[str]] = {}
    for node, full in fullness.items():
        groups.setdefault(full, []).append(node)
    found = [
        Limit(tuple(nodes), sum(replicas.get(node, 0) for node in nodes), *full)
        for full, nodes in groups.items()
    ]
    return sorted(found, key=lambda limit: (-limit.replicas, -len(limit.nodes), limit.nodes))


def _full(ready: Attempt, node: str, refusal: Refusal) -> Full:
    if refusal != CANNOT_ALLOCATE:
        facts = facts_of(refusal, ready, ready.cluster.fleet.nodes[node])
        return Full(refusal.texts, tuple(facts))
    problem = problem_on(ready, node)
    if problem is None or not problem.stages:
        return Full(refusal.texts)
    compiler = ready.cluster.inventory.compiler
    return Full(refusal.texts, (), shortages_of(problem, names_of(ready, node), compiler))
