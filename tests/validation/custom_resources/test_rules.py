"""CEL rules of custom resources: Kubernetes' documented rules, row by row."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.api.json_schema import read_schema
from moorage.validation.custom_resources.correlation import Correlated
from moorage.validation.custom_resources.rule_validator import rule_validator
from moorage.validation.custom_resources.structural import structural

RULES = "x-kubernetes-validations"
SPEC = {
    "type": "object",
    "properties": {
        "n": {"type": "integer"},
        "f": {"type": "number"},
        "s": {"type": "string"},
        "namespace": {"type": "string"},
        "a-b": {"type": "string"},
        "t": {"type": "string", "format": "date-time"},
        "d": {"type": "string", "format": "duration"},
        "p": {"x-kubernetes-int-or-string": True},
        "o": {"type": "string", "nullable": True},
        "set": {
            "type": "array",
            "items": {"type": "string"},
            "x-kubernetes-list-type": "set",
        },
        "m": {"type": "object", "additionalProperties": {"type": "integer"}},
        "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    },
}


def errors(rule: dict[str, Any] | str, value: Any, old: Any = None, spec: Any = None) -> list[str]:
    """Return the errors of one rule on the spec of an object."""
    rules = [{"rule": rule} if isinstance(rule, str) else rule]
    spec = SPEC if spec is None else spec
    tree = {"type": "object", "properties": {"spec": {**spec, RULES: rules}}}
    schema = structural(read_schema(tree, (), []))
    validator = rule_validator(schema)
    assert validator is not None
    new = {"spec": value}
    correlated = None if old is None else Correlated(new, {"spec": old}, schema)
    return [str(error) for error in validator.validate(new, correlated)]


@pytest.mark.parametrize(
    ("rule", "value", "holds"),
    [
        ("self.n > 1", {"n": 2}, True),
        ("self.n > 1", {"n": 1}, False),
        ("self.f == 2.0", {"f": 2}, True),
        ("has(self.s) && self.s.startsWith('a')", {"s": "ab"}, True),
        ("!has(self.s)", {}, True),
        ("self.namespace == 'x'", {"namespace": "x"}, True),
        ("self.__namespace__ == 'x'", {"namespace": "x"}, True),
        ("self.a__dash__b == 'x'", {"a-b": "x"}, True),
        ("self.t > timestamp('2020-01-01T00:00:00Z')", {"t": "2021-01-01T00:00:00Z"}, True),
        ("self.d <= duration('1h')", {"d": "30m"}, True),
        ("type(self.p) == int ? self.p > 1 : self.p == '5%'", {"p": "5%"}, True),
        ("type(self.p) == int ? self.p > 1 : self.p == '5%'", {"p": 1}, False),
        ("!has(self.o)", {"o": None}, True),
        ("self.set == ['b', 'a']", {"set": ["a", "b"]}, True),
        ("self.m.all(k, self.m[k] > 0)", {"m": {"x": 1, "y": 0}}, False),
        ("self.m.exists(k, k == 'x')", {"m": {"x": 1}}, True),
        ("self.s.matches('^[a-z]+$')", {"s": "abc"}, True),
        ("quantity(self.s).isGreaterThan(quantity('1Gi'))", {"s": "2Gi"}, True),
        ("isIP(self.s) && ip(self.s).family() == 4", {"s": "1.2.3.4"}, True),
        ("url(self.s).getHost() == 'example.com'", {"s": "https://example.com/x"}, True),
        ("format.dns1123Label().validate(self.s).hasValue()", {"s": "UPPER"}, True),
    ],
)
def test_rules(rule: str, value: dict[str, Any], holds: bool) -> None:
    assert errors(rule, value) == ([] if holds else [f"spec: Invalid value: failed rule: {rule}"])


def test_messages_reasons_and_paths() -> None:
    base = {"rule": "self.n > 1"}
    assert errors({**base, "message": " too small "}, {"n": 0}) == [
        "spec: Invalid value: too small"
    ]
    assert errors({**base, "messageExpression": "'n is ' + self.s"}, {"n": 0, "s": "bad"}) == [
        "spec: Invalid value: n is bad"
    ]
    fallback = {**base, "message": "plain", "messageExpression": "self.s"}
    assert errors(fallback, {"n": 0}) == ["spec: Invalid value: plain"]
    assert errors({**base, "fieldPath": ".n"}, {"n": 0}) == [
        "spec.n: Invalid value: failed rule: self.n > 1"
    ]
    for reason, wanted in (
        ("FieldValueRequired", "spec: Required value: failed rule: self.n > 1"),
        ("FieldValueForbidden", "spec: Forbidden: failed rule: self.n > 1"),
        ("FieldValueInvalid", "spec: Invalid value: failed rule: self.n > 1"),
    ):
        assert errors({**base, "reason": reason}, {"n": 0}) == [wanted]


def test_errors_of_evaluation() -> None:
    assert errors("self.n / 0 == 1", {"n": 1}) == [
        'spec: Invalid value: "object": division by zero evaluating rule: self.n / 0 == 1'
    ]
    assert errors("self.n > 1", {}) == [
        'spec: Invalid value: "object": no such key: n evaluating rule: self.n > 1'
    ]
    assert errors("self.p > 1", {"p": "x"})[0].startswith(
        'spec: Invalid value: "object": \'no such overload'
    )


def test_transition_rules_need_an_old_value() -> None:
    rule = "self.n >= oldSelf.n"
    assert errors(rule, {"n": 1}) == []
    assert errors(rule, {"n": 1}, {"n": 2}) == [f"spec: Invalid value: failed rule: {rule}"]
    optional = {"rule": "oldSelf.hasValue() || self.n == 0", "optionalOldSelf": True}
    assert errors(optional, {"n": 0}) == []
    assert len(errors(optional, {"n": 1})) == 1
    assert errors(optional, {"n": 1}, {"n": 1}) == []


def test_unchanged_values_break_no_rule_but_those_about_the_past() -> None:
    assert errors("self.n > 1", {"n": 0}, {"n": 0}) == []
    assert len(errors("self.n > 1", {"n": 0, "s": "x"}, {"n": 0})) == 1
    assert len(errors("oldSelf.n > 1", {"n": 0}, {"n": 0})) == 1


def test_a_rule_that_cannot_be_evaluated_is_an_error_of_an_unchanged_value_too() -> None:
    assert errors("self.m['a'] > 1", {"n": 0}, {"n": 0}) == [
        "spec: Invalid value: \"object\": no such key: m evaluating rule: self.m['a'] > 1"
    ]


def test_an_object_has_a_budget() -> None:
    deep = "self.m.all(a, self.m.all(b, self.m.all(c, a != '-' && b != '-' && c != '-')))"
    value = {"m": {f"k{i}": i for i in range(150)}}
    (fault,) = errors(deep, value)
    assert "operation cancelled: actual cost limit exceeded" in fault
    assert "no further validation rules will be run due to call cost exceeds limit" in fault


def test_rules_of_items_and_members() -> None:
    item = {
        "type": "object",
        "properties": {"v": {"type": "integer"}},
        RULES: [{"rule": "self.v > 0"}],
    }
    spec = {
        "type": "object",
        "properties": {"l": {"type": "array", "items": item}},
        "x-kubernetes-validations": [],
    }
    found = errors("true", {"l": [{"v": 1}, {"v": 0}]}, spec=spec)
    assert found == ["spec.l[1]: Invalid value: failed rule: self.v > 0"]


def test_rules_have_no_names_for_values_as_expressions_about_devices_have() -> None:
    (fault,) = errors("cel.bind(x, self.n, x == x)", {"n": 1})
    assert "undeclared reference to 'cel'" in fault
