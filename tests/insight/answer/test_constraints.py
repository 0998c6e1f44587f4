"""Constraints between drivers: bridges, types, and gates that are off in the cluster."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from moorage.api.documents import CORE, read
from moorage.api.gates import Gates
from moorage.api.timestamp import NO_TIME
from moorage.insight.answer.answer import answer
from moorage.insight.answer.devices.bridges import FACTS, coarser_facts, fact_of
from moorage.insight.answer.finding import Answer
from moorage.insight.explain.pods import Explanation, explain
from moorage.insight.explain.report import evidence_lines
from moorage.insight.plan.planner import Plan, plan
from moorage.insight.snapshot.builder import SnapshotBuilder
from moorage.scheduler.scheduling_cycle import Pending
from moorage.validation.strategy import Context

FOLDER = Path(__file__).parents[1] / "situations"
EVERYTHING = Context(gates=Gates.parse(""), now=NO_TIME)


def explained(name: str, context: Context) -> tuple[Plan, Explanation]:
    """Return why the pod waits among objects that were stored when all gates were on."""
    builder = SnapshotBuilder(EVERYTHING, namespace="team")
    text = (FOLDER / f"{name}.yaml").read_bytes()
    for document in read(text, source=name, schema=CORE):
        builder.add_document(document)
    found = plan(builder.snapshot(), context)
    (pending,) = (each for each in found.results if isinstance(each, Pending))
    return found, explain(found, pending)


def answered(name: str, gates: str) -> Answer:
    context = Context(gates=Gates.parse(gates), now=NO_TIME)
    return answer(*explained(name, context), context)


def evidence(name: str) -> Iterator[str]:
    _, explanation = explained(name, EVERYTHING)
    return evidence_lines(explanation)


LISTS_OFF = "DRAListTypeAttributes=false"
DERIVED_OFF = "DRADerivedAttributes=false"


@pytest.mark.parametrize(
    "name", ["bridge-two-drivers", "bridge-three-drivers", "match-int-and-string"]
)
def test_without_the_gate_a_bridge_is_advice_that_names_it(name: str) -> None:
    (first, *_) = answered(name, DERIVED_OFF).fixes
    assert first.kind == "advice"
    assert "DRADerivedAttributes" in first.text
    assert "derive resource.kubernetes.io/numaNode" in first.text


def test_stored_derived_attributes_need_the_gate_of_the_scheduler() -> None:
    found = answered("derived-missing-key", DERIVED_OFF)
    assert "request gpu has derivedAttributes" in found.cause
    assert "DRADerivedAttributes is off" in found.cause
    assert "turn on feature gate DRADerivedAttributes" in found.fixes[0].text


def test_stored_lists_match_nothing_while_lists_are_off() -> None:
    found = answered("match-lists-never-meet", LISTS_OFF)
    assert "[0, 1] (list of int)" in found.cause
    assert "DRAListTypeAttributes is off" in found.cause
    assert "turn on feature gate DRAListTypeAttributes" in found.fixes[0].text


def test_without_lists_a_guard_falls_back_to_a_value_that_no_device_has() -> None:
    found = answered("derived-missing-key", LISTS_OFF)
    assert found.fixes[0].text.endswith(
        'has(device.attributes["gpu.nvidia.com"].numa) ? '
        'device.attributes["gpu.nvidia.com"].numa : -1'
    )


def test_the_evidence_names_types_where_they_differ() -> None:
    lines = "\n".join(evidence("match-int-and-string"))
    assert 'gpu: "0" (string) on gpu-0, "1" (string) on gpu-1; nic: 0 (int) on nic-0' in lines
    assert "(int)" not in "\n".join(evidence("match-values-never-meet"))


# The table of KEP-6072, and names that drivers have besides.
SAME_FACT = {
    "resource.kubernetes.io/numaNode": (
        *("gpu.nvidia.com/numa", "gpu.amd.com/numaNode", "dra.net/numaNode"),
        *("dra.cpu/numaNodeID", "dra.memory/numaNode", "example.com/numa_node"),
    ),
    "resource.kubernetes.io/pcieRoot": ("gpu.example.com/pcie_root", "nic.example.com/pciRoot"),
    "resource.kubernetes.io/cpuSocketID": ("dra.cpu/socketID", "gpu.example.com/socket"),
}


@pytest.mark.parametrize("standard", SAME_FACT)
def test_names_of_the_table_are_one_fact(standard: str) -> None:
    assert {fact_of(name) for name in SAME_FACT[standard]} == {fact_of(standard)}


def test_facts_are_ordered_from_fine_to_coarse() -> None:
    names = [fact.standard.rpartition("/")[2] for fact in FACTS]
    assert names == ["pciBusID", "pcieRoot", "numaNode", "cpuSocketID"]
    assert coarser_facts("dra.net/numaNode") == FACTS[3:]
    assert coarser_facts("gpu.example.com/model") == ()


REFUSED = ("derived-name-differs", "derived-wrong-kind")  # so they are in no cluster
NAMES = sorted(
    path.stem
    for path in FOLDER.glob("*.yaml")
    if re.match("bridge|match|distinct|derived", path.stem) and path.stem not in REFUSED
)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("gates", ["", LISTS_OFF, DERIVED_OFF])
def test_every_cause_is_one_short_line_that_is_not_cut(name: str, gates: str) -> None:
    cause = answered(name, gates).cause
    assert len(cause) <= 160
    assert "…" not in cause
    assert "\n" not in cause
