"""Named formats in expressions."""

from __future__ import annotations

import json

import pytest

from moorage.cel.lang.costs import Range
from moorage.cel.library import authz, equality_estimate, strings
from moorage.cel.library.strings import FORMAT_TYPE, FORMATS
from tests.cel.kubernetes import (
    answer,
    argument,
    assert_answers_as_recorded,
    assert_declared_as_recorded,
    error_of,
    estimate,
    value_of,
)


def messages(name: str, text: str) -> list[str]:
    """Return what a format says of a text."""
    found = value_of(f"format.{name}().validate({json.dumps(text)})")
    return list(found.value) if found.has_value else []


def test_functions_are_declared_as_kubernetes_declares_them() -> None:
    assert_declared_as_recorded(
        strings.format_library(), authz.library(), authz.selectors_library()
    )


def test_answers_are_the_recorded_ones() -> None:
    assert_answers_as_recorded({"format"}, at_least=15)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("dns1123Label", "my-name"),
        ("dns1123LabelPrefix", "abc-"),
        ("dns1123LabelPrefix", "a.-"),
        ("dns1123Subdomain", "example.com"),
        ("dns1123SubdomainPrefix", "example.com-"),
        ("dns1035Label", "my-name"),
        ("dns1035LabelPrefix", "a--"),
        ("qualifiedName", "example.com/Name"),
        ("labelValue", ""),
        ("uri", "mailto:a"),
        ("uuid", "123E4567e89b12d3a456426614174000"),
        ("byte", "aGk="),
        ("date", "0000-02-29"),
        ("date", "2000-02-29"),
        ("datetime", "2020-02-29t23:59:59.5z"),
        ("datetime", "2020-02-29T00:00:00x5+99:99Tanything"),
    ],
)
def test_what_is_valid(name: str, text: str) -> None:
    assert messages(name, text) == []


LABEL_RULE = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and "
    "must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex "
    "used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
DNS1035_RULE = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an "
    "alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or "
    "'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"
)


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("dns1123Label", "a.b", ["must not contain dots"]),
        ("dns1123Label", "A" * 64, ["must be no more than 63 characters", LABEL_RULE]),
        ("dns1123LabelPrefix", "-", [LABEL_RULE]),
        ("dns1123LabelPrefix", "é-", [LABEL_RULE]),
        ("dns1035Label", "1abc", [DNS1035_RULE]),
        ("dns1035Label", "a" * 64, ["must be no more than 63 characters"]),
        ("uri", "a b", ['parse "a b": invalid URI for request']),
        ("uuid", "123", ["does not match the UUID format"]),
        ("byte", "", ["invalid base64"]),
        ("byte", "aGk", ["invalid base64"]),
        ("date", "1900-02-29", ["invalid date"]),
        ("date", "2021-13-01", ["invalid date"]),
        ("date", "2021-1-01", ["invalid date"]),
        ("date", "٢٠٢١-01-01", ["invalid date"]),
        ("datetime", "2021-01-01", ["invalid datetime"]),
        ("datetime", "2021-01-01T24:00:00Z", ["invalid datetime"]),
        ("datetime", "2021-01-01T12:00:00", ["invalid datetime"]),
    ],
)
def test_what_is_wrong(name: str, text: str, expected: list[str]) -> None:
    assert messages(name, text) == expected


def test_a_format_is_found_by_its_name() -> None:
    for name in FORMATS:
        assert value_of(f"format.named('{name}').value() == format.{name}()") is True
    assert value_of("format.named('DNS1123Label').hasValue()") is False


def test_formats_are_compared_by_name_and_with_nothing_else() -> None:
    assert value_of("format.date() == format.datetime()") is False
    assert error_of("dyn(format.date()) == dyn('date')") == "no such overload"


def test_validating_costs_by_text_and_pattern() -> None:
    assert answer("format.dns1123Label().validate('abc')").cost == 9
    assert answer("format.uri().validate('http://example.com')").cost == 553
    assert answer("format.uuid().validate('')").cost == 19
    assert answer("format.date().validate('')").cost == 19
    assert estimate("validate", "format-validate", argument(0, 64)) == Range(0, 224)


def test_equality_is_estimated_by_the_longest_name() -> None:
    side = argument(1, type_=FORMAT_TYPE)
    assert equality_estimate(side, side) == Range(1, 7)


def test_authorization_has_costs() -> None:
    assert estimate("check", "pathcheck_check", argument(3)) == Range(350_000, 350_000)
    assert estimate("fieldSelector", "authorizer_fieldselector", argument(0, 5)) == Range(10, 161)
    (selector,) = authz.selectors_library().functions[0].overloads
    assert selector.runtime_cost is not None
    assert selector.runtime_cost((None, "a=b,c"), None) == 161
