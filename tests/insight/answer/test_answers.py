"""Every pending pod gets a cause and something to do; pods alike share the work."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from benchmarks.explain import CAUSES, bare_pods, deployment, fleet_objects
from benchmarks.explain import CONTEXT as BENCHMARK
from moorage.cel.device import Compiled
from moorage.insight.answer import answer as answering
from moorage.insight.answer.answer import answer, answers
from moorage.insight.answer.finding import Finding, one_line
from moorage.insight.explain.nodes import NodeProbe
from moorage.insight.explain.pods import explain
from moorage.insight.explain.trials import EFFORT
from moorage.insight.explain.verdicts import ALIKE_ASKED_MAX
from moorage.insight.expressions.candidates import Devices
from moorage.insight.expressions.evaluation import TOO_COMPLEX
from moorage.insight.expressions.published_devices import PublishedDevices
from moorage.insight.expressions.repairs import diagnose
from moorage.insight.messages import CAUSE_LENGTH_MAX
from moorage.insight.plan.planner import Plan, plan
from moorage.insight.snapshot.snapshot import Snapshot
from moorage.kit.bulkhead import Fault
from tests.insight.fit.scenes import CONTEXT, gpus, template, using
from tests.insight.fleets import compiler, device
from tests.insight.fleets import fleet as fleet_of
from tests.scheduler.makers import node
from tests.scheduler.scenes import device_class, wanting


def planned(*objects: Any) -> Plan:
    return plan(Snapshot.of([device_class(), *objects]), CONTEXT)


# --- always an answer -----------------------------------------------------------------------


def test_a_cluster_without_nodes_is_said_so() -> None:
    found = planned(template(), using("gpus"))
    (said,) = (each for _, _, each in answers(found, found.pending, CONTEXT))
    assert said.cause == "the cluster has no node"
    assert [fix.kind for fix in said.fixes] == ["advice"]


def test_a_finder_that_fails_does_not_hide_the_answer(
    monkeypatch: pytest.MonkeyPatch, faults: list[Fault]
) -> None:
    def broken(*_: object) -> Iterator[Finding]:
        yield from (Finding(str(1 / number)) for number in (0,))

    found = planned(node("n1"), gpus("n1", [0]), template(wanting(2)), using("gpus"))
    explanation = explain(found, found.pending[0])
    monkeypatch.setattr(answering, "device_findings", broken)
    said = answer(found, explanation, CONTEXT)
    assert [(fault.place, fault.subject) for fault in faults] == [
        ("explaining", "Pod default/train")
    ]
    assert "request gpu" in said.cause
    assert said.fixes[0].kind == "change"


def test_without_time_left_there_is_a_cause_and_nothing_is_tried() -> None:
    found = planned(node("n1"), gpus("n1", [0]), template(wanting(2)), using("gpus"))
    late = EFFORT._replace(interrupt=lambda: "no time left")
    before = found.cluster.work.nodes_asked
    (said,) = (s for _, _, s in answers(found, found.pending, CONTEXT, effort=lambda: late))
    assert found.cluster.work.nodes_asked == before
    assert said.cause
    assert [fix.kind for fix in said.fixes] == ["advice"]


def test_an_expression_that_costs_too_much_is_not_evaluated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    numbers = str(list(range(10)))
    costly = "true"
    for depth in range(6):
        costly = f"{numbers}.all(x{depth}, {costly})"

    def never(*_: object) -> None:
        raise AssertionError("it was evaluated")

    monkeypatch.setattr(Compiled, "evaluate_variables", never)
    published = fleet_of(device("gpu-0"))
    devices = Devices(published.devices, published)
    found = diagnose([costly], compiler(), devices)
    assert found is not None
    assert found.cause == f"the expression is {TOO_COMPLEX}"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("short", "short"),
        ("two\n lines", "two lines"),
        (f"{'a' * 100}; {'b' * 100}", "a" * 100),
        (f"{'a' * 100}, b: {'c' * 100}", "a" * 100),
        (f"no device matches `{'x' * 300}` of request gpu", None),
        ("x" * 300, f"{'x' * 159}…"),
        (f"{'a' * 100}; b, {'c' * 100}", "a" * 100),
    ],
    ids=range(7),
)
def test_a_cause_is_one_short_line_of_whole_clauses(text: str, line: str | None) -> None:
    found = one_line(text)
    assert len(found) <= CAUSE_LENGTH_MAX
    assert found == line if line is not None else found.endswith("…` of request gpu")


# --- shared work ----------------------------------------------------------------------------

NODES = 150


@pytest.fixture(scope="module")
def fleet() -> list[Any]:
    return list(fleet_objects(NODES))


def pending(fleet: list[Any], *objects: Any) -> Plan:
    return plan(Snapshot.of([*fleet, *objects]), BENCHMARK)


def test_bare_pods_that_differ_by_name_only_share_one_answer(fleet: list[Any]) -> None:
    found = pending(fleet, *bare_pods("cpu", 5))
    ((pods, _, said),) = answers(found, found.pending, BENCHMARK)
    assert len(pods) == 5
    fix = next(each for each in said.fixes if each.kind == "change")
    assert sorted(change.name for change in fix.changes) == [f"cpu-{n}" for n in range(5)]
    assert len({change.edits for change in fix.changes}) == 1


def test_pods_of_ten_causes_get_ten_answers_of_one_look_at_the_devices(
    fleet: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = 0
    before = PublishedDevices.__init__

    def counting(self: PublishedDevices, *args: Any, **options: Any) -> None:
        nonlocal made
        made += len(args[0]) == NODES
        before(self, *args, **options)

    monkeypatch.setattr(PublishedDevices, "__init__", counting)
    found = pending(fleet, *(each for name in CAUSES for each in deployment(name, 10)))
    given = list(answers(found, found.pending, BENCHMARK))
    assert sum(len(pods) for pods, _, _ in given) == len(found.pending)
    assert len(given) == len(CAUSES)
    assert made == 1


@pytest.mark.parametrize("name", CAUSES)
def test_the_work_for_one_pod_is_bounded(fleet: list[Any], name: str) -> None:
    found = pending(fleet, *bare_pods(name))
    before = found.cluster.work.nodes_asked
    ((_, _, said),) = answers(found, found.pending, BENCHMARK)
    # The survey asks each node once, and few changes are tried on all of them.
    assert found.cluster.work.nodes_asked - before <= 6 * NODES
    assert said.fixes


def test_of_nodes_alike_that_reject_the_pod_otherwise_only_some_are_asked_for_devices(
    fleet: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    before = NodeProbe.device_counts

    def counting(self: NodeProbe, name: str, budget: Any) -> Any:
        asked.append(name)
        return before(self, name, budget)

    monkeypatch.setattr(NodeProbe, "device_counts", counting)
    found = pending(fleet, *bare_pods("cpu"))
    explanation = explain(found, found.pending[0])
    assert sum(len(verdict.nodes) for verdict in explanation.verdicts) == NODES
    # Tainted nodes, others with all devices free, and others with some in use.
    assert ALIKE_ASKED_MAX < len(asked) <= 2 * ALIKE_ASKED_MAX + NODES // 50
