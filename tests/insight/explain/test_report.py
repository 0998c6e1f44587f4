"""Explanations as text and trees, and how much they may take."""

from __future__ import annotations

from mooring.api.core import Pod
from mooring.api.core.pod import Container, PodResourceClaim, PodSpec
from mooring.api.gates import Gates
from mooring.api.meta import ObjectMeta
from mooring.api.resource.v1 import (
    DeviceClaim,
    DeviceClass,
    DeviceRequest,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
)
from mooring.api.timestamp import Timestamp
from mooring.insight.explain.pods import explain
from mooring.insight.explain.report import explanation_lines, explanation_tree, name_of
from mooring.insight.explain.trials import EFFORT, Effort
from mooring.insight.plan.planner import Plan, plan
from mooring.insight.snapshot.snapshot import Snapshot
from mooring.scheduler.scheduling_cycle import Pending
from mooring.validation.strategy import Context
from tests.insight.topologies import device, node, slice_of

NOW = Timestamp.parse("2026-10-01T12:00:00Z")


def planned(nodes: int) -> Plan:
    """Return a plan for a pod that wants two devices where each node has one."""
    exactly = ExactDeviceRequest(device_class_name="c", allocation_mode="ExactCount", count=2)
    wanted = DeviceClaim(requests=(DeviceRequest(name="r", exactly=exactly),))
    return plan(
        Snapshot.of(
            [
                *(node(f"n{number}") for number in range(nodes)),
                *(slice_of(device("d"), pool=f"n{number}") for number in range(nodes)),
                DeviceClass(metadata=ObjectMeta(name="c")),
                ResourceClaim(
                    metadata=ObjectMeta(namespace="team", name="two"),
                    spec=ResourceClaimSpec(devices=wanted),
                ),
                Pod(
                    metadata=ObjectMeta(namespace="team", name="p"),
                    spec=PodSpec(
                        containers=(Container(name="c"),),
                        resource_claims=(PodResourceClaim(name="x", resource_claim_name="two"),),
                    ),
                ),
            ]
        ),
        Context(gates=Gates.parse(""), now=NOW),
    )


def pending_of(found: Plan) -> Pending:
    (result,) = found.results
    assert isinstance(result, Pending), result
    return result


def test_nodes_that_say_the_same_are_told_and_diagnosed_once() -> None:
    found = planned(nodes=4)
    asked: list[Effort] = []

    def effort() -> Effort:
        asked.append(EFFORT)
        return EFFORT

    explanation = explain(found, pending_of(found), effort=effort)
    (verdict,) = explanation.verdicts
    assert verdict.nodes == ("n0", "n1", "n2", "n3")
    assert len(asked) == 2  # to tell nodes apart, and for one diagnosis
    assert verdict.diagnosis is not None
    assert verdict.diagnosis.funnels[0].in_fleet == 4


def test_an_explanation_that_is_ended_says_so() -> None:
    found = planned(nodes=2)
    late = EFFORT._replace(interrupt=lambda: "out of time")
    explanation = explain(found, pending_of(found), effort=lambda: late)
    text = "\n".join(explanation_lines(explanation))
    assert "the diagnosis was ended: out of time; there may be more fixes" in text
    assert "request r: 2 wanted" in text
    assert explanation_tree(explanation)["verdicts"][0]["diagnosis"]["endedBy"] == "out of time"


def test_text_and_tree_have_the_pod_its_nodes_and_kubernetes_message() -> None:
    found = planned(nodes=1)
    pending = pending_of(found)
    explanation = explain(found, pending)
    first, *_, last = explanation_lines(explanation)
    assert first == f"{name_of(pending)} gets no node" == "pod team/p gets no node"
    assert last == f"  Kubernetes: {pending.message}"
    shown = explanation_tree(explanation)
    assert (shown["pod"], shown["verdicts"][0]["nodes"]) == ("team/p", ["n0"])
