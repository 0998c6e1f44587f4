"""One line about a pod without a node: the cause, and how little it may take."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from moorage.api.documents import read
from moorage.api.gates import Gates
from moorage.api.meta import OwnerReference
from moorage.api.timestamp import Timestamp
from moorage.insight.answer.live_case import Fleets
from moorage.insight.answer.summary import REMEMBERED_BYTES_MAX, PendingSummary
from moorage.insight.plan.planner import Plan, plan
from moorage.insight.snapshot.builder import SnapshotBuilder
from moorage.scheduler.scheduling_cycle import Pending, schedule
from moorage.validation.strategy import Context
from tests.insight.answer.live_play import BARE, bare_nodes

FOLDER = Path(__file__).parents[1] / "situations"
GATES = Gates.parse()
SITUATIONS = sorted(path.stem for path in FOLDER.glob("*.yaml"))


class Clock:
    """A clock that shows later each time."""

    def __init__(self, step_s: float = 0.0) -> None:
        self.s, self.step_s = 0.0, step_s

    def __call__(self) -> float:
        self.s += self.step_s
        return self.s


def planned(name: str, *more: dict[str, Any]) -> Plan:
    context = Context(gates=GATES, now=Timestamp.parse("2026-01-01T00:00:00Z"))
    builder = SnapshotBuilder(context, is_cluster=True)
    trees = [json.dumps(tree) for tree in more]
    text = "\n---\n".join([(FOLDER / f"{name}.yaml").read_text(), *trees])
    for document in read(text.encode(), source=name):
        builder.add_document(document)
    builder.finish()
    return plan(builder.snapshot(), context)


def waiting(made: Plan) -> Pending:
    (pending,) = made.pending
    return pending


def said(summary: PendingSummary, made: Plan, pending: Pending) -> str | None:
    return summary(made.cluster, pending.pod, pending)


def test_it_names_the_cause_and_a_fix_that_was_tried() -> None:
    made = planned("capacity-typo")
    line = said(PendingSummary(Clock(), GATES), made, waiting(made)) or ""
    assert line.startswith("Moorage: capacity memroy does not exist: did you mean memory? ")
    assert re.search(r"\. Fix: request gpu: .*memory.* → n1\.$", line), line


def test_nobody_is_told_to_wait_in_vain() -> None:
    made = planned("held-and-never-together")
    line = said(PendingSummary(Clock(), GATES), made, waiting(made)) or ""
    assert "in use by" in line
    assert "Fix" not in line
    made = planned("all-in-use-but-fewer")
    line = said(PendingSummary(Clock(), GATES), made, waiting(made)) or ""
    assert "Fix" in line


@pytest.mark.parametrize("name", SITUATIONS)
def test_the_cluster_stays_as_it_is(name: str) -> None:
    made = planned(name, *bare_nodes(3))
    before = made.cluster.changes
    for pending in made.pending:
        said(PendingSummary(Clock(), GATES), made, pending)
        assert isinstance(schedule(made.cluster, pending.pod), Pending)
    assert made.cluster.changes == before


def test_the_nearest_node_is_named_whatever_its_name() -> None:
    made = planned("memory-of-node", *bare_nodes(6))
    line = said(PendingSummary(Clock(), GATES), made, waiting(made)) or ""
    assert "512Gi" in line
    assert BARE not in line


def test_what_kubernetes_says_already_is_not_repeated() -> None:
    made = planned("two-mistakes")
    pending = waiting(made)
    line = said(PendingSummary(Clock(), GATES), made, pending) or ""
    cause = line.removeprefix("Moorage: ").partition(". Fix")[0]
    pending = replace(pending, message=f"{pending.message} {cause}")
    assert said(PendingSummary(Clock(), GATES), made, pending) == ""


def member(name: str, group: str, **spec: Any) -> dict[str, Any]:
    body = {
        "schedulingGroup": {"podGroupName": group},
        "containers": [{"name": "c", "image": "i"}],
        **spec,
    }
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": body}


@pytest.mark.parametrize("least", [1, 2])
def test_a_group_that_was_tried_does_not_lack_pods(least: int) -> None:
    group = {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": "gang", "namespace": "default"},
        "spec": {"schedulingPolicy": {"gang": {"minCount": least}}},
    }
    nowhere = {"nodeSelector": {"example.com/not": "there"}}
    members = [member(f"m{number}", "gang", **nowhere) for number in range(least)]
    made = planned("node-selector-typo", group, *members)
    pending = next(each for each in made.pending if each.pod.metadata.name == "m0")
    line = said(PendingSummary(Clock(), GATES), made, pending) or ""
    assert "example.com/not=there, a label that no node has" in line
    assert "minCount" not in line


# --- when the line changes -----------------------------------------------------------------


def test_a_changed_cause_changes_the_line_though_kubernetes_says_the_same() -> None:
    made, summary = planned("value-that-nobody-has"), PendingSummary(Clock(), GATES)
    pending = waiting(made)
    assert 'no device has model "h200"' in (said(summary, made, pending) or "")
    (published,) = made.before.slices
    made.cluster.put_slice(replace(published, spec=replace(published.spec, devices=())))
    again = schedule(made.cluster, pending.pod)
    assert isinstance(again, Pending)
    assert again.message == pending.message
    assert "no driver publishes devices" in (said(summary, made, again) or "")


def test_a_pod_that_changes_gets_another_line() -> None:
    made, summary = planned("node-selector-typo"), PendingSummary(Clock(), GATES)
    pending = waiting(made)
    first = said(summary, made, pending)
    spec = replace(pending.pod.spec, node_selector={"zone": "north"})
    changed = replace(pending, pod=replace(pending.pod, spec=spec))
    assert said(summary, made, changed) != first


# --- how little it takes -------------------------------------------------------------------


def test_pods_of_one_owner_that_want_the_same_share_a_line() -> None:
    made, clock = planned("two-mistakes"), Clock()
    pending, summary = waiting(made), PendingSummary(clock, GATES)
    owner = OwnerReference(kind="Job", name="train", uid="job", controller=True)
    pods = [
        replace(
            pending.pod, metadata=replace(pending.pod.metadata, uid=uid, owner_references=(owner,))
        )
        for uid in ("a", "b")
    ]
    first, second = (replace(pending, pod=pod) for pod in pods)
    line = said(summary, made, first)
    clock.step_s = 1e6  # no time for anything
    assert said(summary, made, second) == line
    assert said(summary, made, pending) is None


def test_without_time_there_is_no_answer_and_later_there_is() -> None:
    made, clock = planned("two-mistakes"), Clock(0.4)
    pending, summary = waiting(made), PendingSummary(clock, GATES)
    found = [
        said(summary, made, replace(pending, message=str(number))) is not None
        for number in range(8)
    ]
    assert not all(found)
    clock.s, clock.step_s = clock.s + 1000, 0.0
    assert said(summary, made, pending)


def test_lines_of_pods_with_much_text_do_not_fill_the_memory() -> None:
    made, clock = planned("node-selector-typo"), Clock()
    pending, summary = waiting(made), PendingSummary(clock, GATES)

    def with_text(label: str) -> Pending:
        spec = replace(pending.pod.spec, node_selector={label: "x" * (REMEMBERED_BYTES_MAX // 2)})
        return replace(pending, pod=replace(pending.pod, spec=spec))

    large = [with_text(label) for label in ("a", "b", "c")]
    for each in large:
        said(summary, made, each)
    clock.step_s = 1.0

    def is_remembered(each: Pending) -> bool:
        before_s = clock.s
        said(summary, made, each)
        return clock.s == before_s

    assert [is_remembered(each) for each in reversed(large)] == [True, False, False]


def test_devices_are_read_again_only_when_slices_change() -> None:
    made, fleets = planned("two-mistakes"), Fleets()
    (published,) = made.before.slices
    first = fleets.of((published,), names=True)
    assert fleets.of((published,), names=True) is first
    less = replace(published, spec=replace(published.spec, devices=()))
    assert len(fleets.of((less,), names=True)) == 0
    assert len(fleets.of((published,), names=True)) == len(first)
