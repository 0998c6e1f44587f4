"""NodeResourcesFit and NodeResourcesBalancedAllocation: free resources of nodes.

The filter rejects nodes without the resources that a pod requests. Nodes with more free CPU and
memory are better, and so are those whose CPU and memory would be used in more equal parts. An
extended resource that the node does not have, but device classes provide, is left to claims.

`fast_path` does the work of the filter and both scores in one call for pods that request CPU and
memory only. It is there because all kinds of pods look at every node that one of them has changed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence

from msgspec.structs import replace

from moorage.api.names import is_extended_resource
from moorage.scheduler.framework import Unschedulable
from moorage.scheduler.node_info import NodeInfo
from moorage.scheduler.plugins import SCORE_MAX, Filter, FilterStatus, Reads, Score
from moorage.scheduler.pod_signature import PodSignature
from moorage.scheduler.resources import evenness
from moorage.scheduler.topology_state import TopologyState

PLUGIN = "NodeResourcesFit"
BALANCED_PLUGIN = "NodeResourcesBalancedAllocation"
TOO_MANY_PODS = "Too many pods"
HALF = SCORE_MAX // 2

# The plugins that `fast_path` replaces; if any other plugin matters, each one runs.
FAST_PATH_FILTERS = frozenset((PLUGIN,))
FAST_PATH_SCORES = frozenset((PLUGIN, BALANCED_PLUGIN))

# Returns the sum of a node's own scores; None: it is full, or unusual, so the plugins run.
FastPath = Callable[[NodeInfo], int | None]


def filter_node(signature: PodSignature, node: NodeInfo, state: TopologyState) -> FilterStatus:
    """Return all resources that are short: four comparisons, and one for each other resource."""
    requests, requested, facts = signature.requests, node.requested, node.facts
    total = facts.allocatable
    if (
        len(node.pods) < facts.pods_max
        and (not requests.milli_cpu or requests.milli_cpu <= total.milli_cpu - requested.milli_cpu)
        and (not requests.memory or requests.memory <= total.memory - requested.memory)
        and not requests.ephemeral_storage
        and not requests.others
    ):
        return None
    reasons = []
    is_unresolvable = False
    if len(node.pods) >= facts.pods_max:
        reasons.append(TOO_MANY_PODS)
    for name, wanted, there, used in _resources(signature, node, state):
        if wanted > 0 and wanted > there - used:
            reasons.append(f"Insufficient {name}")
            is_unresolvable = is_unresolvable or wanted > there
    return Unschedulable(PLUGIN, tuple(reasons), is_unresolvable) if reasons else None


def fit_filter(resources: Sequence[str], groups: Sequence[str]) -> Filter:
    """Return the filter that does not look at some extended resources, or at groups of them."""
    if not resources and not groups:
        return FILTER
    names, prefixes = frozenset(resources), frozenset(groups)

    def is_ignored(name: str) -> bool:
        is_listed = name in names or name.partition("/")[0] in prefixes
        return is_listed and is_extended_resource(name)

    def filter_others(
        signature: PodSignature, node: NodeInfo, state: TopologyState
    ) -> FilterStatus:
        requests = signature.requests
        others = {n: wanted for n, wanted in requests.others.items() if not is_ignored(n)}
        if len(others) < len(requests.others):
            signature = replace(signature, requests=replace(requests, others=others))
        return filter_node(signature, node, state)

    return FILTER._replace(filter_node=filter_others)


def _resources(
    signature: PodSignature, node: NodeInfo, state: TopologyState
) -> Iterator[tuple[str, int, int, int]]:
    """Yield for each resource its name, the request, the node's total and the used amount."""
    requests, total, requested = signature.requests, node.facts.allocatable, node.requested
    yield "cpu", requests.milli_cpu, total.milli_cpu, requested.milli_cpu
    yield "memory", requests.memory, total.memory, requested.memory
    yield (
        "ephemeral-storage",
        requests.ephemeral_storage,
        total.ephemeral_storage,
        requested.ephemeral_storage,
    )
    for name, wanted in requests.others.items():
        there = total.others.get(name, 0)
        if there > 0 or name not in state.inputs.class_resources:
            yield name, wanted, there, requested.others.get(name, 0)


# --- scores ---------------------------------------------------------------------------------------


