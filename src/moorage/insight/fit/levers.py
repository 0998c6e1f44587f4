"""Levers: changes that let more replicas fit, each tried, with the limit that comes next.

The rejection of the last replica decides which changes to the pod, to its claims or to all nodes
are worth a try. Only trials count.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from moorage.api.core.pod import Container, Pod
from moorage.api.quantity import Quantity
from moorage.api.resource.v1 import DeviceRequest, DeviceToleration, ResourceClaimTemplate
from moorage.claims import is_device_resource
from moorage.insight.explain.nodes import INSUFFICIENT, pod_changes
from moorage.insight.fit.device_supply import OF_CLAIM
from moorage.insight.fit.limits import (
    Limit,
    Shortage,
    fullness_alike,
    fullness_of,
    grouped,
    limits_of,
)
from moorage.insight.fit.replicas import Model, ReplicaFiller, UnplacedReplica
from moorage.insight.plan.planner import Progress
from moorage.scheduler.cluster import Cluster
from moorage.scheduler.plugins.node_resources import TOO_MANY_PODS

LEVERS_TRIED_MAX = 8
ENOUGH_MIN, ENOUGH_FACTOR = 1_000, 2  # replicas after which a change has proved itself
PODS_LIFTED = Quantity.from_int(10**6)


class Lever(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """A change, and how many replicas fit with it."""

    text: str
    total: int
    is_more: bool = False  # as many as were tried
    next: Limit | None = None  # what then stops the most replicas


class Runner(NamedTuple):
    """The inputs for trying a change."""

    cluster: Cluster  # without replicas
    fill: Callable[[Model], ReplicaFiller]
    replicas_max: int
    progress: Progress


def levers_of(
    changes: Iterable[ReplicaChange], total: int, runner: Runner
) -> tuple[tuple[Lever, ...], tuple[Lever, ...]]:
    """Return the changes with which more replicas fit, the best first, and the others."""
    enough = max(ENOUGH_MIN, ENOUGH_FACTOR * total)
    runner = runner._replace(replicas_max=min(runner.replicas_max, enough))
    tried = [_tried(change, runner) for change in list(changes)[:LEVERS_TRIED_MAX]]
    helpful = [lever for lever in tried if lever.total > total]
    futile = [lever for lever in tried if lever.total <= total]
    return tuple(sorted(helpful, key=lambda lever: -lever.total)), tuple(futile)


def _tried(change: ReplicaChange, runner: Runner) -> Lever:
    cluster = runner.cluster
    nodes = [cluster.node(name) for name in cluster.snapshot.nodes] if change.lifts_pods else []
    for node in nodes:
        allocatable = {**node.status.allocatable, "pods": PODS_LIFTED}
        cluster.put_node(replace(node, status=replace(node.status, allocatable=allocatable)))
    filler = runner.fill(change.model)
    lever = _of_kinds(change.text, filler, runner)
    if lever is None:
        filler.run(runner.replicas_max, runner.progress, in_any_order=True)
        lever = _lever(change.text, filler)
    filler.empty()
    for node in nodes:
        cluster.put_node(node)
    return lever


def _of_kinds(text: str, filler: ReplicaFiller, runner: Runner) -> Lever | None:
    """Return the change, if one node of each kind is enough to judge it."""
    found = filler.run_kinds(runner.replicas_max, runner.progress)
    if found is None:
        return None
    total = sum(found.counts.values())
    if total >= runner.replicas_max:
        return Lever(text, runner.replicas_max, is_more=True)
    limits = grouped(fullness_alike(found.ready, found.rejections, found.filled), found.counts)
    return Lever(text, total, next=limits[0])


def _lever(text: str, filler: ReplicaFiller) -> Lever:
    total, refused = len(filler.placed), filler.refused
    if refused is None:
        return Lever(text, total, is_more=True)
    counts = Counter(each.node for each in filler.placed)
    limits = limits_of(refused, fullness_of(refused), counts)
    return Lever(text, total, next=limits[0])


class ReplicaChange(NamedTuple):
    """A change as text, and the changed model."""

    text: str
    model: Model
    lifts_pods: bool = False  # nodes may have any number of pods


def changes_of(
    model: Model, refused: UnplacedReplica, limits: Sequence[Limit]
) -> Iterator[ReplicaChange]:
    """Yield the changes that may help; the cluster must still be full."""
    reasons = dict.fromkeys(text for limit in limits for text in limit.reasons)
    for text in reasons:
        if text == TOO_MANY_PODS:
            yield ReplicaChange("with more pods allowed on the nodes", model, lifts_pods=True)
        elif text.startswith(INSUFFICIENT):
            name = text.removeprefix(INSUFFICIENT)
            yield ReplicaChange(
                f"with more {name} on the nodes", replace(model, pod=_stripped(model.pod, {name}))
            )
    short = [each for limit in limits for each in limit.shortages]
    if short:
        yield from _of_claims(model, short)
    if refused.ready is not None:
        survey = refused.pending.diagnosis
        for text, pod in pod_changes(refused.ready.cluster, refused.ready.pod, survey):
            yield ReplicaChange(text, replace(model, pod=replace(model.pod, spec=pod.spec)))


def _of_claims(model: Model, short: Sequence[Shortage]) -> Iterator[ReplicaChange]:
    yield ReplicaChange(
        "with more devices on the nodes", replace(model, pod=_without_devices(model.pod))
    )
    for template in model.templates:
        yield from _without_constraints(model, template)
    usable: dict[str, int] = {}
    for each in short:
        request = each.request.partition(OF_CLAIM)[0]
        if each.usable < each.wanted:
            usable[request] = max(usable.get(request, 0), each.usable)
    for request, count in usable.items():
        yield from _with_fewer(model, request, count)
    if any(each.tainted for each in short):
        templates = tuple(map(_tolerating, model.templates))
        yield ReplicaChange("tolerating the taints of devices", replace(model, templates=templates))


def _without_constraints(model: Model, template: ResourceClaimTemplate) -> Iterator[ReplicaChange]:
    constraints = template.spec.spec.devices.constraints
    for index, constraint in enumerate(constraints):
        rest = (*constraints[:index], *constraints[index + 1 :])
        attribute = constraint.match_attribute or constraint.distinct_attribute
        text = f"without the constraint on {attribute}"
        yield ReplicaChange(text, _with_template(model, template, constraints=rest))


def _with_fewer(model: Model, name: str, usable: int) -> Iterator[ReplicaChange]:
    """Yield the request lowered to the best node's remaining amount, or by one."""
    for template in model.templates:
        requests = template.spec.spec.devices.requests or ()
        for index, request in enumerate(requests):
            exactly = request.exactly
            is_counted = exactly is not None and exactly.allocation_mode == "ExactCount"
            if request.name != name or exactly is None or not is_counted or exactly.count < 2:
                continue
            count = min(usable, exactly.count - 1) or exactly.count - 1
            fewer = replace(request, exactly=replace(exactly, count=count))
            changed = (*requests[:index], fewer, *requests[index + 1 :])
            text = f"with {count} instead of {exactly.count} for request {name}"
            yield ReplicaChange(text, _with_template(model, template, requests=changed))


