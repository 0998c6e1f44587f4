"""Which devices slices publish, for which nodes, and which of them cannot be had.

Of a pool the newest generation counts. A device that only older ones have is shown, as one that
nobody can get, and so are all devices of a pool that is incomplete or contradicts itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from typing import NamedTuple

from mooring.allocator.pools import PoolId
from mooring.api.nodeselector import NodeSelector, NodeSelectorRequirement
from mooring.api.quantity import Quantity
from mooring.api.resource.v1 import Device, DeviceTaint, DeviceTaintRule, ResourceSlice

ALL_NODES = "all nodes"
NO_NODES = "no nodes"


class Reach(NamedTuple):
    """Which nodes can use a device: one by name, or several in words."""

    node: str = ""
    several: str = ""


class Offer(NamedTuple):
    """A device as it is published."""

    pool: PoolId
    device: Device
    reach: Reach
    problem: str


class Pool(NamedTuple):
    """The devices of a pool, and what its counters have in all (in nano)."""

    offers: tuple[Offer, ...]
    counters: dict[tuple[str, str], int]  # by counter set and counter


def pools_of(slices: Iterable[ResourceSlice]) -> Iterator[Pool]:
    """Give all pools, by name."""
    found: dict[PoolId, list[ResourceSlice]] = {}
    for slice_ in slices:
        found.setdefault(PoolId(slice_.spec.driver, slice_.spec.pool.name), []).append(slice_)
    for pool_id in sorted(found):
        yield _pool(pool_id, sorted(found[pool_id], key=lambda each: each.metadata.name))


def _pool(pool_id: PoolId, slices: Sequence[ResourceSlice]) -> Pool:
    newest = max(map(_generation, slices))
    current = [each for each in slices if _generation(each) == newest]
    problem = _problem(current)
    offers: dict[str, Offer] = {}
    for slice_ in sorted(slices, key=_generation, reverse=True):
        age = _generation(slice_)
        old = f"only in generation {age}; the pool is at {newest}"
        reason = problem if age == newest else old
        for device in slice_.spec.devices or ():
            reach = _reach(slice_, device)
            offers.setdefault(device.name, Offer(pool_id, device, reach, reason))
    return Pool(tuple(offers.values()), _counters(current))


def _generation(slice_: ResourceSlice) -> int:
    return slice_.spec.pool.generation


def _counters(slices: Iterable[ResourceSlice]) -> dict[tuple[str, str], int]:
    return {
        (counter_set.name, name): counter.value.nano
        for slice_ in slices
        for counter_set in slice_.spec.shared_counters or ()
        for name, counter in counter_set.counters.items()
    }


# --- what is wrong with a pool --------------------------------------------------------------


def _problem(slices: Sequence[ResourceSlice]) -> str:
    """Return why no device of the newest generation can be had."""
    wanted = slices[0].spec.pool.resource_slice_count
    if len(slices) != wanted:
        return f"the pool is incomplete: {len(slices)} of {wanted} slices"
    names = [device.name for slice_ in slices for device in slice_.spec.devices or ()]
    if len(set(names)) < len(names):
        return "the pool is invalid: a device name is there twice"
    known = _counters(slices).keys()
    for slice_ in slices:
        for device in slice_.spec.devices or ():
            if not set(needs_of(device)) <= known:
                return "the pool is invalid: a device takes from counters that are not there"
    return ""


def needs_of(device: Device) -> dict[tuple[str, str], int]:
    """Return what a device takes of counters while it is allocated, in nano."""
    return {
        (consumption.counter_set, name): counter.value.nano
        for consumption in device.consumes_counters
        for name, counter in consumption.counters.items()
    }


# --- nodes ----------------------------------------------------------------------------------


def _reach(slice_: ResourceSlice, device: Device) -> Reach:
    each = device if slice_.spec.per_device_node_selection else slice_.spec
    if each.node_name:
        return Reach(node=each.node_name)
    if each.all_nodes:
        return Reach(several=ALL_NODES)
    if each.node_selector is None:
        return Reach(several=NO_NODES)
    return _reach_of_selector(each.node_selector)


def _reach_of_selector(selector: NodeSelector) -> Reach:
    terms = selector.node_selector_terms or ()
    shown = []
    for term in terms:
        match term.match_fields:
            case (NodeSelectorRequirement("metadata.name", "In", (name,)),) if len(terms) == 1:
                return Reach(node=name)
        requirements = (*term.match_expressions, *term.match_fields)
        shown.append(", ".join(map(_requirement, requirements)))
    return Reach(several=f"nodes with {' or '.join(shown)}" if any(shown) else NO_NODES)


def _requirement(requirement: NodeSelectorRequirement) -> str:
    values = ", ".join(requirement.values)
    match requirement.operator:
        case "In":
            inside = values if len(requirement.values) == 1 else f"({values})"
            return f"{requirement.key}={inside}"
        case "Exists":
            return requirement.key
    return f"{requirement.key} {requirement.operator} {values}".rstrip()


# --- taints ---------------------------------------------------------------------------------


class TaintRules:
    """The taints that rules put on devices, found by what the rules select."""

    def __init__(self, rules: Iterable[DeviceTaintRule]) -> None:
        self._taints: dict[tuple[str | None, ...], list[str]] = {}
        for rule in rules:
            selector = rule.spec.device_selector
            # Selecting by class or expression left Kubernetes; it is not worked out here.
            if selector and not selector.device_class_name and not selector.selectors:
                wanted = (selector.driver, selector.pool, selector.device)
                self._taints.setdefault(wanted, []).append(_taint(rule.spec.taint))

    def of(self, offer: Offer) -> tuple[str, ...]:
        """Return the taints of a device, its own and those of rules, as text."""
        found = [*map(_taint, offer.device.taints)]
        names = (*offer.pool, offer.device.name)
        if self._taints:
            for wanted in product(*((name, None) for name in names)):
                found += self._taints.get(wanted, ())
        return tuple(sorted(set(found)))


def _taint(taint: DeviceTaint) -> str:
    value = f"={taint.value}" if taint.value else ""
    return f"{taint.key}{value}:{taint.effect}"


def capacities_of(device: Device) -> dict[str, Quantity]:
    """Return how much a device has of everything."""
    return {name: capacity.value for name, capacity in device.capacity.items()}
