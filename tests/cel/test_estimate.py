"""Cost estimates of expressions, before evaluation."""

from __future__ import annotations

from dataclasses import replace

import pytest

from moorage.cel.device import device_sizes
from moorage.cel.lang import macros
from moorage.cel.lang.checker import check
from moorage.cel.lang.cost_estimator import estimate_cost
from moorage.cel.lang.costs import (
    IMPOSSIBLE,
    UNBOUNDED,
    UNKNOWN,
    Argument,
    CallEstimate,
    DeclaredSizes,
    Path,
    Range,
    SizeBound,
    add,
    exactly,
    multiply,
    scale,
    union,
)
from moorage.cel.lang.environment import Environment, Function, Library
from moorage.cel.lang.macros import STANDARD_MACROS
from moorage.cel.lang.parser import parse
from moorage.cel.lang.types import STRING, map_of, struct
from tests.cel import recorded
from tests.cel.declared import overload

FUNCTIONS = {
    "_&&_": ["logical_and: (bool, bool) -> bool"],
    "_||_": ["logical_or: (bool, bool) -> bool"],
    "!_": ["logical_not: (bool) -> bool"],
    "_?_:_": ["conditional: (bool, <A>, <A>) -> <A>"],
    "_==_": ["equals: (<A>, <A>) -> bool"],
    "_+_": ["add_int64: (int, int) -> int", "add_list: (list(<A>), list(<A>)) -> list(<A>)"],
    "_[_]": ["index_list: (list(<A>), int) -> <A>", "index_map: (map(<A>, <B>), <A>) -> <B>"],
    "@not_strictly_false": ["not_strictly_false: (bool) -> bool"],
    "dyn": ["to_dyn: (<A>) -> dyn"],
    "shout": ["string_shout: string.() -> string"],
}


def _shout(target: Argument | None, _args: tuple[Argument, ...]) -> CallEstimate:
    """One unit per character; what comes out is twice as long."""
    assert target is not None
    return CallEstimate(target.size, multiply(target.size, exactly(2)))


def _join(_target: Argument | None, args: tuple[Argument, ...]) -> CallEstimate:
    return CallEstimate(exactly(1), add(args[0].size, args[1].size))


def _equality(_target: Argument | None, args: tuple[Argument, ...]) -> CallEstimate:
    return CallEstimate(Range(1, min(args[0].size.high, args[1].size.high)))


ESTIMATES = {"string_shout": _shout, "add_list": _join, "equals": _equality}


def _function(name: str, signatures: list[str]) -> Function:
    overloads = [overload(text) for text in signatures]
    return Function(
        name, tuple(replace(each, estimate=ESTIMATES.get(each.id)) for each in overloads)
    )


ENVIRONMENT = Environment(
    [
        Library(
            "functions",
            functions=tuple(_function(name, texts) for name, texts in FUNCTIONS.items()),
            macros=STANDARD_MACROS,
        ),
        macros.bindings_library(),
        macros.two_variable_library(),
    ],
    variables={"pod": struct("Pod"), "x": STRING},
    structs={"Pod": {"name": STRING, "labels": map_of(STRING, map_of(STRING, STRING))}},
)
LABELS = SizeBound(
    5, keys=SizeBound(40), values=SizeBound(4, keys=SizeBound(30), values=SizeBound(20))
)
SIZES = DeclaredSizes({"pod": SizeBound(0, fields={"name": SizeBound(10), "labels": LABELS})})


def cost(text: str) -> Range:
    checked = check(parse(text, ENVIRONMENT.macros), ENVIRONMENT)
    return estimate_cost(checked, ENVIRONMENT, size_hints=SIZES)


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        ("1", 0, 0),
        ("x", 1, 1),
        ("pod.name", 2, 2),
        ("has(pod.name)", 1, 1),
        ("dyn(pod).name", 2, 2),
        ("[1, x]", 11, 11),
        ("{'a': x}", 31, 31),
        ("Pod{name: x}", 41, 41),
        ("1 + 1", 1, 1),
        ("x == x && pod.name == x", 3, UNBOUNDED),
        ("true ? 1 + 1 : 2", 0, 1),
        ("'ab'.shout()", 2, 2),
        ("'ab'.shout().shout()", 6, 6),
        ("pod.name.shout()", 2, 12),
        ("pod.labels['a']['b'].shout()", 4, 24),
        ("x.shout()", 1, UNBOUNDED),
        ("(true ? 'a' : 'abc').shout()", 1, 3),
        ("['a', 'abc'][0].shout()", 12, 14),
        ("(['a'] + ['abc'])[0].shout()", 23, 25),
        ("dyn('ab') == dyn('abc')", 3, 4),
    ],
)
def test_expression_costs_from_to(text: str, low: int, high: int) -> None:
    assert cost(text) == Range(low, high)


