"""Expressions about devices: features, result types, inputs."""

from __future__ import annotations

import pytest

from moorage.api.quantity import Quantity
from moorage.api.resource.v1 import DeviceAttribute, DeviceCapacity
from moorage.cel.device import CelFeatures, DeviceCompiler, ExpressionKind, Scope
from moorage.cel.lang.program import Evaluated

DEFAULT = CelFeatures()

ATTRIBUTES = {
    "model": DeviceAttribute(string_value="H200"),
    "other.example.com/rank": DeviceAttribute(int_value=7),
    "version": DeviceAttribute(version_value="1.2.3"),
    "ports": DeviceAttribute(int_values=(1, 2)),
}
CAPACITY = {"memory": DeviceCapacity(value=Quantity.parse("80Gi"))}


def evaluate(text: str, *, kind: ExpressionKind = "selector", lists: bool = True) -> Evaluated:
    compiler = DeviceCompiler(CelFeatures(list_attributes=lists))
    compiled = compiler.compile(text, kind=kind, scope=Scope.NEW)
    assert compiled.error is None, compiled.error
    return compiled.evaluate(
        driver="gpu.example.com", attributes=ATTRIBUTES, capacity=CAPACITY, name="gpu-0"
    )


def refuse(text: str, *, kind: ExpressionKind = "selector", features: CelFeatures = DEFAULT) -> str:
    compiled = DeviceCompiler(features, extensions=False).compile(text, kind=kind, scope=Scope.NEW)
    assert compiled.error is not None
    return compiled.error


@pytest.mark.parametrize(
    "text",
    [
        'device.driver == "gpu.example.com"',
        'device.attributes["gpu.example.com"].model == "H200"',
        'device.attributes["other.example.com"]["rank"] > 6',
        'device.attributes["unknown.example.com"] == {}',
        '!("unknown.example.com" in device.attributes)',
        'device.attributes["unknown.example.com"].?x.orValue(true)',
        'device.attributes["gpu.example.com"].version.isGreaterThan(semver("1.2.2"))',
        'device.capacity["gpu.example.com"].memory.compareTo(quantity("80Gi")) == 0',
        'device.attributes["gpu.example.com"].ports.includes(2)',
        'device.attributes["gpu.example.com"].ports.include(2)',
        "!device.allowMultipleAllocations",
        'device.name == "gpu-0"',
    ],
)
def test_a_device_matches(text: str) -> None:
    assert evaluate(text).value is True


@pytest.mark.parametrize(
    ("text", "name", "parts"),
    [
        ('{}.supported-models == "a"', "supported-models", ".supported minus models"),
        ('{}.supported-models.includes("a")', "supported-models", ".supported minus models"),
        ('{}.list-of-string == "a"', "list-of-string", ".list minus of minus string"),
        ('{}.known-as == "a"', "known-as", ".known minus as"),
        ('device.driver == "é-x" && {}.a-b', "a-b", ".a minus b"),
    ],
)
def test_a_hyphen_in_a_name_is_explained(text: str, name: str, parts: str) -> None:
    text = text.format('device.attributes["gpu.example.com"]')
    compiled = DeviceCompiler(CelFeatures(list_attributes=True)).compile(text, scope=Scope.NEW)
    hint = f'hint: .{name} is {parts} to CEL; write ["{name}"]'
    assert (compiled.error or "").splitlines()[-1] == hint
    # Kubernetes has no such hint.
    assert "hint" not in refuse(text)


@pytest.mark.parametrize(
    "text",
    [
        "device.drvier == 'a-b'",
        'device.attributes["gpu.example.com"].a - b',
        "models == '.supported-models'",
        "supported-models",
    ],
)
def test_where_no_hyphen_was_meant_there_is_no_hint(text: str) -> None:
    compiled = DeviceCompiler(CelFeatures(list_attributes=True)).compile(text, scope=Scope.NEW)
    assert "hint" not in (compiled.error or "hint")


def test_a_missing_attribute_is_an_error_and_not_a_mismatch() -> None:
    outcome = evaluate('device.attributes["gpu.example.com"].nosuch == 1')
    assert outcome.error == "no such key: nosuch"


def test_a_device_with_an_unreadable_version_fails_every_expression() -> None:
    compiled = DeviceCompiler(CelFeatures()).compile("true")
    outcome = compiled.evaluate(
        driver="d", attributes={"v": DeviceAttribute(version_value="1")}, capacity={}
    )
    assert outcome.error == (
        "attribute v: parse semantic version: No Major.Minor.Patch elements found"
    )
    assert outcome.cost is None


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", DeviceAttribute(int_value=1)),
        ("'a'", DeviceAttribute(string_value="a")),
        ("semver('1.0.0')", DeviceAttribute(version_value="1.0.0")),
        ("[1, 2]", DeviceAttribute(int_values=(1, 2))),
        ("[]", DeviceAttribute(string_values=())),
    ],
)
def test_a_derived_attribute_has_the_type_of_its_value(text: str, value: DeviceAttribute) -> None:
    assert evaluate(text, kind="derived").value == value


@pytest.mark.parametrize(
    ("text", "kind", "features", "message"),
    [
        ("1", "selector", CelFeatures(), "must evaluate to bool or the unknown type, not int"),
        (
            "[1]",
            "derived",
            CelFeatures(),
            "must evaluate to a primitive scalar (string, integer, boolean, semver), not list(int)",
        ),
        (
            "device.allowMultipleAllocations",
            "selector",
            CelFeatures(consumable_capacity=False),
            (
                "compilation failed: ERROR: <input>:1:7: "
                "undefined field 'allowMultipleAllocations'\n"
                " | device.allowMultipleAllocations\n"
                " | ......^"
            ),
        ),
        (
            "device.name == 'a'",
            "selector",
            CelFeatures(),
            (
                "compilation failed: ERROR: <input>:1:7: undefined field 'name'\n"
                " | device.name == 'a'\n"
                " | ......^"
            ),
        ),
        (
            "int('x') == 1",
            "selector",
            CelFeatures(),
            "program instantiation failed: type conversion error from 'string' to 'int'",
        ),
    ],
)
def test_an_expression_is_refused(
    text: str, kind: ExpressionKind, features: CelFeatures, message: str
) -> None:
    assert refuse(text, kind=kind, features=features) == message


def test_stored_expressions_have_every_feature() -> None:
    compiler = DeviceCompiler(CelFeatures(consumable_capacity=False, list_attributes=False))
    text = "device.allowMultipleAllocations && device.attributes['a'].b.includes(1)"
    assert compiler.compile(text, scope=Scope.NEW).error is not None
    assert compiler.compile(text, scope=Scope.STORED).error is None


def test_the_cost_limit_ends_an_evaluation() -> None:
    compiled = DeviceCompiler(CelFeatures()).compile("lists.range(1000).all(x, x >= 0)")
    outcome = compiled.evaluate(driver="d", attributes={}, capacity={}, cost_limit=100)
    assert outcome.error == "operation cancelled: actual cost limit exceeded"
