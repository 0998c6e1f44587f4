"""Work that costs nothing: functions walk through nested lists, and an evaluation bounds that."""

from __future__ import annotations

import pytest

from moorage.cel.device import COST_LIMIT, CelFeatures, Compiled, DeviceCompiler
from moorage.cel.lang.errors import COST_EXCEEDED
from moorage.cel.lang.unpaid_work import UNPAID_MAX, unpaid_of_evaluation

TEN = "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]"
COMPILER = DeviceCompiler(CelFeatures(list_attributes=True), extensions=False)


def compiled(text: str) -> Compiled:
    found = COMPILER.compile(text)
    assert found.program is not None, found.error
    return found


def evaluate(text: str) -> str | bool:
    outcome = compiled(text).evaluate(driver="d", attributes={}, capacity={})
    return outcome.error or outcome.value


def loops(depth: int, body: str) -> str:
    for number in range(depth):
        body = f"{TEN}.all(x{number}, {body})"
    return body


def nested(depth: int, body: str) -> str:
    """Return an expression whose value v holds one list 2^depth times."""
    text = "[1, 2, 3]"
    for _ in range(depth):
        text = f"cel.bind(v, {text}, [v, v])"
    return f"cel.bind(v, {text}, {body})"


def long_lists(body: str) -> str:
    """Return an expression of two equal lists a and b, which one element of another list holds."""
    return f"cel.bind(a, lists.range(20000), cel.bind(b, lists.range(20000), {body}))"


# Each costs less than the limit, whatever it does.
WALKS = {
    "format": nested(16, loops(1, "'%s'.format([v]).size() > 0")),
    "format a map": nested(16, loops(1, "'%s'.format([{'a': v}]).size() > 0")),
    "flatten": nested(16, loops(1, "v.flatten(20).size() > 0")),
    "==": long_lists(loops(2, "[a] == [b]")),
    "!=": long_lists(loops(2, "!([a] != [b])")),
    "== of maps": long_lists(loops(2, "{'x': a} == {'x': b}")),
    "in": long_lists(loops(2, "a in [b]")),
    "sets.contains": long_lists(loops(2, "sets.contains([a], [b])")),
    "sets.intersects": long_lists(loops(2, "sets.intersects([a], [b])")),
    "distinct": long_lists(loops(2, "[a, b].distinct().size() == 1")),
}
# The same for texts, and for regular expressions that are large or many.
TEXTS = {
    "replace a text": f"cel.bind(v, 'a'.replace('a', '{'b' * 4000}'), "
    + loops(2, "v.replace('b', v.substring(0, 1999)).size() > 0")
    + ")",
    "matches": "cel.bind(v, lists.range(3000).map(x, 'aaaaaaaa').join(''), "
    + loops(2, "v.matches('a{0,500}a{0,500}a{0,500}b') || true")
    + ")",
    "findAll": "cel.bind(v, lists.range(3000).map(x, 'aaaaaaaa').join(''), "
    + loops(2, "v.findAll('a|a[^x]*b').size() > 0")
    + ")",
    "patterns that differ": loops(3, "'a'.matches('[a-zäöü]{900}' + string(x0)) || true"),
    "patterns that are too large": loops(1, r"'a'.matches('\\pL{990}' + string(x0)) || true"),
    "format texts": f"cel.bind(v, '{'b' * 4000}', cel.bind(l, lists.range(1900).map(x, v), "
    + loops(2, f"'{'%s' * 1900}'.format(l).size() > 0")
    + "))",
}


@pytest.mark.parametrize("text", [*WALKS.values(), *TEXTS.values()], ids=[*WALKS, *TEXTS])
def test_an_evaluation_ends_when_it_does_too_much_that_costs_nothing(text: str) -> None:
    assert evaluate(text) == COST_EXCEEDED
    assert unpaid_of_evaluation() > UNPAID_MAX
    assert unpaid_of_evaluation() < 3 * UNPAID_MAX


@pytest.mark.parametrize("text", WALKS.values(), ids=WALKS)
def test_what_is_not_charged_is_admitted_as_if_it_were(text: str) -> None:
    found = compiled(text)
    assert not found.is_cheap
    assert found.admission_cost >= min(COST_LIMIT, 10 * found.cost_max)


def test_the_same_functions_on_little_are_allowed_any_number_of_times() -> None:
    assert evaluate(loops(3, "[[x0]] == [[x0]] && [x0] in [[x0]]")) is True
    assert unpaid_of_evaluation() == 2 * 1000
    assert evaluate(loops(1, "'%s'.format([[x0]]).size() > 0")) is True
    assert unpaid_of_evaluation() < 100


@pytest.mark.parametrize(
    "text",
    [
        'device.attributes["d"].model in ["a", "b"]',
        'device.driver == "d" && [1, 2].all(x, x > 0)',
        'device.driver in ["d", "e"] || device.attributes["d"].x == semver("1.2.3")',
        'device.attributes["d"].list == ["a", "b"]',
    ],
)
def test_usual_expressions_have_no_nested_lists(text: str) -> None:
    found = compiled(text)
    assert found.admission_cost == found.cost_max
    assert found.is_cheap


def test_long_lists_are_compared_as_they_are_charged() -> None:
    assert evaluate(long_lists(loops(1, "a == b"))) is True
    assert unpaid_of_evaluation() == 0


def test_the_regular_expressions_of_an_expression_are_bounded_when_it_is_compiled() -> None:
    many = [rf"'a'.matches('\\pL{{{number}}}')" for number in range(150, 250)]
    refused = COMPILER.compile(" || ".join(many))
    assert refused.error is not None
    assert refused.error.count("invalid matches argument") == 98
    assert UNPAID_MAX < refused.unpaid < 2 * UNPAID_MAX
    assert COMPILER.compile(many[0]).error is None


def test_the_last_occurrence_is_found() -> None:
    assert evaluate("'abcabc'.lastIndexOf('bc') == 4 && 'abcabc'.lastIndexOf('x') == -1") is True
    assert evaluate("'abcabc'.lastIndexOf('bc', 3) == 1 && 'abc'.lastIndexOf('') == 3") is True
    assert evaluate("'aaa'.lastIndexOf('aa') == 1 && 'ä€ä'.lastIndexOf('ä') == 2") is True