def test_right_side_may_never_be_looked_at() -> None:
    assert cost("pod.name == '' || x.shout() == ''") == Range(3, UNBOUNDED)


def test_loop_costs_its_step_for_every_element() -> None:
    one = cost("['ab'].all(e, e.shout() == '')")
    three = cost("['ab', 'ab', 'ab'].all(e, e.shout() == '')")
    step = Range(three.low - one.low, three.high - one.high)
    assert (step.low % 2, step.high % 2) == (0, 0)
    assert three == add(one, step)


def test_loop_over_a_variable_is_bounded_by_its_size() -> None:
    assert cost("pod.labels.exists(d, d.shout() == '')").high < UNBOUNDED
    assert cost("x == '' && [x].exists(e, e.shout() == '')").high == UNBOUNDED


def test_two_variables_have_the_sizes_of_keys_and_values() -> None:
    keys = cost("pod.labels['a'].all(k, v, k.shout() == '')")
    values = cost("pod.labels['a'].all(k, v, v.shout() == '')")
    assert keys.high == values.high
    assert cost("{'abc': 'a'}.all(k, v, k.shout() == '')").high > (
        cost("{'abc': 'a'}.all(k, v, v.shout() == '')").high
    )


def test_bound_value_keeps_its_size() -> None:
    assert cost("cel.bind(n, pod.name, n.shout())") == Range(13, 23)


def test_nothing_is_known_without_hints() -> None:
    checked = check(parse("pod.name.shout()", ENVIRONMENT.macros), ENVIRONMENT)
    assert estimate_cost(checked, ENVIRONMENT, size_hints=DeclaredSizes({})).high == UNBOUNDED


def test_deep_expression_is_estimated() -> None:
    assert cost(" + ".join(["1"] * 200)) == exactly(199)


# --- paths and ranges ---------------------------------------------------------------------


def test_path_overwrites_what_shares_its_memory() -> None:
    common = Path("pod").then("labels").then("@values")
    first = common.then("@keys")
    assert first.steps == ("pod", "labels", "@values", "@keys")
    common.then("name")
    assert first.steps == ("pod", "labels", "@values", "name")


def test_path_with_memory_of_its_own_stays() -> None:
    first = Path("pod").then("labels")
    Path("pod").then("name")
    assert first.steps == ("pod", "labels")


def test_sums_and_products_stay_below_the_bound() -> None:
    assert add(UNKNOWN, exactly(5)) == Range(5, UNBOUNDED)
    assert multiply(UNKNOWN, exactly(5)) == Range(0, UNBOUNDED)
    assert scale(Range(1, UNBOUNDED), 2.0) == Range(2, UNBOUNDED)


def test_scale_rounds_up() -> None:
    assert scale(Range(1, 64), 0.1) == Range(1, 7)
    assert scale(UNKNOWN, 0.1) == Range(0, 1844674407370955264)


def test_union_with_the_impossible_is_the_other() -> None:
    assert union(IMPOSSIBLE, Range(2, 3)) == Range(2, 3)


# --- what Kubernetes answered -------------------------------------------------------------


def test_recorded_estimates_are_the_same() -> None:
    sizes = device_sizes()
    different = []
    for case in recorded.cases():
        expected = case["expect"]["max_cost_estimate"]
        if expected is None:
            continue
        environment = recorded.case_environment(case)
        checked = recorded.checked(case["expression"], environment)
        estimate = estimate_cost(checked, environment, size_hints=sizes)
        if estimate.high != expected:
            different.append((case["expression"], estimate.high, expected))
    assert different == []
