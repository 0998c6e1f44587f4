"""Pods that would fit if they came first: by a priority, or in another order of creation."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from moorage.api.codec import decode_tree
from moorage.api.core.pod import Pod
from moorage.api.scheduling import PriorityClass
from moorage.insight.answer.answer import answer
from moorage.insight.answer.changes.edits import REMOVED, Edit, edited
from moorage.insight.answer.finding import Fix, FixRank
from moorage.insight.explain.pods import explain
from moorage.insight.messages import full_name
from moorage.insight.plan.planner import Plan, plan
from moorage.insight.snapshot.snapshot import Snapshot, identified
from tests.insight.fit.scenes import CONTEXT
from tests.scheduler.makers import node, pod
from tests.scheduler.scenes import group

# A small pod goes to the larger node, since more is left there. A large one fits nowhere else.
NODES = [
    node(name, allocatable={"cpu": cpu, "memory": "8Gi", "pods": "110"})
    for name, cpu in (("large", "4"), ("small", "2"))
]


def new(name: str, cpu: str, **fields: Any) -> Pod:
    """Return a pod that no server has seen."""
    made: Pod = identified(pod(name, requests={"cpu": cpu}, metadata={"uid": ""}, **fields))
    return made


SMALL, LARGE = new("note", "2"), new("train", "4")


def priority(name: str, value: int, policy: str | None = None) -> PriorityClass:
    tree: dict[str, Any] = {"metadata": {"name": name}, "value": value}
    if policy is not None:
        tree["preemptionPolicy"] = policy
    return decode_tree(tree, PriorityClass).value


def planned(*objects: Any) -> Plan:
    return plan(Snapshot.of([*NODES, *objects]), CONTEXT)


def orders(found: Plan, name: str = "train") -> list[Fix]:
    """Return what is offered so that a pod comes first."""
    pending = next(each for each in found.pending if each.pod.metadata.name == name)
    fixes = answer(found, explain(found, pending), CONTEXT).fixes
    assert fixes == tuple(sorted(fixes, key=lambda fix: fix.rank))
    return [each for each in fixes if each.rank is FixRank.ORDER]


def test_a_priority_and_an_order_are_offered_before_what_gives_something_up() -> None:
    first, second = orders(planned(SMALL, LARGE))
    assert first.text == (
        "let Pod train come first: priorityClassName train-first, a new PriorityClass with value 1 "
        "that preempts nobody (an administrator creates it; pods that run keep their devices)"
    )
    assert first.node == second.node == "large"
    assert second.text == "create Pod train first, and then Pod note, once its pods have nodes"
    assert (first.kind, second.kind) == ("change", "advice")
    assert FixRank.ORDER < FixRank.LESS


def test_with_the_change_all_pods_get_a_node() -> None:
    created, changed = orders(planned(SMALL, LARGE))[0].changes
    made = decode_tree(created.new, PriorityClass).value
    assert made.preemption_policy == "Never"
    after = planned(SMALL, edited(LARGE, changed.edits), made)
    assert {full_name(each.pod): each.node for each in after.placed} == {
        "default/note": "small",
        "default/train": "large",
    }


@pytest.mark.parametrize(
    ("policy", "end"),
    [
        (None, "it may preempt pods for CPU or memory, and none for devices)"),
        ("Never", "pods that run keep their devices)"),
    ],
)
def test_the_lowest_class_that_is_high_enough_is_used(policy: str | None, end: str) -> None:
    classes = priority("low", 0), priority("team", 7, policy), priority("top", 9)
    first, *_ = orders(planned(SMALL, LARGE, *classes))
    (change,) = first.changes
    assert change.edits == (Edit(("spec", "priorityClassName"), "team"),)
    assert first.text == f"let Pod train come first: priorityClassName team (value 7; {end}"


def test_no_pod_loses_its_place() -> None:
    assert orders(planned(SMALL, LARGE, new("other", "2"))) == []


def test_a_pod_that_runs_stays_whatever_comes_first() -> None:
    there = pod("note", requests={"cpu": "2"}, nodeName="large", status={"phase": "Running"})
    assert orders(planned(there, LARGE)) == []


def test_a_pod_that_a_server_has_gets_its_priority_anew() -> None:
    stored = [
        replace(e, metadata=replace(e.metadata, resource_version="1")) for e in (SMALL, LARGE)
    ]
    (only,) = orders(planned(*stored))  # They are created already.
    assert [edit.path[-1] for edit in only.changes[1].edits if edit.value is REMOVED] == [
        "priority",
        "preemptionPolicy",
    ]


def test_pods_of_a_group_keep_the_priority_of_the_group() -> None:
    member = new("train", "4", schedulingGroup={"podGroupName": "gang"})
    fixes = orders(planned(group(least=1), SMALL, member))
    assert all(not fix.changes for fix in fixes)


def test_of_alike_pods_none_comes_first() -> None:
    assert orders(planned(LARGE, new("another", "4")), "another") == []
