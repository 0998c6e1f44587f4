"""Laws of insight, on the expressions and devices of the corpus."""

from __future__ import annotations

import json
from typing import Any

import pytest

from moorage.api.codec import decode_tree
from moorage.api.resource.v1 import DeviceAttribute, DeviceCapacity
from moorage.cel.device import CelFeatures, Compiled, DeviceCompiler, Scope
from moorage.cel.device_values import Domains, device_variables
from moorage.cel.lang.errors import EvalError
from moorage.insight.expressions.evaluation import ExpressionEvaluator
from moorage.insight.expressions.explanation import explain
from moorage.insight.expressions.syntax import MAPS, DeviceField, reads_of
from tests.corpus import corpus

Cases = list[tuple[Compiled, dict[str, Any]]]

COMPILER = DeviceCompiler(CelFeatures(list_attributes=True), extensions=False)
EVERY = 4  # one case of so many, for the sake of time


def cases() -> Cases:
    """Return expressions that compile, with the variables of their devices."""
    found = []
    lines = corpus("cel", "public.jsonl").read_text(encoding="utf-8").splitlines()
    for case in map(json.loads, lines[::EVERY]):
        text = case["expression"]
        compiled = COMPILER.compile(text, kind=case["kind"], scope=Scope.STORED)
        variables = variables_of(case["device"])
        if compiled.program is not None and variables is not None and "lists.range" not in text:
            found.append((compiled, variables))
    return found


def variables_of(device: dict[str, Any]) -> dict[str, Any] | None:
    def decoded(field: str, struct: Any) -> dict[str, Any]:
        entries = (device.get(field) or {}).items()
        return {name: decode_tree(value, struct).value for name, value in entries}

    try:
        return device_variables(
            device.get("driver") or "",
            decoded("attributes", DeviceAttribute),
            decoded("capacity", DeviceCapacity),
            allow_multiple_allocations=device.get("allowMultipleAllocations"),
        )
    except EvalError:
        return None


@pytest.fixture(scope="module")
def recorded() -> Cases:
    return cases()


def stripped(variables: dict[str, Any], reads: frozenset[DeviceField]) -> dict[str, Any]:
    """Return variables that have nothing but what is read."""
    device = variables["device"]
    kept: dict[str, Any] = {"driver": "", "allowMultipleAllocations": False}
    kept |= {field: Domains() for field in MAPS}
    for read in sorted(reads, reverse=True):  # A whole comes after its parts.
        if not read.field:
            return variables
        if not read.domain:
            kept[read.field] = device.get(read.field)
        elif read.domain in device[read.field]:
            entries = device[read.field][read.domain]
            if not read.name:
                kept[read.field][read.domain] = entries
            elif read.name in entries:
                kept[read.field].setdefault(read.domain, {})[read.name] = entries[read.name]
    return {"device": kept}


def test_an_expression_gives_the_same_for_a_device_with_only_what_it_reads(
    recorded: Cases,
) -> None:
    assert len(recorded) > 300
    for compiled, variables in recorded:
        reads = reads_of(ExpressionEvaluator(compiled).root)
        given = compiled.evaluate_variables(variables)
        assert str(compiled.evaluate_variables(stripped(variables, reads))) == str(given)


def test_every_answer_can_be_explained(recorded: Cases) -> None:
    for compiled, variables in recorded:
        reasons = explain(ExpressionEvaluator(compiled).parts, variables)
        assert reasons, compiled.expression
        assert all(map(str, reasons))


def test_a_part_is_written_so_that_it_means_the_same(
    recorded: Cases,
) -> None:
    for compiled, variables in recorded:
        parts = ExpressionEvaluator(compiled).parts
        again = COMPILER.compile(parts.text(parts.root), kind=compiled.kind, scope=Scope.STORED)
        assert again.error is None, parts.text(parts.root)
        first, second = (each.evaluate_variables(variables) for each in (compiled, again))
        assert (str(first.value), first.error) == (str(second.value), second.error)
