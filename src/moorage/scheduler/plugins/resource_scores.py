"""Scores of NodeResourcesFit and NodeResourcesBalancedAllocation for any resources and strategy.

The usual strategy, LeastAllocated by CPU and memory, has functions and a fast path of its own in
`node_resources`; everything here is for profiles that say something else.

    # amounts: of one resource on a node: allocatable, in use, and in use with the pod
    # device-backed: an extended resource that devices stand for where the node has none itself

A resource that the node lacks, or an extended one that the pod does not request, does not count.
Which devices are in use changes without the node, so pods with device-backed resources are scored
on all nodes anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import floor, sqrt
from typing import NamedTuple

from moorage.allocator import Inventory
from moorage.allocator.errors import AllocationError
from moorage.allocator.node_view import NodeView
from moorage.api.core.node import Node
from moorage.api.core.resources import CPU, MEMORY
from moorage.api.resource.v1 import DeviceClass
from moorage.api.scheduler_plugin_args import (
    LEAST_ALLOCATED,
    MOST_ALLOCATED,
    ResourceSpec,
    ScoringStrategy,
    UtilizationShapePoint,
)
from moorage.cel.lang.metering import Interrupted
from moorage.scheduler.node_info import NodeInfo, node_amounts
from moorage.scheduler.plugins import SCORE_MAX, Score
from moorage.scheduler.plugins.node_resources import (
    BALANCED_PLUGIN,
    BALANCED_SCORE,
    FIT_SCORE,
    HALF,
    PLUGIN,
)
from moorage.scheduler.pod_signature import PodSignature
from moorage.scheduler.resources import is_scalar
from moorage.scheduler.topology_state import TopologyInputs, TopologyState

SHAPE_SCALE = 10  # points of a shape have scores up to 10
PERCENT = 100
NO_DEVICES = (0, 0)


class Amounts(NamedTuple):
    """One resource of a node that counts."""

    place: int  # among the resources of the plugin
    total: int
    used: int
    wanted: int  # in use with the pod


Judge = Callable[[Sequence[Amounts]], int]
Requests = Callable[[PodSignature], Sequence[int]]


def counts_cpu_and_memory(resources: Sequence[ResourceSpec]) -> bool:
    """Return whether these are just CPU and memory, or the default, which is the same."""
    return not resources or [each.name for each in resources] == [CPU, MEMORY]


def fit_scores(strategy: ScoringStrategy | None) -> tuple[Score, ...]:
    """Return the scores of NodeResourcesFit with a strategy."""
    if strategy is None:
        return (FIT_SCORE,)
    resources = strategy.resources
    is_usual = counts_cpu_and_memory(resources) and all(each.weight == 1 for each in resources)
    if strategy.type == LEAST_ALLOCATED and is_usual:
        return (FIT_SCORE,)
    names = tuple(each.name for each in resources)
    weights = tuple(each.weight for each in resources)
    ratio = strategy.requested_to_capacity_ratio
    judge = _by_shape(() if ratio is None else ratio.shape, weights)
    if strategy.type == LEAST_ALLOCATED:
        judge = _weighted(_least, weights)
    elif strategy.type == MOST_ALLOCATED:
        judge = _weighted(_most, weights)

    def requests(signature: PodSignature) -> Sequence[int]:
        return signature.scored_requests.get(PLUGIN, signature.non_zero_requests)

    return _scores(PLUGIN, _Counting(names, is_non_zero=True), requests, judge)


def balanced_scores(resources: Sequence[ResourceSpec]) -> tuple[Score, ...]:
    """Return the scores of NodeResourcesBalancedAllocation for resources."""
    if counts_cpu_and_memory(resources):
        return (BALANCED_SCORE,)
    names = tuple(each.name for each in resources)

    def requests(signature: PodSignature) -> Sequence[int]:
        return signature.scored_requests.get(BALANCED_PLUGIN, ())

    return _scores(BALANCED_PLUGIN, _Counting(names, is_non_zero=False), requests, _balanced)


def _scores(
    plugin: str, counting: _Counting, requests: Requests, judge: Judge
) -> tuple[Score, ...]:
    """Return a score by the node alone, and one for pods with device-backed resources."""

    def is_backed(signature: PodSignature, state: TopologyState) -> bool:
        return counting.is_backed(requests(signature), state.inputs)

    def applies(signature: PodSignature, _state: TopologyState) -> bool:
        return plugin == PLUGIN or any(requests(signature))

    def score_node(signature: PodSignature, node: NodeInfo) -> int:
        return judge(counting.amounts(requests(signature), node))

    def score_nodes(
        signature: PodSignature, nodes: Sequence[NodeInfo], state: TopologyState
    ) -> list[int] | None:
        if not is_backed(signature, state):
            return None
        wanted = requests(signature)
        return [judge(counting.amounts(wanted, node, state.inputs)) for node in nodes]

    alone = Score(
        plugin,
        1,
        score_node,
        applies=lambda signature, state: (
            applies(signature, state) and not is_backed(signature, state)
        ),
    )
    return alone, Score(plugin, 1, score_nodes=score_nodes, applies=is_backed)


class _Counting(NamedTuple):
    """Which resources count, and how those in use are counted."""

    names: tuple[str, ...]
    is_non_zero: bool  # CPU and memory of pods that request none count by defaults

    def is_backed(self, requests: Sequence[int], inputs: TopologyInputs) -> bool:
        """Return whether devices may stand for some resource that is requested."""
        return any(
            wanted and name in inputs.class_resources
            for name, wanted in zip(self.names, requests, strict=True)
        )

    def amounts(
        self, requests: Sequence[int], node: NodeInfo, inputs: TopologyInputs | None = None
    ) -> list[Amounts]:
        """Return the resources that count on a node; those of devices if there are inputs."""
        found = []
        for place, (name, request) in enumerate(zip(self.names, requests, strict=True)):
            if not request and is_scalar(name):
                continue
            total, used = node_amounts(name, node, is_non_zero=self.is_non_zero)
            if not total and inputs is not None and name in inputs.class_resources:
                total, used = inputs.device_totals(node.facts.name, name)
            if total:
                found.append(Amounts(place, total, used, used + request))
        return found


# --- strategies -----------------------------------------------------------------------------------


def _weighted(part: Callable[[Amounts], int], weights: Sequence[int]) -> Judge:
    """Return the weighted mean of the parts of all resources."""

    def judge(amounts: Sequence[Amounts]) -> int:
        weight = sum([weights[each.place] for each in amounts])
        total = sum([part(each) * weights[each.place] for each in amounts])
        return total // weight if weight else 0

    return judge


def _least(amounts: Amounts) -> int:
    left = amounts.total - amounts.wanted
    return left * SCORE_MAX // amounts.total if left > 0 else 0


def _most(amounts: Amounts) -> int:
    return min(amounts.wanted, amounts.total) * SCORE_MAX // amounts.total


def _by_shape(shape: Sequence[UtilizationShapePoint], weights: Sequence[int]) -> Judge:
    """Return the mean of the shape's values that are not 0, rounded half up."""
    points = [(point.utilization, point.score * SHAPE_SCALE) for point in shape]

    def judge(amounts: Sequence[Amounts]) -> int:
        total = weight = 0
        for each in amounts:
            is_over = each.wanted > each.total
            value = _value(points, PERCENT if is_over else each.wanted * PERCENT // each.total)
            if value > 0:
                total += value * weights[each.place]
                weight += weights[each.place]
        return floor(total / weight + 0.5) if weight else 0

    return judge


def _value(points: Sequence[tuple[int, int]], utilization: int) -> int:
    """Return the value of a function that is linear between points."""
    before: tuple[int, int] | None = None
    for place, score in points:
        if utilization <= place:
            if before is None:
                return score
            start, first = before
            rise = (score - first) * (utilization - start)
            # Go divides towards zero.
            return first + (rise // (place - start) if rise >= 0 else -(-rise // (place - start)))
        before = (place, score)
    return points[-1][1]


def _balanced(amounts: Sequence[Amounts]) -> int:
    """Return by how much the pod makes the use of resources more even, around the middle."""
    after = _evenness([each.wanted / each.total for each in amounts])
    before = _evenness([each.used / each.total for each in amounts])
    return HALF + int((HALF + after - before) / 2)


def _evenness(parts: Sequence[float]) -> int:
    """Return 100 if all are used in equal parts; less by the standard deviation."""
    capped = [min(part, 1.0) for part in parts]
    deviation = 0.0
    if len(capped) == 2:
        deviation = abs((capped[0] - capped[1]) / 2)
    elif len(capped) > 2:
        # Summed one after the other, so that rounding is the same as in Kubernetes.
        mean = _sum(iter(capped)) / len(capped)
        deviation = sqrt(_sum((part - mean) * (part - mean) for part in capped) / len(capped))
    return int((1 - deviation) * SCORE_MAX)


def _sum(parts: Iterator[float]) -> float:
    total = 0.0
    for part in parts:
        total += part
    return total


# --- devices that stand for an extended resource ---------------------------------------------


def device_totals(
    inventory: Inventory, node: Node, device_class: DeviceClass | None
) -> tuple[int, int]:
    """Return how many devices of a class a node has, and how many of these are in use.

    They count as in Kubernetes: tainted or not, and as in use if there are shares of them; a class
    that cannot be asked of some device has none. Only pools that allocation uses count; Kubernetes
    counts slices of incomplete pools and of older generations, too.
    """
    if device_class is None:
        return NO_DEVICES
    try:
        view = inventory.view(node)
        matching = view.all
        if view.by_device:
            on_node, unreadable = view.node_matches
            if unreadable:
                return NO_DEVICES
            matching &= on_node | ~view.by_device
        for selector in device_class.spec.selectors or ():
            if selector.cel is not None:
                found = _selected(view, selector.cel.expression, matching)
                if found is None:
                    return NO_DEVICES
                matching = found
        state = view.allocated
    except (AllocationError, Interrupted):
        return NO_DEVICES
    return matching.bit_count(), (matching & (state.whole | state.shared)).bit_count()


def _selected(view: NodeView, expression: str, asked: int) -> int | None:
    """Return which of the devices an expression selects; None if it fails for one of them."""
    found = 0
    for facts, offset in zip(view.pools, view.offsets, strict=True):
        here = asked >> offset & facts.all
        if here:
            answers = facts.selector(expression)
            answers.ask(here)
            if answers.faulty & here:
                return None
            found |= (answers.yes & here) << offset
    return found
