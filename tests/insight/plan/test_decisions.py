"""Pods that are alike share a refusal as long as nothing changes."""

from __future__ import annotations

from moorage.api.core.pod import Pod
from moorage.insight.plan.planner import Plan
from tests.insight.plan.test_plan import planned
from tests.scheduler.makers import node, pod


def big(name: str, priority: int = 0) -> Pod:
    return pod(name, requests={"cpu": "100"}, priority=priority)


def diagnosis(plan: Plan, name: str) -> object:
    return next(each.diagnosis for each in plan.pending if each.pod.metadata.name == name)


def test_pods_that_are_alike_are_tried_once_and_keep_their_names() -> None:
    plan = planned(node("n1"), node("n2"), *(big(f"big-{n}") for n in range(5)))
    assert [each.pod.metadata.name for each in plan.pending] == [f"big-{n}" for n in range(5)]
    assert len({id(each.diagnosis) for each in plan.pending}) == 1
    assert len({each.message for each in plan.pending}) == 1


def test_pods_that_differ_are_tried_by_themselves() -> None:
    other = pod("other", requests={"cpu": "101"})
    plan = planned(node("n1"), big("big"), other, big("urgent", priority=1))
    assert len({id(each.diagnosis) for each in plan.pending}) == 3


def test_a_placed_pod_ends_what_was_known() -> None:
    small = pod("small", requests={"cpu": "1"})
    plan = planned(node("n1"), big("first"), small, big("last"), big("again"))
    assert [each.pod.metadata.name for each in plan.placed] == ["small"]
    assert diagnosis(plan, "first") is not diagnosis(plan, "last")
    assert diagnosis(plan, "last") is diagnosis(plan, "again")
