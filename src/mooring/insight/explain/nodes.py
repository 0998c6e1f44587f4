"""What is behind a node's refusal: amounts, labels, taints, claims that are bound elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from mooring.api.core.node import Node
from mooring.api.core.pod import Pod
from mooring.api.quantity import Quantity
from mooring.claims import ClassIndex, pod_requests
from mooring.claims.classindex import is_device_resource
from mooring.insight.messages import full_name, listed, nearest
from mooring.scheduler import claimneeds
from mooring.scheduler.amounts import Amounts
from mooring.scheduler.claimcheck import NOT_AVAILABLE, ClaimCheck
from mooring.scheduler.claimneeds import Held
from mooring.scheduler.cluster import Cluster
from mooring.scheduler.cycle import Attempt
from mooring.scheduler.filters import (
    nodeaffinity,
    noderesources,
    nodeunschedulable,
    tainttoleration,
)
from mooring.scheduler.nodestate import NodeState
from mooring.scheduler.refusals import Refusal

MILLI = "cpu"
INSUFFICIENT = "Insufficient "
IN_BYTES = ("memory", "ephemeral-storage")


def facts_of(refusal: Refusal, ready: Attempt, state: NodeState) -> Iterator[str]:
    """Give the facts that a refusal stands on."""
    match refusal.plugin:
        case noderesources.PLUGIN:
            yield from _amounts(refusal, ready, state)
        case nodeaffinity.PLUGIN:
            yield from _labels(ready.pod, state)
        case nodeunschedulable.PLUGIN:
            yield "the node is cordoned: spec.unschedulable is true"
        case tainttoleration.PLUGIN:
            yield from _taints(ready, state)
        case claimneeds.PLUGIN if ready.check is not None:
            yield from _amounts_with_devices(refusal, ready, state)
            if refusal == NOT_AVAILABLE:
                yield from _held(ready.check.needs.held, ready.cluster)
            yield from _extended(ready.check, ready.cluster.node(state.facts.name))


def _taints(ready: Attempt, state: NodeState) -> Iterator[str]:
    for taint in state.facts.hard_taints:
        if not ready.shape.tolerations.tolerate_all((taint,)):
            value = f"={taint.value}" if taint.value else ""
            yield f"taint {taint.key}{value}:{taint.effect} is not tolerated"


def _held(claims: Iterable[Held], cluster: Cluster) -> Iterator[str]:
    """Give where the devices that claims have already can be used."""
    for held in claims:
        name = full_name(held.claim)
        if held.is_lost:
            yield f"claim {name} has devices that failed, and must be allocated anew"
            continue
        nodes = [node for node in cluster.fleet.nodes if held.is_within_reach(cluster.node(node))]
        where = f"only on {listed(nodes)}" if nodes else "on no node that is here"
        yield f"claim {name} has devices already, which can be used {where}"


def _extended(check: ClaimCheck, node: Node) -> Iterator[str]:
    """Give what requests stand for that nobody has written."""
    found = check.extended_on(node)
    for mapping in found.mappings if found is not None else ():
        yield (
            f"request {mapping.request_name} is what container {mapping.container_name} asks for "
            f"of {mapping.resource_name}"
        )


def _amounts(refusal: Refusal, ready: Attempt, state: NodeState) -> Iterator[str]:
    for text in refusal.texts:
        if text == noderesources.TOO_MANY_PODS:
            yield f"{len(state.pods)} pods are there, {state.facts.pods_max} may be"
            continue
        name = text.removeprefix(INSUFFICIENT)
        total, held = amount(state.facts.allocatable, name), amount(state.held, name)
        asked = shown(amount(ready.shape.asked, name), name)
        yield f"{name}: {asked} asked for, {shown(total - held, name)} of {shown(total, name)} free"
        if not total and is_device_resource(name):
            yield from _unbacked(name, ready.cluster.index, state)


def _unbacked(name: str, index: ClassIndex, state: NodeState) -> Iterator[str]:
    """Say of an extended resource that nothing stands behind it."""
    if index.class_for(name) is not None:
        return
    near = nearest(name, (*index.resources(), *state.facts.allocatable.others))
    hint = f"; did you mean {near}?" if near else ""
    yield f"no device class and no device plugin of the node has {name}{hint}"


def _amounts_with_devices(refusal: Refusal, ready: Attempt, state: NodeState) -> Iterator[str]:
    """Give what a pod asks for itself, and what of the node comes with its devices."""
    short = [text for text in refusal.texts if text.startswith(INSUFFICIENT)]
    if not short or ready.check is None:
        return
    comes = ready.check.coming_with(ready.cluster.node(state.facts.name))
    alone, together = pod_requests(ready.pod), pod_requests(ready.pod, comes)
    for text in short:
        name = text.removeprefix(INSUFFICIENT)
        own, with_devices = (_base(asked.get(name), name) for asked in (alone, together))
        total, held = amount(state.facts.allocatable, name), amount(state.held, name)
        yield (
            f"{name}: {shown(own, name)} asked for and {shown(with_devices - own, name)} for the "
            f"pod's devices, {shown(total - held, name)} of {shown(total, name)} free"
        )


def _base(asked: Quantity | None, name: str) -> int:
    """Return an amount in base units."""
    if asked is None:
        return 0
    return asked.milli_value if name == MILLI else asked.value


def _labels(pod: Pod, state: NodeState) -> Iterator[str]:
    labels = state.facts.labels
    for key, value in sorted(pod.spec.node_selector.items()):
        if labels.get(key) != value:
            yield f"the node selector wants {key}={value}, the node has {_label(labels.get(key))}"
    affinity = pod.spec.affinity and pod.spec.affinity.node_affinity
    required = affinity and affinity.required_during_scheduling_ignored_during_execution
    for term in required.node_selector_terms or () if required else ():
        for wanted in term.match_expressions:
            rule = " ".join((wanted.key, wanted.operator, ", ".join(wanted.values))).strip()
            yield f"the node affinity wants {rule}, the node has {_label(labels.get(wanted.key))}"


def _label(value: str | None) -> str:
    return "no such label" if value is None else f'"{value}"'


def amount(amounts: Amounts, name: str) -> int:
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
    """Return an amount in base units as people write it."""
    if name == MILLI:
        return Quantity.from_milli(value)
    return Quantity.from_int(value)


def shown(value: int, name: str) -> str:
    """Return an amount in few characters: 15500m, 64Gi."""
    if name in IN_BYTES or name.startswith("hugepages-"):
        for unit, size in (("Ti", 2**40), ("Gi", 2**30), ("Mi", 2**20), ("Ki", 2**10)):
            if abs(value) >= size:
                return f"{value / size:.4g}{unit}"
    return str(quantity(value, name))
