"""Literals that cannot be meant."""

from __future__ import annotations

import pytest

from moorage.cel.lang.checker import check
from moorage.cel.lang.errors import CompileError
from moorage.cel.lang.parser import parse
from moorage.cel.lang.program import validate
from tests.cel.recorded import device_environment

ENVIRONMENT = device_environment(consumable=True, lists=True)


def complaints(text: str) -> list[str]:
    checked = check(parse(text, ENVIRONMENT.macros), ENVIRONMENT)
    try:
        validate(checked, ENVIRONMENT)
    except CompileError as error:
        return [issue.message for issue in error.issues]
    return []


@pytest.mark.parametrize(
    ("text", "messages"),
    [
        ("duration('1s')", []),
        ("duration('x')", ["invalid duration argument"]),
        ("duration(device.driver)", []),
        ("timestamp('2024-01-01T00:00:00Z')", []),
        ("timestamp('2024-01-01')", ["invalid timestamp argument"]),
        ("timestamp(253402300800)", ["invalid timestamp argument"]),
        ("'a'.matches('a+')", []),
        ("'a'.matches('(')", ["invalid matches argument"]),
        ("'a'.matches(device.driver)", []),
        ("[1, 2]", []),
        ("[1, 'a', 2u]", ["expected type 'int' but found 'string'"]),
        ("[1, dyn(2)]", ["expected type 'int' but found 'dyn'"]),
        ("[[], [1]]", []),
        ("[?optional.of(1), 2]", []),
        ("{1: 1, 'a': 'a'}", ["expected type 'int' but found 'string'"] * 2),
        ("{'a': 1, ?'b': optional.of(2)}", []),
        ("'%s %d'.format(['a', 1])", []),
        ("'%d'.format([[1, 'a'].size()])", []),
        ("'%s'.format([])", ["index 0 out of range"]),
    ],
)
def test_literal_is_looked_at(text: str, messages: list[str]) -> None:
    assert complaints(text) == messages


def test_of_the_global_form_the_text_is_looked_at() -> None:
    assert complaints("matches('(', 'a')") == ["invalid matches argument"]
    assert complaints("matches('a', '(')") == []


def test_all_mistakes_are_told_at_once() -> None:
    assert complaints("[1, 'a'] == [] && duration('x') == duration('y')") == [
        "expected type 'int' but found 'string'",
        "invalid duration argument",
        "invalid duration argument",
    ]


def test_error_shows_the_place() -> None:
    checked = check(parse("duration('x') == duration('1s')", ENVIRONMENT.macros), ENVIRONMENT)
    with pytest.raises(CompileError, match=r"<input>:1:10: invalid duration argument"):
        validate(checked, ENVIRONMENT)
