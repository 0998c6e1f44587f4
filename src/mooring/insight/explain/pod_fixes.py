"""Changes to a pod that would give it a node, each tried by scheduling the changed pod.

Only what stands in the pod itself; what claims ask for is the business of their diagnosis.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from mooring.api.core.placement import Toleration
from mooring.api.core.pod import Pod
from mooring.insight.explain.nodes import amount, quantity, shown
from mooring.scheduler.cluster import Cluster
from mooring.scheduler.cycle import Placed, schedule
from mooring.scheduler.filtering import Survey
from mooring.scheduler.filters import noderesources, tainttoleration

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