def least_allocated(signature: PodSignature, node: NodeInfo) -> int:
    """Return the part of CPU and memory that would be left; a resource it lacks does not count."""
    total, wanted, used = (
        node.facts.allocatable,
        signature.non_zero_requests,
        node.non_zero_requested,
    )
    cpu, memory = total.milli_cpu, total.memory
    cpu_left = cpu - wanted[0] - used[0]
    memory_left = memory - wanted[1] - used[1]
    cpu_score = cpu_left * SCORE_MAX // cpu if cpu_left > 0 else 0
    memory_score = memory_left * SCORE_MAX // memory if memory_left > 0 else 0
    if cpu and memory:
        return (cpu_score + memory_score) // 2
    return cpu_score or memory_score


def balanced_allocation(signature: PodSignature, node: NodeInfo) -> int:
    """Return by how much the pod makes the use of CPU and memory more even, around the middle."""
    requests, total, requested = signature.requests, node.facts.allocatable, node.requested
    cpu_total, memory_total = total.milli_cpu, total.memory
    if cpu_total == 0 or memory_total == 0:
        return HALF + HALF // 2
    milli_cpu, memory = requested.milli_cpu, requested.memory
    before = evenness(milli_cpu, cpu_total, memory, memory_total)
    milli_cpu, memory = milli_cpu + requests.milli_cpu, memory + requests.memory
    after = evenness(milli_cpu, cpu_total, memory, memory_total)
    # Go divides towards zero.
    return HALF + int((HALF + after - before) / 2)


# --- the fast path --------------------------------------------------------------------------------


def fast_path(signature: PodSignature, class_resources: Collection[str]) -> FastPath | None:
    """Return the fast path for a signature; None if it requests anything else.

    Resources that device classes provide may come on top, where the node has none of its own.
    """
    requests = signature.requests
    if requests.ephemeral_storage or any(n not in class_resources for n in requests.others):
        return None
    has_both = requests.milli_cpu or requests.memory
    path = _balanced(signature) if has_both else _unbalanced(signature)
    return _unless_own(path, tuple(requests.others)) if requests.others else path


# Names in the functions below are plain variables, since these are read fastest.


def _unbalanced(signature: PodSignature) -> FastPath:
    """Return the fast path for pods that request neither CPU nor memory."""
    cpu_in_scores, memory_in_scores = signature.non_zero_requests

    def path(node: NodeInfo) -> int | None:
        cpu_free, memory_free, pods_free, cpu_left, memory_left, cpu, memory, _ = node.free
        if pods_free <= 0 or cpu_free < 0 or memory_free < 0 or not cpu or not memory:
            return None
        cpu_left -= cpu_in_scores
        memory_left -= memory_in_scores
        return (
            (cpu_left * SCORE_MAX // cpu if cpu_left > 0 else 0)
            + (memory_left * SCORE_MAX // memory if memory_left > 0 else 0)
        ) // 2

    return path


def _balanced(signature: PodSignature) -> FastPath:
    """Return the fast path for pods that request CPU, memory or both."""
    wanted_cpu, wanted_memory = signature.requests.milli_cpu, signature.requests.memory
    cpu_in_scores, memory_in_scores = signature.non_zero_requests

    def path(node: NodeInfo) -> int | None:
        cpu_free, memory_free, pods_free, cpu_left, memory_left, cpu, memory, even = node.free
        cpu_free -= wanted_cpu
        memory_free -= wanted_memory
        if pods_free <= 0 or cpu_free < 0 or memory_free < 0 or not cpu or not memory:
            return None
        cpu_left -= cpu_in_scores
        memory_left -= memory_in_scores
        gap = (cpu - cpu_free) / cpu - (memory - memory_free) / memory
        after = int((1 - abs(gap / 2)) * SCORE_MAX)
        return (
            (
                (cpu_left * SCORE_MAX // cpu if cpu_left > 0 else 0)
                + (memory_left * SCORE_MAX // memory if memory_left > 0 else 0)
            )
            // 2
            + HALF
            + int((HALF + after - even) / 2)
        )

    return path


def _unless_own(path: FastPath, resources: tuple[str, ...]) -> FastPath:
    """Return a fast path that skips nodes which have one of the resources themselves."""

    def path_with_others(node: NodeInfo) -> int | None:
        if any(map(node.facts.allocatable.others.get, resources)):
            return None
        return path(node)

    return path_with_others


FILTER: Filter = Filter(PLUGIN, filter_node, reads=Reads.NODE | Reads.PODS | Reads.CLASSES)
FIT_SCORE: Score = Score(PLUGIN, 1, least_allocated)
BALANCED_SCORE: Score = Score(
    BALANCED_PLUGIN,
    1,
    balanced_allocation,
    applies=lambda signature, _state: bool(
        signature.requests.milli_cpu or signature.requests.memory
    ),
)
