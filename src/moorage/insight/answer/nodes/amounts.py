"""Amounts of resources that nodes have too little of, and containers that ask for less."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from moorage.api.core.resources import HUGE_PAGES_PREFIX, ResourceRequirements
from moorage.api.quantity import Quantity
from moorage.claims.extended_resources import is_device_resource
from moorage.insight.answer.changes.edits import Edit, EditPath
from moorage.insight.answer.finding import Case, Finding, FixRank, Proposal
from moorage.insight.answer.holders import waits_for_pods
from moorage.insight.answer.nodes.extended import unbacked
from moorage.insight.answer.nodes.replicas import fewer_pods, of_workload
from moorage.insight.explain.nodes import INSUFFICIENT, amount, quantity, shown
from moorage.insight.messages import CAUSE_LENGTH_MAX, counted, listed
from moorage.scheduler.node_info import NodeInfo
from moorage.scheduler.plugins import node_resources
from moorage.scheduler.pod_signature import PodInfo

CPU: Final = "cpu"
PODS_SHOWN_MAX: Final = 3
_WITH_UNITS: Final = ("memory", "ephemeral-storage")
_STEPS: Final = {CPU: 100, **dict.fromkeys(_WITH_UNITS, 2**20)}  # of amounts that are proposed


def amount_findings(case: Case, node: str, reasons: Sequence[str]) -> Iterator[Finding]:
    """Find the resources that a node has too little of."""
    state = case.cluster.snapshot.nodes[node]
    requested = case.cluster.signature(case.pod).requests
    for text in reasons:
        if text == node_resources.TOO_MANY_PODS:
            yield _too_many_pods(case, state)
        if not text.startswith(INSUFFICIENT):
            continue
        name = text.removeprefix(INSUFFICIENT)
        if not amount(state.facts.allocatable, name) and is_device_resource(name):
            yield unbacked(case, name)
            continue
        yield _too_little(case, state, name, amount(requested, name))


def _too_little(case: Case, state: NodeInfo, name: str, wanted: int) -> Finding:
    total = amount(state.facts.allocatable, name)
    free = total - amount(state.requested, name)
    said, node = f"{said_amount(wanted, name)}{_overhead(case, name)}", state.facts.name
    nodes = case.cluster.snapshot.nodes
    most = max(amount(each.facts.allocatable, name) for each in nodes.values())
    if wanted > most:
        if len(nodes) == 1:
            has = (
                f"node {node} has {said_amount(total, name)}" if total else f"node {node} has none"
            )
        else:
            has = f"no node has more than {said_amount(most, name)}" if most else "no node has any"
        cause = f"the pod asks for {said}, {has}"
        less = less_amount(case, name, wanted - min(free, most)) if most else _without(case, name)
        return Finding(cause, (*less, _more(wanted, name)))
    if wanted > total:
        cause = f"the pod asks for {said}, node {node} has {said_amount(total, name)} in all"
        return Finding(cause, tuple(less_amount(case, name, wanted - free)))
    users = _users(state, name)
    by = f", the rest is used by {_pods(users)}" if users else ""
    cause = (
        f"the pod asks for {said}, {shown_amount(free, name)} of {shown_amount(total, name)} "
        f"{'is' if _is_measured(name) else 'are'} "
    )
    cause = of_workload(case, f"{cause}free on node {node}")
    full = f"{cause}{by}"
    return Finding(
        full if len(full) <= CAUSE_LENGTH_MAX else cause,
        (
            *fewer_pods(case),
            *less_amount(case, name, wanted - free),
            *waits_for_pods(case, users, node),
        ),
    )


def _overhead(case: Case, name: str) -> str:
    """Return how much of what a pod asks for is the overhead of its runtime class."""
    spec = case.pod.spec
    if name not in spec.overhead or not spec.runtime_class_name:
        return ""
    value = spec.overhead[name]
    own = shown_amount(value.milli_value if name == CPU else value.value, name)
    return f" ({own} of it overhead of runtime class {spec.runtime_class_name})"


def _users(state: NodeInfo, name: str) -> list[PodInfo]:
    """Return the pods of a node that use a resource, those that use most first."""
    used = [(amount(pod.signature.requests_on_node, name), pod) for pod in state.pods.values()]
    found = sorted((each for each in used if each[0]), key=lambda each: (-each[0], each[1].name))
    return [pod for _, pod in found]


def _pods(users: Sequence[PodInfo]) -> str:
    names = [pod.name for pod in users]
    return f"{'pod' if len(names) == 1 else 'pods'} {listed(names, shown_max=PODS_SHOWN_MAX)}"


def _too_many_pods(case: Case, state: NodeInfo) -> Finding:
    node, most = state.facts.name, state.facts.pods_max
    return Finding(
        f"too many pods: node {node} runs {counted(len(state.pods), 'pod')} and takes {most} "
        "(allocatable pods, which its kubelet's maxPods sets)",
        (
            *waits_for_pods(case, state.pods.values(), node),
            Proposal(f"add a node like {node}", FixRank.HARDWARE),
        ),
    )


# --- words ----------------------------------------------------------------------------------


def shown_amount(value: int, name: str) -> str:
    """Return an amount in few characters: 500, 1500m, 64Gi."""
    if name == CPU:
        return f"{value // 1000}" if value % 1000 == 0 else f"{value}m"
    return shown(value, name)


def said_amount(value: int, name: str) -> str:
    """Return an amount with its resource: `500 CPUs`, `64Gi of memory`, `2 nvidia.com/gpu`."""
    text = shown_amount(value, name)
    if name == CPU:
        return f"{text} CPU" if value in (1000,) or text.endswith("m") else f"{text} CPUs"
    return f"{text} of {name}" if _is_measured(name) else f"{text} {name}"


def _is_measured(name: str) -> bool:
    """Return whether a resource has units, and is not counted."""
    return name in _WITH_UNITS or name.startswith(HUGE_PAGES_PREFIX)


# --- asking for less ------------------------------------------------------------------------


class _Asker(NamedTuple):
    """A container, or the pod as a whole, that asks for an amount."""

    path: EditPath
    title: str
    resources: ResourceRequirements


def askers(case: Case) -> Iterator[_Asker]:
    """Yield the containers of the pod, and the pod where it asks as a whole."""
    spec = case.pod.spec
    if spec.resources is not None:
        yield _Asker(("resources",), "the pod", spec.resources)
    for field, containers in (
        ("containers", spec.containers),
        ("initContainers", spec.init_containers),
    ):
        for index, each in enumerate(containers):
            title = f"container {each.name}"
            yield _Asker((field, index, "resources"), title, each.resources)


def less_amount(case: Case, name: str, by: int, *, field: str = "requests") -> Iterator[Proposal]:
    """Yield the pod asking for less of a resource: its largest container, or the largest ones."""
    source = case.sources.of_pod(case.pod)
    if source is None or by <= 0:
        return
    asking = list(_asking(case, name, field))
    have, asker = max(asking, key=lambda each: each[0], default=(0, None))
    if asker is None:
        return
    lowered = [(have, have - by, asker)] if have > by else _lowered(asking, by, name)
    if not lowered:
        return
    edits = (edit for was, less, each in lowered for edit in _less(each, name, field, was, less))
    what = [
        f"{said_amount(less, name)} instead of {shown_amount(was, name)} in {each.title}"
        for was, less, each in lowered
    ]
    text = f"ask for {listed(what, shown_max=PODS_SHOWN_MAX)}"
    yield Proposal(text, FixRank.LESS, (source.change(*edits),))


def _asking(case: Case, name: str, field: str) -> Iterator[tuple[int, _Asker]]:
    for each in askers(case):
        own = getattr(each.resources, field).get(name)
        if own is not None:
            yield base_amount(own, name), each


def _lowered(
    asking: Sequence[tuple[int, _Asker]], by: int, name: str
) -> list[tuple[int, int, _Asker]]:
    """Return what the largest of the containers that run together ask for, and one limit for all.

    The limit is as high as it can be, so that as few containers as possible are lowered.
    """
    if any(each.path[0] != "containers" for _, each in asking):
        return []
    largest = sorted(asking, key=lambda each: -each[0])
    left = sum(was for was, _ in asking) - by  # for the containers above the limit
    for count in range(len(largest), 0, -1):
        limit = max(left, 0) // count // _step(name) * _step(name)
        smallest = largest[count - 1][0]
        if limit < smallest:
            return [(was, limit, each) for was, each in largest[:count]] if limit else []
        left -= smallest
    return []


def _step(name: str) -> int:
    """Return what amounts that are proposed are multiples of, in base units."""
    if name.startswith(HUGE_PAGES_PREFIX):
        return Quantity.parse(name.removeprefix(HUGE_PAGES_PREFIX)).value
    return _STEPS.get(name, 1)


def _less(asker: _Asker, name: str, field: str, have: int, less: int) -> Iterator[Edit]:
    """Yield a smaller request with its limit where these are equal, and what is above a limit."""
    amount_text = str(quantity(less, name))
    yield Edit((*asker.path, field, name), amount_text)
    other = "limits" if field == "requests" else "requests"
    beside = getattr(asker.resources, other).get(name)
    if beside is None:
        return
    if base_amount(beside, name) == have or (
        field == "limits" and base_amount(beside, name) > less
    ):
        yield Edit((*asker.path, other, name), amount_text)


def _without(case: Case, name: str) -> Iterator[Proposal]:
    """Yield the pod without a resource that no node has."""
    source = case.sources.of_pod(case.pod)
    asking = [each for _, each in _asking(case, name, "requests")]
    if source is None or not asking:
        return
    edits = [
        Edit((*each.path, field, name))
        for each in asking
        for field in ("requests", "limits")
        if source.has((*each.path, field, name))
    ]
    where = listed([each.title for each in asking])
    text = f"do without {name} in {where}"
    yield Proposal(text, FixRank.LESS, (source.change(*edits),))


def _more(wanted: int, name: str) -> Proposal:
    """Return what gives a node as much of a resource."""
    if name.startswith(HUGE_PAGES_PREFIX):
        size = name.removeprefix(HUGE_PAGES_PREFIX)
        text = f"reserve {said_amount(wanted, name)} on a node, and restart its kubelet"
        return Proposal(text.replace(name, f"huge pages of {size}"), FixRank.ADMINISTRATOR)
    return Proposal(f"add a node with {said_amount(wanted, name)}", FixRank.HARDWARE)


def base_amount(value: object, name: str) -> int:
    """Return a quantity in base units: thousandths of a CPU, bytes, pieces."""
    amount_of: int = value.milli_value if name == CPU else value.value  # type: ignore[attr-defined]
    return amount_of
