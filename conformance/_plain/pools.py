"""Which pools a node sees, in the order in which the plain allocator walks them."""

from __future__ import annotations

import re
from collections import defaultdict

from conformance._allocation import Problem
from conformance._plain.model import Failure, Pool
from moorage.api.core.node import Node
from moorage.api.core.placement import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from moorage.api.names import label_name, label_value
from moorage.api.resource.v1 import Device, ResourceSlice, ResourceSliceSpec


def gather_pools(problem: Problem) -> list[Pool]:
    """Return the pools of the node in the order of the search."""
    relevant: defaultdict[tuple[str, str], list[ResourceSlice]] = defaultdict(list)
    for slice_ in sorted(problem.slices, key=lambda slice_: slice_.metadata.name):
        if _is_readable(slice_, problem.features) and _is_for_node(slice_, problem.node):
            relevant[slice_.spec.driver, slice_.spec.pool.name].append(slice_)
    pools = []
    for (driver, name), slices in relevant.items():
        generation = max(slice_.spec.pool.generation for slice_ in slices)
        newest = [s for s in slices if s.spec.pool.generation == generation]
        pool = _build_pool(Pool(driver, name, newest), problem)
        if pool is not None:
            pools.append(pool)
    return sorted(pools, key=lambda pool: (_waits(pool), pool.driver, pool.name))


def _waits(pool: Pool) -> bool:
    """Return whether some device here has binding conditions: such pools come last."""
    return any(device.binding_conditions for device in _devices(pool.here))


def _is_readable(slice_: ResourceSlice, features: frozenset[str]) -> bool:
    """Return whether the features suffice to understand the slice."""
    spec = slice_.spec
    if "PartitionableDevices" not in features and (
        spec.per_device_node_selection is not None or spec.shared_counters
    ):
        return False
    return "CompatibilityGroups" in features or not _uses_groups(slice_)


def _uses_groups(slice_: ResourceSlice) -> bool:
    devices = slice_.spec.devices or ()
    return any(c.compatibility_groups for device in devices for c in device.consumes_counters)


def _build_pool(pool: Pool, problem: Problem) -> Pool | None:
    """Return the pool with its slices sorted out, or None if it is about to be replaced."""
    is_partitionable = "PartitionableDevices" in problem.features
    newest, first = pool.here, pool.here[0].spec.pool
    if len(newest) != first.resource_slice_count:
        whole = [s for s in problem.slices if _pool_name(s) == (pool.driver, pool.name)]
        if any(s.spec.pool.generation > first.generation for s in whole):
            return None
        whole = [s for s in whole if s.spec.pool.generation == first.generation]
        if "CompatibilityGroups" not in problem.features:
            whole = [s for s in whole if not _uses_groups(s)]
        if len(whole) != first.resource_slice_count:
            return Pool(pool.driver, pool.name, is_incomplete=True)
        pool.elsewhere = [s for s in whole if all(s is not n for n in newest)]
    if is_partitionable:
        sets = [c for s in newest + pool.elsewhere for c in s.spec.shared_counters or ()]
        pool.counter_sets = {set_.name: set_ for set_ in sets}
        pool.here = [s for s in newest if not s.spec.shared_counters]
        pool.elsewhere = [s for s in pool.elsewhere if not s.spec.shared_counters]
        pool.is_invalid = len(sets) > len(pool.counter_sets) or not _counters_exist(pool)
    names = [device.name for device in _devices(pool.here)]
    if pool.is_invalid or len(set(names)) < len(names):
        return Pool(pool.driver, pool.name, is_invalid=True)
    return pool


def _pool_name(slice_: ResourceSlice) -> tuple[str, str]:
    return slice_.spec.driver, slice_.spec.pool.name


def _devices(slices: list[ResourceSlice]) -> list[Device]:
    return [device for slice_ in slices for device in slice_.spec.devices or ()]


def _counters_exist(pool: Pool) -> bool:
    return all(
        consumption.counter_set in pool.counter_sets
        and consumption.counters.keys()
        <= pool.counter_sets[consumption.counter_set].counters.keys()
        for device in _devices(pool.here + pool.elsewhere)
        for consumption in device.consumes_counters
    )


# --- nodes --------------------------------------------------------------------------------


