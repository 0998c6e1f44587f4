"""Generated code: the plan's answers, faster, and nothing else in reach."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moorage.api.resource.v1 import DeviceAttribute, DeviceCapacity
from moorage.cel.device import CelFeatures, DeviceCompiler, Scope
from moorage.cel.device_values import device_variables
from moorage.cel.lang.code_writer import Writer
from moorage.cel.lang.program import Program
from tests.cel.devices import recorded_variables
from tests.corpus import corpus

COMPILER = DeviceCompiler(CelFeatures(list_attributes=True), extensions=False)


def program(text: str) -> Program:
    compiled = COMPILER.compile(text, kind="raw", scope=Scope.STORED)
    assert compiled.program is not None, compiled.error
    return compiled.program


DEVICE = device_variables(
    "gpu.example.com",
    {
        "model": DeviceAttribute(string_value="H200"),
        "index": DeviceAttribute(int_value=3),
        "version": DeviceAttribute(version_value="1.2.3"),
        "ports": DeviceAttribute(int_values=(1, 2, 3)),
        "ready": DeviceAttribute(bool_value=True),
        "driver": DeviceAttribute(string_value="x"),
    },
    {"memory": DeviceCapacity()},
)


def agree(text: str, variables: dict[str, Any] = DEVICE, limit: int = 1_000_000) -> None:
    compiled = program(text)
    quick = compiled.evaluate(variables, cost_limit=limit)
    careful = compiled.run_plan(variables, cost_limit=limit)
    assert repr(quick) == repr(careful), text


@pytest.mark.sweep
def test_generated_code_and_plan_agree_on_every_recorded_expression() -> None:
    seen = 0
    for line in corpus("cel", "public.jsonl").read_text().splitlines():
        case = json.loads(line)
        compiled = COMPILER.compile(case["expression"], kind="raw", scope=Scope.STORED)
        if compiled.program is None or compiled.program.fast is None:
            continue
        variables = recorded_variables(case["device"])
        if variables is not None:
            seen += 1
            agree(case["expression"], variables, case.get("cost_limit", 1_000_000))
    assert seen > 2000


TERMS = st.sampled_from(
    [
        "true",
        "1",
        "'H200'",
        "device.driver",
        "device.attributes['gpu.example.com'].model",
        "device.attributes['gpu.example.com'].index",
        "device.attributes['gpu.example.com'].nosuch",
        "device.attributes['x'].?y.orValue(1)",
        "has(device.attributes['gpu.example.com'].ready)",
        "device.attributes['gpu.example.com'].ports.exists(p, p == 2)",
        "device.attributes['gpu.example.com'].ports.map(p, p * 2)[1]",
        "cel.bind(a, device.attributes['gpu.example.com'], a.ready || a.nosuch)",
        "device.attributes['gpu.example.com'].version.isGreaterThan(semver('1.0.0'))",
        "device.capacity['gpu.example.com'].memory.compareTo(quantity('1Gi'))",
        "dyn(1) in [1, 2]",
        "dyn('a') in ['a', 'b']",
    ]
)
EXPRESSIONS = st.recursive(
    TERMS,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["&&", "||", "==", "!=", "<", "+"]), inner).map(
            lambda parts: f"(dyn({parts[0]}) {parts[1]} dyn({parts[2]}))"
        ),
        st.tuples(inner, inner, inner).map(
            lambda parts: f"(dyn({parts[0]}) ? dyn({parts[1]}) : dyn({parts[2]}))"
        ),
        inner.map(lambda part: f"!dyn({part})"),
    ),
    max_leaves=6,
)


@settings(max_examples=300)
@given(text=EXPRESSIONS, limit=st.sampled_from([3, 12, 1_000_000]))
def test_generated_code_and_plan_agree(text: str, limit: int) -> None:
    compiled = COMPILER.compile(text, kind="raw", scope=Scope.STORED)
    if compiled.program is not None:
        agree(text, limit=limit)


def test_a_leading_dot_passes_over_variables_of_loops() -> None:
    bound = "cel.bind(device, {'driver': 'x'}, .device.driver == 'gpu.example.com')"
    looped = "[device.attributes['gpu.example.com']].exists(device, .device.driver != 'x')"
    for text in (bound, looped):
        agree(text)
        assert program(text).evaluate(DEVICE, cost_limit=1000).value is True


def test_a_bound_optional_is_looked_into() -> None:
    for text in ("o.?model.orValue('')", "has(o.model)", "o.model"):
        agree(f"cel.bind(o, optional.of(device.attributes['gpu.example.com']), {text})")


# --- nothing else in reach ----------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "device.__class__",
        "device.attributes.__class__",
        "device['__class__']",
        "device.attributes['gpu.example.com'].__init__",
        "device.driver.__class__",
        "''.format(['{0.__class__}'])",
        "__import__('os')",
        "dyn(device).keys()",
        "k0",
        "t1",
        "variables",
        "limit",
    ],
)
def test_nothing_of_python_can_be_reached(text: str) -> None:
    compiled = COMPILER.compile(text, kind="raw", scope=Scope.STORED)
    if compiled.program is None:
        return
    outcome = compiled.program.evaluate(DEVICE, cost_limit=1_000_000)
    # An unknown domain is an empty map, whatever it is called.
    assert outcome.error is not None or outcome.value in ({}, "")


@settings(max_examples=100)
@given(name=st.text(min_size=1, max_size=12), text=st.text(max_size=12))
def test_text_of_an_expression_never_becomes_code(name: str, text: str) -> None:
    literal, key = json.dumps(text), json.dumps(name)
    compiled = COMPILER.compile(f"device.attributes[{key}] == {literal}", kind="raw")
    if compiled.program is None:
        return
    writer = Writer()
    writer.write(compiled.program._step)
    lines = writer.lines
    allowed = set("abcdefghijklmnopqrstuvwxyzTFNE0123456789 _=+-*/.,:()[]<>!%\n")
    assert set("".join(lines)) <= allowed
    assert "__" not in "".join(lines)