def _tolerating(template: ResourceClaimTemplate) -> ResourceClaimTemplate:
    requests = template.spec.spec.devices.requests or ()
    return _changed(template, requests=tuple(map(_tolerant, requests)))


def _tolerant(request: DeviceRequest) -> DeviceRequest:
    every = DeviceToleration(operator="Exists")
    exactly = request.exactly
    if exactly is not None:
        exactly = replace(exactly, tolerations=(*exactly.tolerations, every))
    alternatives = tuple(
        replace(each, tolerations=(*each.tolerations, every)) for each in request.first_available
    )
    return replace(request, exactly=exactly, first_available=alternatives)


def _with_template(model: Model, template: ResourceClaimTemplate, **devices: Any) -> Model:
    changed = _changed(template, **devices)
    templates = tuple(changed if each is template else each for each in model.templates)
    return replace(model, templates=templates)


def _changed(template: ResourceClaimTemplate, **changes: Any) -> ResourceClaimTemplate:
    claim = template.spec.spec
    claim = replace(claim, devices=replace(claim.devices, **changes))
    return replace(template, spec=replace(template.spec, spec=claim))


def _without_devices(pod: Pod) -> Pod:
    """Return the pod without claims and without resources that devices may serve."""
    names = {
        name
        for container in (*pod.spec.init_containers, *pod.spec.containers)
        for name in (*container.resources.requests, *container.resources.limits)
        if is_device_resource(name)
    }
    bare = _stripped(pod, names, is_without_claims=True)
    return replace(bare, spec=replace(bare.spec, resource_claims=()))


def _stripped(pod: Pod, names: set[str], *, is_without_claims: bool = False) -> Pod:
    def rest(resources: Any) -> Any:
        requests, limits = _rest(resources.requests, names), _rest(resources.limits, names)
        return replace(resources, requests=requests, limits=limits)

    def strip(container: Container) -> Container:
        claims = () if is_without_claims else container.resources.claims
        return replace(container, resources=replace(rest(container.resources), claims=claims))

    spec = pod.spec
    return replace(
        pod,
        spec=replace(
            spec,
            containers=tuple(map(strip, spec.containers)),
            init_containers=tuple(map(strip, spec.init_containers)),
            overhead=_rest(spec.overhead, names),
            resources=spec.resources and rest(spec.resources),
        ),
    )


def _rest(amounts: Any, names: Iterable[str]) -> Any:
    return {name: amount for name, amount in amounts.items() if name not in names}