def _is_for_node(slice_: ResourceSlice, node: Node) -> bool:
    spec = slice_.spec
    try:
        if spec.node_name or spec.all_nodes or spec.node_selector is not None:
            return matches_node(spec, node)
        if spec.per_device_node_selection:
            return any(matches_node(device, node) for device in spec.devices or ())
    except Failure as failure:
        name = slice_.metadata.name
        text = f"gather pool information: failed to perform node selection for slice {name}"
        raise Failure(f"{text}: {failure}") from None
    return False  # selected in a way that is not known yet


def matches_node(selecting: ResourceSliceSpec | Device, node: Node) -> bool:
    """Return whether a slice, or a device, is for the node."""
    if selecting.node_name:
        return selecting.node_name == node.metadata.name
    if selecting.all_nodes:
        return True
    selector = selecting.node_selector
    if selector is None:
        return False
    terms = [
        term
        for term in selector.node_selector_terms or ()
        if term.match_expressions or term.match_fields
    ]
    for number, term in enumerate(selector.node_selector_terms or ()):
        _check_term(term, selector, f"nodeSelectorTerms[{number}]")
    return any(_term_matches(term, node) for term in terms)


def _term_matches(term: NodeSelectorTerm, node: Node) -> bool:
    labels, name = node.metadata.labels, node.metadata.name
    fields = {"metadata.name": name} if name else {}
    return all(_holds(r, labels.get(r.key)) for r in term.match_expressions) and (
        not fields or all(_holds(r, fields.get(r.key, "")) for r in term.match_fields)
    )


def _holds(requirement: NodeSelectorRequirement, value: str | None) -> bool:
    match requirement.operator:
        case "In":
            return value in requirement.values
        case "NotIn":
            return value not in requirement.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
    number = _int64(value)
    limit = _int64(requirement.values[0])
    if number is None or limit is None:
        return False
    return number > limit if requirement.operator == "Gt" else number < limit


def _int64(text: str | None) -> int | None:
    if text is None or not re.fullmatch(r"[+-]?[0-9]+", text):
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None


_VALUES_BY_OPERATOR = {"In": 1, "NotIn": 1, "Exists": 0, "DoesNotExist": 0, "Gt": 2, "Lt": 2}


def _check_term(term: NodeSelectorTerm, selector: NodeSelector, path: str) -> None:
    """Raise Failure for a term that cannot be read. Of the texts only the first part is right."""
    for number, requirement in enumerate(term.match_expressions):
        place = f"{path}.matchExpressions[{number}]"
        wanted = _VALUES_BY_OPERATOR.get(requirement.operator)
        values = requirement.values
        if wanted is None:
            operators = ", ".join(f'"{operator}"' for operator in _VALUES_BY_OPERATOR)
            reason = f'Unsupported value: "{requirement.operator}": supported values: {operators}'
            raise _unreadable(selector, f"{place}.operator: {reason}")
        if label_name(requirement.key) or any(label_value(value) for value in values):
            raise _unreadable(selector, f"{place}: not a label")
        numbers = len(values) == 1 and _int64(values[0]) is not None
        if not {0: not values, 1: bool(values), 2: numbers}[wanted]:
            raise _unreadable(selector, f"{place}.values: do not fit the operator")
    for number, requirement in enumerate(term.match_fields):
        if requirement.operator not in ("In", "NotIn") or len(requirement.values) != 1:
            raise _unreadable(selector, f"{path}.matchFields[{number}]: cannot be read")


def _unreadable(selector: NodeSelector, reason: str) -> Failure:
    terms = "".join(
        f"NodeSelectorTerm{{MatchExpressions:{_shown(term.match_expressions)},"
        f"MatchFields:{_shown(term.match_fields)},}},"
        for term in selector.node_selector_terms or ()
    )
    shown = f"&NodeSelector{{NodeSelectorTerms:[]NodeSelectorTerm{{{terms}}},}}"
    return Failure(f"failed to parse node selector {shown}: {reason}")


def _shown(requirements: tuple[NodeSelectorRequirement, ...]) -> str:
    inner = "".join(
        f"NodeSelectorRequirement{{Key:{r.key},Operator:{r.operator},"
        f"Values:[{' '.join(r.values)}],}},"
        for r in requirements
    )
    return f"[]NodeSelectorRequirement{{{inner}}}"
