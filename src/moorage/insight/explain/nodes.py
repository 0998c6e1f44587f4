"""Why nodes reject a pod: `NodeProbe`, the one entry point for asking a node.

    NodeProbe ─┬─ probe(node)          the claims filter, as the scheduler's survey calls it
               ├─ facts(name, …)       amounts, labels, taints and claims behind a rejection
               ├─ problem(name)        the allocation problem of the claims on it
               ├─ device_counts(name)  how many devices each request finds
               ├─ lack(name)           how far it is from having them
               └─ diagnose(name, …)    why the claims cannot be allocated there

`pod_changes` are changes to the pod itself; changes to claims belong to their diagnosis.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any

from msgspec.structs import replace

from moorage.allocator import AllocationFailed, Unsatisfied
from moorage.allocator.allocation import Budget, allocate_prepared, prepare
from moorage.allocator.errors import AllocationError
from moorage.allocator.problem import Problem
from moorage.api.core.placement import Toleration
from moorage.api.core.pod import Pod
from moorage.api.core.resources import HUGE_PAGES_PREFIX
from moorage.api.quantity import Format, Quantity
from moorage.api.resource.v1 import ResourceClaim
from moorage.claims import DeviceClassIndex, pod_requests
from moorage.claims.extended_resources import is_device_resource
from moorage.insight.explain.diagnosis import Diagnosis, diagnose_claims
from moorage.insight.explain.funnel import Missing, found_devices, missing_devices
from moorage.insight.explain.trials import Effort
from moorage.insight.messages import full_name, listed, natural_order, similar_hint, taint_text
from moorage.scheduler import framework
from moorage.scheduler.cluster import Cluster
from moorage.scheduler.diagnosis import FitDiagnosis
from moorage.scheduler.framework import Unschedulable
from moorage.scheduler.node_info import NodeInfo
from moorage.scheduler.plugins import (
    node_affinity,
    node_filters,
    node_resources,
    taint_toleration,
)
from moorage.scheduler.plugins.claim_needs import AllocatedNeed
from moorage.scheduler.plugins.dynamic_resources import NOT_AVAILABLE, NodeAllocation
from moorage.scheduler.resources import ResourceAmounts
from moorage.scheduler.scheduling_cycle import Attempt

MILLI = "cpu"
INSUFFICIENT = "Insufficient "
IN_BYTES = ("memory", "ephemeral-storage")
TAINTS_MAX = 8  # that are tried

DeviceShape = tuple[tuple[str, int, int], ...]  # driver, devices and taken ones, of each pool
DeviceCounts = tuple[int, ...]  # devices that each request finds; () if the claims fit


class NodeProbe:
    """Asks nodes about one pod, and remembers the node that it asked last."""

    def __init__(self, ready: Attempt) -> None:
        self.last = ""
        self._ready = ready
        self._cluster = ready.cluster

    def __call__(self, state: NodeInfo) -> NodeAllocation | Unschedulable:
        """Ask a node for devices, as the scheduler's survey does."""
        self.last = state.facts.name
        return self._ready.filter_claims(state)

    def claims(self, name: str) -> Sequence[ResourceClaim]:
        """Return the claims that still need devices if the pod goes to a node."""
        check = self._ready.claims
        return check.claims_on(self._cluster.node(name)) if check is not None else ()

    def facts(self, name: str, rejection: Unschedulable) -> Iterator[str]:
        """Yield the facts behind a rejection by a node."""
        ready, state = self._ready, self._cluster.snapshot.nodes[name]
        match rejection.plugin:
            case node_resources.PLUGIN:
                yield from _amounts(rejection, ready, state)
            case node_affinity.PLUGIN:
                yield from _labels(ready.pod, state)
            case node_filters.CORDONED.plugin:
                yield "the node is cordoned: spec.unschedulable is true"
            case taint_toleration.PLUGIN:
                yield from _taints(ready, state)
            case framework.DYNAMIC_RESOURCES if ready.claims is not None:
                yield from _amounts_with_devices(rejection, ready, state)
                if rejection == NOT_AVAILABLE:
                    yield from _held(ready.claims.needs.allocated, ready.cluster)
                yield from self._extended_resources(name)

    def _extended_resources(self, name: str) -> Iterator[str]:
        """Yield the extended resources behind requests that Kubernetes generates."""
        check = self._ready.claims
        found = check.extended_on(self._cluster.node(name)) if check is not None else None
        for mapping in found.mappings if found is not None else ():
            yield (
                f"request {mapping.request_name} is what container {mapping.container_name} asks "
                f"for of {mapping.resource_name}"
            )

    def problem(self, name: str) -> Problem | None:
        """Return the pod's allocation problem on a node; None if empty or unreadable."""
        claims, inventory = self.claims(name), self._cluster.inventory
        if not claims:
            return None
        try:
            return inventory.problem(self._cluster.node(name), inventory.plan(claims))
        except AllocationError:
            return None

    def shape(self, name: str) -> DeviceShape:
        """Return how many devices the pools of a node have, and how many of them are taken."""
        inventory = self._cluster.inventory
        devices: dict[tuple[str, str], int] = {}
        for each in inventory.slices_around(name):
            pool = (each.spec.driver, each.spec.pool.name)
            devices[pool] = devices.get(pool, 0) + len(each.spec.devices or ())
        taken = inventory.ledger.taken
        return tuple((pool[0], count, len(taken(pool))) for pool, count in devices.items())

    def device_counts(self, name: str, budget: Budget) -> DeviceCounts:
        """Return how many devices each request finds on a node that cannot serve them all."""
        claims = self.claims(name)
        if not claims:
            return ()
        node, inventory = self._cluster.node(name), self._cluster.inventory
        wanted = prepare(inventory, claims)
        with suppress(AllocationError):  # which the search reports
            if inventory.is_infeasible(node, wanted.plan):  # The scheduler has just asked.
                return found_devices(inventory.problem(node, wanted.plan))
        match allocate_prepared(inventory, node, wanted, budget=budget):
            case Unsatisfied(problem=problem):
                return found_devices(problem)
            case AllocationFailed():
                return (1,)
        return ()

    def lack(self, name: str) -> Missing:
        """Return what a node lacks for the claims."""
        problem = self.problem(name)
        return Missing() if problem is None else missing_devices(problem)

    def shortfall(self, name: str, rejection: Unschedulable) -> int:
        """Return how much of the amounts that a pod requests a node has not, in percent of each."""
        if rejection.plugin != node_resources.PLUGIN:
            return 0
        state, requested = self._cluster.snapshot.nodes[name], self._ready.signature.requests
        found = 0
        for text in rejection.reasons:
            resource = text.removeprefix(INSUFFICIENT)
            wanted, total = amount(requested, resource), amount(state.facts.allocatable, resource)
            missing = wanted - total + amount(state.requested, resource)
            never = 100 * (wanted > total)  # A node that has it, once others leave, is nearer.
            found += never + (100 * missing // wanted if wanted else 100)
        return found

    @property
    def all_nodes(self) -> Iterable[str]:
        """The names of all nodes, those included that were not asked."""
        return self._cluster.snapshot.nodes

    def diagnose(self, name: str, effort: Callable[[], Effort]) -> Diagnosis | None:
        """Return why the pod's claims cannot be allocated on a node; None if they can."""
        claims = self.claims(name)
        if not claims:
            return None
        return diagnose_claims(
            self._cluster.inventory,
            self._cluster.node(name),
            claims,
            fleet_devices=self._devices_count,
            effort=effort,
        )

    @cached_property
    def _devices_count(self) -> int:
        return self._cluster.inventory.devices_count  # the same for every node


# --- facts behind rejections --------------------------------------------------------------


def _taints(ready: Attempt, state: NodeInfo) -> Iterator[str]:
    for taint in state.facts.hard_taints:
        if not ready.signature.tolerations.tolerate_all((taint,)):
            yield f"taint {taint_text(taint.key, taint.value, taint.effect)} is not tolerated"


def _held(claims: Iterable[AllocatedNeed], cluster: Cluster) -> Iterator[str]:
    """Yield the nodes on which the devices of allocated claims can be used."""
    for held in claims:
        name = full_name(held.claim)
        if held.is_lost:
            yield f"claim {name} has devices that failed, and must be allocated anew"
            continue
        nodes = [
            node for node in cluster.snapshot.nodes if held.is_within_reach(cluster.node(node))
        ]
        ordered = sorted(nodes, key=natural_order)
        where = f"only on {listed(ordered)}" if nodes else "on no node that is here"
        yield f"claim {name} has devices already, which can be used {where}"


def _amounts(rejection: Unschedulable, ready: Attempt, state: NodeInfo) -> Iterator[str]:
    for text in rejection.reasons:
        if text == node_resources.TOO_MANY_PODS:
            yield f"{len(state.pods)} pods are there, {state.facts.pods_max} may be"
            continue
        name = text.removeprefix(INSUFFICIENT)
        requested = shown(amount(ready.signature.requests, name), name)
        yield f"{name}: {requested} asked for, {_free(state, name)} free"
        if not amount(state.facts.allocatable, name) and is_device_resource(name):
            yield from _unbacked(name, ready.cluster.index, state)


def _free(state: NodeInfo, name: str) -> str:
    total = amount(state.facts.allocatable, name)
    return f"{shown(total - amount(state.requested, name), name)} of {shown(total, name)}"


def _unbacked(name: str, index: DeviceClassIndex, state: NodeInfo) -> Iterator[str]:
    """Yield the extended resources that neither a class nor a device plugin provides."""
    if index.class_for(name) is not None:
        return
    hint = similar_hint(name, (*index.resources(), *state.facts.allocatable.others))
    yield f"no device class and no device plugin of the node has {name}{hint}"


def _amounts_with_devices(
    rejection: Unschedulable, ready: Attempt, state: NodeInfo
) -> Iterator[str]:
    """Yield the pod's own requests, and the node resources that its devices use."""
    short = [text for text in rejection.reasons if text.startswith(INSUFFICIENT)]
    if not short or ready.claims is None:
        return
    comes = ready.claims.coming_with(ready.cluster.node(state.facts.name))
    alone, together = pod_requests(ready.pod), pod_requests(ready.pod, comes)
    for text in short:
        name = text.removeprefix(INSUFFICIENT)
        own, with_devices = (_base(requests.get(name), name) for requests in (alone, together))
        yield (
            f"{name}: {shown(own, name)} asked for and {shown(with_devices - own, name)} for the "
            f"pod's devices, {_free(state, name)} free"
        )


def _base(requested: Quantity | None, name: str) -> int:
    """Return an amount in base units."""
    if requested is None:
        return 0
    return requested.milli_value if name == MILLI else requested.value


def _labels(pod: Pod, state: NodeInfo) -> Iterator[str]:
    labels = state.facts.labels
    for key, value in sorted(pod.spec.node_selector.items()):
        if labels.get(key) != value:
            yield f"the node selector wants {key}={value}, the node has {_label(labels.get(key))}"
    affinity = pod.spec.affinity and pod.spec.affinity.node_affinity
    required = affinity and affinity.required_during_scheduling_ignored_during_execution
    for term in required.node_selector_terms or () if required else ():
        for each in term.match_expressions:
            rule = " ".join((each.key, each.operator, ", ".join(each.values))).strip()
            yield f"the node affinity wants {rule}, the node has {_label(labels.get(each.key))}"


def _label(value: str | None) -> str:
    return "no such label" if value is None else f'"{value}"'


# --- amounts ------------------------------------------------------------------------------


def amount(amounts: ResourceAmounts, name: str) -> int:
    """Return how much there is of a resource, in base units."""
    match name:
        case "cpu":
            return amounts.milli_cpu
        case "memory":
            return amounts.memory
        case "ephemeral-storage":
            return amounts.ephemeral_storage
        case _:
            return amounts.others.get(name, 0)


def quantity(value: int, name: str) -> Quantity:
    """Return an amount in base units as a quantity."""
    if name == MILLI:
        return Quantity.from_milli(value)
    is_binary = is_in_bytes(name) and value % 2**20 == 0
    return Quantity.from_int(value, Format.BINARY_SI if is_binary else Format.DECIMAL_SI)


def is_in_bytes(name: str) -> bool:
    """Return whether amounts of a resource are bytes."""
    return name in IN_BYTES or name.startswith(HUGE_PAGES_PREFIX)


def shown(value: int, name: str) -> str:
    """Return an amount in few characters: 15500m, 64Gi."""
    if is_in_bytes(name):
        for unit, size in (("Ti", 2**40), ("Gi", 2**30), ("Mi", 2**20), ("Ki", 2**10)):
            if abs(value) >= size:
                return f"{value / size:.4g}{unit}"
    return str(quantity(value, name))


# --- changes to the pod -------------------------------------------------------------------


def pod_changes(cluster: Cluster, pod: Pod, survey: FitDiagnosis) -> Iterator[tuple[str, Pod]]:
    """Yield single changes to the pod that may help, as text and as the changed pod."""
    yield from _tolerating(cluster, pod, survey)
    yield from _requesting_less(cluster, pod, survey)
    spec = pod.spec
    for index, constraint in enumerate(spec.topology_spread_constraints):
        rest = _without(spec.topology_spread_constraints, index)
        text = f"remove the spread constraint over {constraint.topology_key}"
        yield text, _with(pod, topology_spread_constraints=rest)
    if spec.node_selector:
        yield "remove the node selector", _with(pod, node_selector={})
    if spec.affinity is not None:
        yield "remove the affinity", _with(pod, affinity=None)


def _tolerating(cluster: Cluster, pod: Pod, survey: FitDiagnosis) -> Iterator[tuple[str, Pod]]:
    taints: dict[tuple[str, str, str], None] = {}
    for name, rejection in survey.node_to_status.items():
        if rejection.plugin == taint_toleration.PLUGIN:
            for taint in cluster.snapshot.nodes[name].facts.hard_taints:
                taints[taint.key, taint.value, taint.effect] = None
    for key, value, effect in list(taints)[:TAINTS_MAX]:
        toleration = Toleration(key=key, operator="Equal", value=value, effect=effect)
        text = f"tolerate the node taint {taint_text(key, value, effect)}"
        yield text, _with(pod, tolerations=(*pod.spec.tolerations, toleration))


def _requesting_less(cluster: Cluster, pod: Pod, survey: FitDiagnosis) -> Iterator[tuple[str, Pod]]:
    """Yield the pod with a request lowered to the most that any node has left, one by one."""
    requested = cluster.signature(pod).requests
    most_free: dict[str, int] = {}
    for node, rejection in survey.node_to_status.items():
        if rejection.plugin != node_resources.PLUGIN:
            continue
        state = cluster.snapshot.nodes[node]
        for text in rejection.reasons:
            name = text.removeprefix(INSUFFICIENT)
            free = amount(state.facts.allocatable, name) - amount(state.requested, name)
            most_free[name] = max(most_free.get(name, 0), free)
    for name, free in most_free.items():
        changed = _lowered(pod, name, amount(requested, name) - free)
        if free > 0 and changed is not None:
            yield f"ask for {shown(free, name)} of {name} at most", changed


def _lowered(pod: Pod, name: str, by: int) -> Pod | None:
    """Return the pod with one container requesting less; None if none requests that much."""
    for index, container in enumerate(pod.spec.containers):
        requested = container.resources.requests.get(name)
        if requested is None:
            continue
        value = _base(requested, name) - by
        if value > 0:
            requests = {**container.resources.requests, name: quantity(value, name)}
            lowered = replace(container, resources=replace(container.resources, requests=requests))
            containers = (*pod.spec.containers[:index], lowered, *pod.spec.containers[index + 1 :])
            return _with(pod, containers=containers)
    return None


def _with(pod: Pod, **changes: Any) -> Pod:
    return replace(pod, spec=replace(pod.spec, **changes))


def _without(items: tuple[Any, ...], index: int) -> tuple[Any, ...]:
    return (*items[:index], *items[index + 1 :])
