"""Pods that would fit if they came first: a priority for them, or another order of creation.

    holders that the plan itself places ─┬► a priority class, the plan made anew ─► a change
                                         └► `better_order` of the plan           ─► advice

Both are about pods that look for a node at the same time. A pod that runs keeps its devices,
whatever comes: preemption frees CPUs and memory, and never devices. So nothing is offered where
running pods have them; a class that is made here preempts nobody. No pod may lose its place by it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from moorage.api.core.pod import Pod
from moorage.api.scheduling.v1beta1 import HIGHEST_USER_PRIORITY, PREEMPT_NEVER
from moorage.claims.pod_claims import group_name
from moorage.insight.answer.changes.edits import Edit, ObjectChange
from moorage.insight.answer.changes.sources import Source
from moorage.insight.answer.finding import Case, Finding, Fix, FixRank
from moorage.insight.messages import full_name
from moorage.insight.plan.arrival_orders import NODES_MAX, PODS_MAX, better_order
from moorage.insight.plan.planner import Plan, plan_completed
from moorage.insight.snapshot.completion import Completed
from moorage.insight.snapshot.snapshot import is_new, key_of

TURNS_MAX: Final = 4  # that a sentence names
FIELD: Final = "priorityClassName"


class _Class(NamedTuple):
    """A priority class that there is, or that would be made."""

    name: str
    value: int
    policy: str | None
    new: ObjectChange | None = None


def orders_for(case: Case, findings: Iterable[Finding]) -> Iterator[Fix]:
    """Yield what gives a pod a node if other pods of the plan have what it waits for."""
    holders = {p for f in findings for each in f.proposals for h in each.holders for p in h.pods}
    if case.is_late or not _is_small(case) or holders.isdisjoint(case.around.stage.placed):
        return
    yield from _priority(case)
    yield from _order(case)


def _is_small(case: Case) -> bool:
    plan = case.around.plan
    return len(plan.results) <= PODS_MAX and len(plan.before.nodes) <= NODES_MAX


# --- priority -----------------------------------------------------------------------------------


def _priority(case: Case) -> Iterator[Fix]:
    """Yield a priority with which the pods of the workload come first."""
    source = case.sources.of_pod(case.pod)
    if source is None or group_name(case.pod) is not None:
        return  # Pods of a group have the priority of the group.
    own = _pods_of(case, source)
    others = [e.pod for e in case.around.plan.results if full_name(e.pod) not in own]
    top = max((each.spec.priority or 0 for each in others), default=0)
    if (case.pod.spec.priority or 0) > top:
        return
    chosen = _class_above(case, source, top)
    if chosen is None:
        return
    changes = tuple(each for each in (chosen.new, _prioritised(source, chosen)) if each)
    found = _planned(case, own, chosen) if case.rehearsal.accepts(changes) else None
    node = None if found is None else _place(case, found)
    if node is not None:
        yield Fix(_sentence(source, chosen), FixRank.ORDER, changes, node)


def _pods_of(case: Case, source: Source) -> set[str]:
    """Return the full names of the pods that are written in the same object."""
    pods = (each.pod for each in case.around.plan.results)
    named = ((full_name(pod), case.sources.of_pod(pod)) for pod in pods)
    return {
        name for name, of in named if of is not None and key_of(of.value) == key_of(source.value)
    }


def _class_above(case: Case, source: Source, top: int) -> _Class | None:
    """Return the lowest class above a priority, or a new one; None if none can be higher."""
    known = {each.metadata.name: each for each in case.snapshot.priorities}
    higher = [each for each in known.values() if top < each.value <= HIGHEST_USER_PRIORITY]
    if higher:
        found = min(higher, key=lambda each: (each.value, each.metadata.name))
        return _Class(found.metadata.name, found.value, found.preemption_policy)
    if top >= HIGHEST_USER_PRIORITY:
        return None
    prefix = f"{source.value.metadata.name}-first"
    numbers = (f"{prefix}-{n}" for n in range(2, len(known) + 3))
    name = next(each for each in (prefix, *numbers) if each not in known)
    tree = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": top + 1,
        "preemptionPolicy": PREEMPT_NEVER,
    }
    new = ObjectChange("PriorityClass", "", name, new=tree)
    return _Class(name, top + 1, PREEMPT_NEVER, new)


def _prioritised(source: Source, chosen: _Class) -> ObjectChange:
    """Return the change that names a class; a server has written what follows from the old one."""
    edits = [Edit((FIELD,), chosen.name)]
    if source.value.kind == "Pod" and not is_new(source.value):
        edits += [Edit((each,)) for each in ("priority", "preemptionPolicy") if source.has((each,))]
    return source.change(*edits)


def _planned(case: Case, own: set[str], chosen: _Class) -> Plan:
    """Return the plan from its beginning, with another priority of some pods."""
    plan = case.around.plan

    def changed(pod: Pod) -> Pod:
        if full_name(pod) not in own:
            return pod
        spec = replace(
            pod.spec,
            priority=chosen.value,
            priority_class_name=chosen.name,
            preemption_policy=chosen.policy,
        )
        return replace(pod, spec=spec)

    before = replace(plan.before, pods=tuple(map(changed, plan.before.pods)))
    return plan_completed(Completed(before, (), plan.over_quota), case.context)


def _place(case: Case, found: Plan) -> str | None:
    """Return the node of the pod in another plan; None if it or any other pod has none there."""
    nodes = {full_name(each.pod): each.node for each in found.placed}
    is_fair = case.around.stage.placed.keys() <= nodes.keys()
    return nodes.get(full_name(case.pod)) if is_fair else None


def _sentence(source: Source, chosen: _Class) -> str:
    start = f"let {_title(source.value)} come first: {FIELD} {chosen.name}"
    if chosen.new is not None:
        return (
            f"{start}, a new PriorityClass with value {chosen.value} that preempts nobody (an "
            "administrator creates it; pods that run keep their devices)"
        )
    end = "it may preempt pods for CPU or memory, and none for devices"
    if chosen.policy == PREEMPT_NEVER:
        end = "pods that run keep their devices"
    return f"{start} (value {chosen.value}; {end})"


def _title(value: Any) -> str:
    return f"{value.kind} {value.metadata.name}"


# --- order --------------------------------------------------------------------------------------


def _order(case: Case) -> Iterator[Fix]:
    """Yield the order of creation in which the pod gets a node, and no other pod loses its own."""
    plan = case.around.plan
    pods = {full_name(each.pod): each.pod for each in plan.results}
    if not all(map(is_new, pods.values())):
        return  # They are created already.
    found = better_order(plan, case.context, shown={full_name(case.pod)})
    if found is None:
        return
    completed = Completed(plan.before, (), plan.over_quota)
    node = _place(case, plan_completed(completed, case.context, arrival=found.arrival))
    turns = [_titled(case, pods[name]) for name in found.arrival]
    runs = [title for title, _ in groupby(turns)]
    if node is None or len(runs) > TURNS_MAX or len(set(runs)) < len(runs):
        return  # Nobody creates pods of several workloads in turn.
    first, *others = runs
    text = f"create {first} first, and then {_joined(others)}"
    yield Fix(f"{text}, once its pods have nodes", FixRank.ORDER, node=node)


def _titled(case: Case, pod: Pod) -> str:
    source = case.sources.of_pod(pod)
    value = pod if source is None else source.value
    prefix = "" if value.metadata.namespace == case.namespace else f"{value.metadata.namespace}/"
    return f"{value.kind} {prefix}{value.metadata.name}"


def _joined(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
