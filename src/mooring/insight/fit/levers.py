"""Levers: changes that let more replicas fit, each tried, with the limit that comes next."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from mooring.api.quantity import Quantity
from mooring.insight.fit.changes import Change
from mooring.insight.fit.filling import Filling
from mooring.insight.fit.limits import Limit, fullness_of, limits_of
from mooring.insight.fit.replicas import Model
from mooring.insight.plan.planner import Progress
from mooring.scheduler.cluster import Cluster

LEVERS_TRIED_MAX = 8
ENOUGH_MIN, ENOUGH_FACTOR = 1_000, 2  # replicas after which a change has shown what it does
PODS_LIFTED = Quantity.from_int(10**6)


class Lever(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """A change, and how many replicas fit with it."""

    text: str
    total: int
    is_more: bool = False  # as many as were tried
    next: Limit | None = None  # what then stops the most replicas


class Runner(NamedTuple):
    """What it takes to try a change."""

    cluster: Cluster  # without replicas
    fill: Callable[[Model], Filling]
    replicas_max: int
    progress: Progress


def levers_of(
    changes: Iterable[Change], total: int, runner: Runner
) -> tuple[tuple[Lever, ...], tuple[Lever, ...]]:
    """Return the changes with which more replicas fit, the best first; and those of no use."""
    enough = max(ENOUGH_MIN, ENOUGH_FACTOR * total)
    runner = runner._replace(replicas_max=min(runner.replicas_max, enough))
    tried = [_tried(change, runner) for change in list(changes)[:LEVERS_TRIED_MAX]]
    helpful = [lever for lever in tried if lever.total > total]
    futile = [lever for lever in tried if lever.total <= total]
    return tuple(sorted(helpful, key=lambda lever: -lever.total)), tuple(futile)


def _tried(change: Change, runner: Runner) -> Lever:
    cluster = runner.cluster
    nodes = [cluster.node(name) for name in cluster.fleet.nodes] if change.lifts_pods else []
    for node in nodes:
        allocatable = {**node.status.allocatable, "pods": PODS_LIFTED}
        cluster.put_node(replace(node, status=replace(node.status, allocatable=allocatable)))
    filling = runner.fill(change.model)
    filling.run(runner.replicas_max, runner.progress)
    lever = _lever(change.text, filling)
    filling.empty()
    for node in nodes:
        cluster.put_node(node)
    return lever


def _lever(text: str, filling: Filling) -> Lever:
    total, refused = len(filling.placed), filling.refused
    if refused is None:
        return Lever(text, total, is_more=True)
    counts = Counter(each.node for each in filling.placed)
    limits = limits_of(refused, fullness_of(refused), counts)
    return Lever(text, total, next=limits[0])
