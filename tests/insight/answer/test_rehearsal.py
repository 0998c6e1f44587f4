"""Fixes are tried as a new plan would: groups together, others first, quotas and labels counted."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from moorage.api.codec import decode_tree
from moorage.api.core.namespace import ResourceQuota
from moorage.insight.answer.answer import answer
from moorage.insight.answer.changes.edits import Edit, ObjectChange
from moorage.insight.answer.changes.rehearsal import BEFORE_MAX
from moorage.insight.answer.finding import Answer, Case, Surroundings
from moorage.insight.explain.pods import explain
from moorage.insight.plan.planner import Plan, plan
from moorage.insight.snapshot.snapshot import Snapshot
from tests.insight.fit.scenes import CONTEXT, gpus, template, using
from tests.scheduler.makers import node
from tests.scheduler.scenes import GPU, claim, device_class, group, wanting

COUNT = ("spec", "spec", "devices", "requests", 0, "exactly", "count")
LABEL = ("metadata", "labels", "zone")


def planned(*objects: Any) -> Plan:
    return plan(Snapshot.of([device_class(), *objects]), CONTEXT)


def case_of(found: Plan, name: str = "train") -> Case:
    pending = next(each for each in found.pending if each.pod.metadata.name == name)
    return Case(Surroundings(found, CONTEXT), explain(found, pending))


def said(found: Plan, name: str = "train") -> Answer:
    return answer(found, case_of(found, name).explanation, CONTEXT)


def with_namespace(value: Any, namespace: str) -> Any:
    return replace(value, metadata=replace(value.metadata, namespace=namespace))


def fewer(count: int) -> ObjectChange:
    return ObjectChange("ResourceClaimTemplate", "default", "gpus", (Edit(COUNT, count),))


def test_the_pod_gets_a_node_with_the_change_and_the_cluster_is_as_before() -> None:
    found = planned(node("n1"), gpus("n1", [0, 1]), template(wanting(3)), using("gpus"))
    rehearsal, claims = case_of(found).rehearsal, dict(found.cluster.claims)
    assert [rehearsal.node([fewer(count)]) for count in (2, 3, 2)] == ["n1", None, "n1"]
    assert dict(found.cluster.claims) == claims


@pytest.mark.parametrize("count", [-1, "two", 2.5])
def test_what_an_api_server_would_refuse_gets_no_node(count: Any) -> None:
    found = planned(node("n1"), gpus("n1", [0, 1]), template(wanting(3)), using("gpus"))
    assert case_of(found).rehearsal.node([fewer(count)]) is None


def test_pods_that_the_change_helps_as_well_come_first() -> None:
    pods = [using("gpus", name=name) for name in ("first", "second", "train")]
    found = planned(node("n1"), gpus("n1", [0, 1]), template(wanting(3)), *pods)
    assert len(found.pending) == 3
    assert case_of(found, "second").rehearsal.node([fewer(1)]) == "n1"
    assert case_of(found, "train").rehearsal.node([fewer(1)]) is None


@pytest.mark.parametrize(
    ("kind", "edit"),
    [
        ("DeviceClass", Edit(("spec", "selectors"), [])),
        ("Node", Edit(LABEL, "a")),
    ],
)
def test_what_is_for_the_whole_cluster_helps_pods_of_other_namespaces_first(
    kind: str, edit: Edit
) -> None:
    nobody = [{"cel": {"expression": "false"}}] if kind == "DeviceClass" else []
    where: dict[str, Any] = {"nodeSelector": {"zone": "a"}} if kind == "Node" else {}
    objects = [device_class(selectors=nobody), node("n1"), gpus("n1", [0])]
    own = [template(wanting()), using("gpus", **where)]
    theirs = [
        with_namespace(template(wanting()), "other"),
        with_namespace(using("gpus", name="first", **where), "other"),
    ]
    change = ObjectChange(kind, "", "gpu" if kind == "DeviceClass" else "n1", (edit,))
    alone = plan(Snapshot.of([*objects, *own]), CONTEXT)
    assert case_of(alone).rehearsal.node([change]) == "n1"
    after_others = plan(Snapshot.of([*objects, *theirs, *own]), CONTEXT)
    assert case_of(after_others).rehearsal.node([change]) is None
    assert case_of(after_others, "first").rehearsal.node([change]) == "n1"
    before_others = plan(Snapshot.of([*objects, *own, *theirs]), CONTEXT)
    assert case_of(before_others).rehearsal.node([change]) == "n1"


def test_pods_that_ask_for_another_class_do_not_come_first() -> None:
    nobody = [{"cel": {"expression": "false"}}]
    objects = [device_class(selectors=nobody), device_class("other"), node("n1"), gpus("n1", [0])]
    waiting = [using("two", name=f"other-{number}") for number in range(BEFORE_MAX)]
    others = [template(wanting(2, device_class="other"), name="two"), *waiting]
    pods = [using("gpus", name="first"), using("gpus")]
    found = plan(Snapshot.of([*objects, *others, template(wanting()), *pods]), CONTEXT)
    change = ObjectChange("DeviceClass", "", "gpu", (Edit(("spec", "selectors"), []),))
    assert case_of(found, "first").rehearsal.node([change]) == "n1"
    assert case_of(found).rehearsal.node([change]) is None


def test_pods_of_a_higher_priority_come_first() -> None:
    pods = [using("gpus", name="train"), using("gpus", name="first", priority=10)]
    found = planned(node("n1"), gpus("n1", [0]), template(wanting(2)), *pods)
    assert case_of(found, "first").rehearsal.node([fewer(1)]) == "n1"
    assert case_of(found, "train").rehearsal.node([fewer(1)]) is None


def test_pods_of_a_group_are_placed_together_or_not_at_all() -> None:
    ours = {"podGroupName": "gang"}
    pods = [using("gpus", name=name, schedulingGroup=ours) for name in ("train", "other")]
    found = planned(group(), node("n1"), gpus("n1", [0, 1, 0]), template(wanting(4)), *pods)
    rehearsal = case_of(found).rehearsal
    assert rehearsal.node([fewer(2)]) is None
    assert rehearsal.node([fewer(1)]) == "n1"


def test_a_group_with_too_few_pods_is_not_offered_instead_of_a_missing_one() -> None:
    pod = using("gpus", schedulingGroup={"podGroupName": "gnag"})
    found = planned(group(), node("n1"), gpus("n1", [0]), template(), pod)
    assert all(fix.kind == "advice" for fix in said(found).fixes)
    alone = planned(group(least=1), node("n1"), gpus("n1", [0]), template(), pod)
    assert said(alone).fixes[0].kind == "change"


def test_a_label_of_a_node_counts() -> None:
    pod = using("gpus", nodeSelector={"zone": "a"})
    found = planned(node("n1"), gpus("n1", [0]), template(), pod)
    change = ObjectChange("Node", "", "n1", (Edit(LABEL, "a"),))
    rehearsal = case_of(found).rehearsal
    assert (rehearsal.node([change]), rehearsal.node([])) == ("n1", None)


def test_a_quota_is_raised_for_what_nobody_uses_as_well_and_not_for_stand_ins() -> None:
    tree = {
        "metadata": {"name": "few", "namespace": "default"},
        "spec": {"hard": {"count/resourceclaims.resource.k8s.io": "0"}},
    }
    unused = (claim("idle", wanting()), template(name="spare"))
    quota, pod = decode_tree(tree, ResourceQuota).value, using("gpus")
    objects = [device_class(), node("n1"), gpus("n1", [0]), quota, template(), pod, *unused]
    for stand_ins in ((), unused):
        found = said(plan(Snapshot.of(objects), CONTEXT, unused=stand_ins))
        (fix,) = [each for each in found.fixes if each.kind == "change"]
        assert "count/resourceclaims.resource.k8s.io 0 → 2" in fix.text
        assert fix.node == "n1"


def test_a_change_of_what_is_not_there_gets_no_node() -> None:
    found = planned(node("n1"), gpus("n1", [0]), template(wanting(2)), using("gpus"))
    gone = ObjectChange("ResourceClaimTemplate", "default", "gone", (Edit(COUNT, 1),))
    broken = ObjectChange("ResourceClaim", "default", "new", new={"apiVersion": "x", "kind": GPU})
    rehearsal = case_of(found).rehearsal
    assert [rehearsal.node([gone]), rehearsal.node([broken])] == [None, None]
