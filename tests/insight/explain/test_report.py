"""Explanations as text and trees, and how much they may take."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from moorage.api.core import Pod
from moorage.api.core.node import NodeStatus
from moorage.api.core.pod import Container, PodResourceClaim, PodSpec
from moorage.api.gates import Gates
from moorage.api.meta import ObjectMeta
from moorage.api.quantity import Quantity
from moorage.api.resource.v1 import (
    DeviceClaim,
    DeviceClass,
    DeviceRequest,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
    ResourceSlice,
)
from moorage.api.timestamp import Timestamp
from moorage.insight.answer.answer import answer
from moorage.insight.answer.document import shown_evidence
from moorage.insight.answer.groups import AnsweredPods
from moorage.insight.answer.output import Tone, answer_lines
from moorage.insight.explain.pods import explain
from moorage.insight.explain.report import evidence_lines
from moorage.insight.explain.trials import EFFORT, Effort
from moorage.insight.plan.planner import Plan, plan
from moorage.insight.snapshot.snapshot import Snapshot
from moorage.scheduler.scheduling_cycle import Pending
from moorage.validation.strategy import Context
from tests.insight.topologies import device, node, slice_of

CONTEXT = Context(gates=Gates.parse(""), now=Timestamp.parse("2026-10-01T12:00:00Z"))


TWO = ExactDeviceRequest(device_class_name="c", allocation_mode="ExactCount", count=2)


def planned(
    nodes: int,
    slices: Sequence[ResourceSlice] | None = None,
    exactly: ExactDeviceRequest = TWO,
    room: int = 0,
) -> Plan:
    """Return a plan for a pod that wants two devices where each node has one."""
    wanted = DeviceClaim(requests=(DeviceRequest(name="r", exactly=exactly),))
    status = NodeStatus(allocatable={"pods": Quantity.from_int(room)} if room else {})
    if slices is None:
        slices = [slice_of(device("d"), pool=f"n{number}") for number in range(nodes)]
    return plan(
        Snapshot.of(
            [
                *(replace(node(f"n{number}"), status=status) for number in range(nodes)),
                *slices,
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
        CONTEXT,
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


def test_nodes_are_named_in_the_order_in_which_people_count() -> None:
    found = planned(nodes=12)
    lines = list(evidence_lines(explain(found, pending_of(found))))
    assert any(line.startswith("  nodes n0, n1, n2 and 9 more: ") for line in lines)


def test_an_explanation_that_is_ended_says_so() -> None:
    found = planned(nodes=2)
    late = EFFORT._replace(interrupt=lambda: "out of time")
    explanation = explain(found, pending_of(found), effort=lambda: late)
    text = "\n".join(evidence_lines(explanation))
    assert "the diagnosis was ended: out of time; there may be more fixes" in text
    assert "request r: 2 wanted" in text
    diagnosis = shown_evidence(explanation).verdicts[0].diagnosis
    assert diagnosis is not None
    assert diagnosis.ended_by == "out of time"


def answered(found: Plan) -> AnsweredPods:
    pending = pending_of(found)
    explanation = explain(found, pending)
    return AnsweredPods([pending], explanation, answer(found, explanation, CONTEXT))


def test_the_cause_comes_first_then_the_fixes_then_the_evidence() -> None:
    found = planned(nodes=1, room=1)
    told = answered(found)
    lines = list(answer_lines(told))
    assert str(lines[0]) == f"pod team/p: {told.answer.cause}"
    fix = str(lines[1])
    assert fix.startswith("  fix 1: ask for 1 instead of 2 in request r")
    assert fix.endswith(" → gets node n0")
    tones, fixes = [line.tone for line in lines], len(told.answer.fixes)
    assert tones[: fixes + 1] == [Tone.CAUSE, *[Tone.FIX] * fixes]
    assert set(tones[fixes + 1 :]) == {Tone.EVIDENCE}
    assert str(lines[-1]) == f"  Kubernetes: {pending_of(found).message}"
    evidence = shown_evidence(told.explanation)
    assert (evidence.pod, evidence.verdicts[0].nodes) == ("team/p", ("n0",))
    assert evidence.message == pending_of(found).message


def test_the_nearest_nodes_are_shown_and_the_others_counted() -> None:
    """Of n0 to n4, n0 has one device fewer than is wanted, and each next one is worse."""
    exactly = ExactDeviceRequest(device_class_name="c", allocation_mode="ExactCount", count=6)
    pools = [
        slice_of(*(device(f"d{i}") for i in range(5 - number)), pool=f"n{number}")
        for number in range(5)
    ]
    found = planned(nodes=5, slices=pools, exactly=exactly, room=1)
    explanation = explain(found, pending_of(found))
    text = "\n".join(evidence_lines(explanation))
    shown = [line.split(":")[0].strip() for line in text.splitlines() if "  node " in line]
    assert shown == ["node n0", "node n1", "node n2"]
    assert "  2 more nodes: 2 cannot allocate all claims (--verbose shows each)" in text
    full = "\n".join(evidence_lines(explanation, is_full=True))
    assert "node n3" in full
    assert "more nodes" not in full
