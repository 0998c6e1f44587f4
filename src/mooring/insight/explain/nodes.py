"""What is behind a node's refusal: amounts, labels, taints, claims that are bound elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from mooring.api.core.node import Node
from mooring.api.core.placement import Toleration
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
from mooring.scheduler.cycle import Attempt, Placed, schedule
from mooring.scheduler.filtering import Survey
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


# ---- from mooring.insight.explain.pod_fixes: Changes to a pod that would give it a node, each tried by scheduling the changed pod.

FIXES_MAX = 6
TAINTS_MAX = 8  # that are tried


class PodFix(Struct, frozen=True):
    """A change that was tried, in words, and the node that the pod would get."""

    text: str
    node: str


def pod_fixes(cluster: Cluster, pod: Pod, survey: Survey) -> Iterator[PodFix]:
    """Give single changes to the pod that would give it a node, the least first."""
    found = 0
    for text, changed in pod_changes(cluster, pod, survey):
        outcome = schedule(cluster, changed)
        if isinstance(outcome, Placed):
            yield PodFix(text, outcome.node)
            found += 1
            if found == FIXES_MAX:
                return


def pod_changes(cluster: Cluster, pod: Pod, survey: Survey) -> Iterator[tuple[str, Pod]]:
    """Give single changes to the pod that may help, in words and as the pod that has them."""
    yield from _tolerating(cluster, pod, survey)
    yield from _asking_less(cluster, pod, survey)
    spec = pod.spec
    for index, constraint in enumerate(spec.topology_spread_constraints):
        rest = _without(spec.topology_spread_constraints, index)
        text = f"remove the spread constraint over {constraint.topology_key}"
        yield text, _with(pod, topology_spread_constraints=rest)
    if spec.node_selector:
        yield "remove the node selector", _with(pod, node_selector={})
    if spec.affinity is not None:
        yield "remove the affinity", _with(pod, affinity=None)


def _tolerating(cluster: Cluster, pod: Pod, survey: Survey) -> Iterator[tuple[str, Pod]]:
    taints: dict[tuple[str, str, str], None] = {}
    for name, refusal in survey.refusals.items():
        if refusal.plugin == tainttoleration.PLUGIN:
            for taint in cluster.fleet.nodes[name].facts.hard_taints:
                taints[taint.key, taint.value, taint.effect] = None
    for key, value, effect in list(taints)[:TAINTS_MAX]:
        toleration = Toleration(key=key, operator="Equal", value=value, effect=effect)
        text = f"tolerate the node taint {key}{f'={value}' if value else ''}:{effect}"
        yield text, _with(pod, tolerations=(*pod.spec.tolerations, toleration))


def _asking_less(cluster: Cluster, pod: Pod, survey: Survey) -> Iterator[tuple[str, Pod]]:
    """Give the pod asking for as much as the roomiest node has left, resource by resource."""
    shape = cluster.shape(pod)
    room: dict[str, int] = {}
    for node, refusal in survey.refusals.items():
        if refusal.plugin != noderesources.PLUGIN:
            continue
        state = cluster.fleet.nodes[node]
        for text in refusal.texts:
            name = text.removeprefix("Insufficient ")
            free = amount(state.facts.allocatable, name) - amount(state.held, name)
            room[name] = max(room.get(name, 0), free)
    for name, free in room.items():
        changed = _lowered(pod, name, amount(shape.asked, name) - free)
        if free > 0 and changed is not None:
            yield f"ask for {shown(free, name)} of {name} at most", changed


def _lowered(pod: Pod, name: str, by: int) -> Pod | None:
    """Return the pod with one container asking for less; None if none asks for so much."""
    for index, container in enumerate(pod.spec.containers):
        asked = container.resources.requests.get(name)
        if asked is None:
            continue
        value = (asked.milli_value if name == "cpu" else asked.value) - by
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
