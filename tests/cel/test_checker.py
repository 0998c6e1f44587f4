"""The checker: types, and messages about errors."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.cel.lang import ast
from moorage.cel.lang.ast import CheckedAST
from moorage.cel.lang.checker import check
from moorage.cel.lang.environment import Environment, Library
from moorage.cel.lang.errors import CompileError
from moorage.cel.lang.inference import Substitutions
from moorage.cel.lang.macros import STANDARD_MACROS
from moorage.cel.lang.parser import parse
from moorage.cel.lang.program import validate
from moorage.cel.lang.types import (
    BOOL,
    DYN,
    INT,
    NULL,
    STRING,
    Type,
    full_name,
    list_of,
    map_of,
    opaque,
    param,
    same,
    struct,
    type_of,
    wrapper_of,
)
from moorage.cel.lang.values import TypeValue
from tests.cel import recorded
from tests.cel.declared import STANDARD_TYPES, library

FUNCTIONS = {
    "_&&_": ["logical_and: (bool, bool) -> bool"],
    "_||_": ["logical_or: (bool, bool) -> bool"],
    "!_": ["logical_not: (bool) -> bool"],
    "_?_:_": ["conditional: (bool, <A>, <A>) -> <A>"],
    "_==_": ["equals: (<A>, <A>) -> bool"],
    "_+_": [
        "add_int64: (int, int) -> int",
        "add_string: (string, string) -> string",
        "add_list: (list(<A>), list(<A>)) -> list(<A>)",
    ],
    "_<_": ["less_int64: (int, int) -> bool", "less_int64_uint64: (int, uint) -> bool"],
    "_[_]": [
        "index_list: (list(<A>), int) -> <A>",
        "index_map: (map(<A>, <B>), <A>) -> <B>",
        "optional_map_index_value: (optional_type(map(<K>, <V>)), <K>) -> optional_type(<V>)",
    ],
    "@in": ["in_list: (<A>, list(<A>)) -> bool", "in_map: (<A>, map(<A>, <B>)) -> bool"],
    "@not_strictly_false": ["not_strictly_false: (bool) -> bool"],
    "dyn": ["to_dyn: (<A>) -> dyn"],
    "type": ["type: (<A>) -> type(<A>)"],
    "size": ["size_string: (string) -> int", "string_size: string.() -> int"],
    "sets.contains": ["list_sets_contains_list: (list(<T>), list(<T>)) -> bool"],
    "optional.of": ["optional_of: (<V>) -> optional_type(<V>)"],
    "optional.none": ["optional_none: () -> optional_type(<V>)"],
}
VARIABLES = {
    "x": INT,
    "names": list_of(STRING),
    "by_name": map_of(STRING, INT),
    "pod": struct("Pod"),
    "quantity": struct("Quantity"),
    "anything": DYN,
    "a.b.c": STRING,
}
STRUCTS = {"Pod": {"name": STRING, "labels": map_of(STRING, STRING)}}
NO_RANGE = "cannot be range of a comprehension (must be list, map, or dynamic)"
ENVIRONMENT = Environment(
    [
        library(FUNCTIONS, (*STANDARD_TYPES, opaque("net.IP"))),
        Library("macros", macros=STANDARD_MACROS),
    ],
    variables=VARIABLES,
    structs=STRUCTS,
)


def checked(text: str) -> CheckedAST:
    return check(parse(text, ENVIRONMENT.macros), ENVIRONMENT)


def complaints(text: str) -> list[str]:
    with pytest.raises(CompileError) as raised:
        checked(text)
    return [issue.message for issue in raised.value.issues]


@pytest.mark.parametrize(
    ("text", "type_"),
    [
        ("null", "null"),
        ("1 + 2", "int"),
        ("'a' + 'b'", "string"),
        ("[1, 2]", "list(int)"),
        ("[]", "list(dyn)"),
        ("{}", "map(dyn, dyn)"),
        ("[[], [1]]", "list(list(int))"),
        ("[] + [1]", "list(int)"),
        ("[null, pod]", "list(Pod)"),
        ("[pod, null]", "list(null)"),
        ("{'a': [1u]}", "map(string, list(uint))"),
        ("x < 1u", "bool"),
        ("names[0]", "string"),
        ("by_name.foo", "int"),
        ("by_name['foo']", "int"),
        ("pod.labels['a']", "string"),
        ("pod.labels.a", "string"),
        ("has(pod.name)", "bool"),
        ("anything.a.b", "dyn"),
        ("anything + 1", "int"),
        ("anything + anything", "dyn"),
        ("true ? 1 : anything", "dyn"),
        ("type(1)", "type(int)"),
        ("int", "type(int)"),
        ("net.IP", "type(net.IP)"),
        ("Pod", "type(Pod)"),
        ("Pod{name: 'a'}", "Pod"),
        ("a.b.c", "string"),
        (".x", "int"),
        ("names.map(n, size(n))", "list(int)"),
        ("names.filter(n, n == 'a')", "list(string)"),
        ("by_name.exists(k, by_name[k] < 1)", "bool"),
        ("anything.map(a, a.b)", "list(dyn)"),
        ("[].map(a, a + 1)", "list(int)"),
        ("[1, 'a']", "list(dyn)"),
        ("{1: 1, 'a': 'a'}", "map(dyn, dyn)"),
        ("optional.none()", "optional_type(dyn)"),
        ("optional.of(by_name).foo", "optional_type(int)"),
        ("optional.of(by_name)['foo']", "optional_type(int)"),
        ("by_name.?foo", "optional_type(int)"),
        ("{'a': optional.of(1)}.?a", "optional_type(optional_type(int))"),
        ("[?by_name.?foo, 1]", "list(int)"),
        ("{?'a': by_name.?foo}", "map(string, int)"),
        ("google.protobuf.StringValue{value: 'a'}", "wrapper(string)"),
        ("google.protobuf.Int32Value{value: 1} == null", "bool"),
        ("google.protobuf.Struct{fields: {'a': 1}}", "map(string, dyn)"),
        ("google.protobuf.NullValue.NULL_VALUE", "int"),
    ],
)
def test_expression_has_a_type(text: str, type_: str) -> None:
    assert str(checked(text).output_type) == type_


@pytest.mark.parametrize(
    ("text", "messages"),
    [
        ("y", ["undeclared reference to 'y' (in container '')"]),
        ("f(1)", ["undeclared reference to 'f' (in container '')"]),
        ("x.f(1)", ["undeclared reference to 'f' (in container '')"]),
        ("Unknown{}", ["undeclared reference to 'Unknown' (in container '')"]),
        ("1 + 'a'", ["found no matching overload for '_+_' applied to '(int, string)'"]),
        ("size(1)", ["found no matching overload for 'size' applied to '(int)'"]),
        ("x.size()", ["found no matching overload for 'size' applied to 'int.()'"]),
        (
            "[[]] == 1",
            ["found no matching overload for '_==_' applied to '(list(list(dyn)), int)'"],
        ),
        ("x == null", ["found no matching overload for '_==_' applied to '(int, null)'"]),
        ("pod.nose", ["undefined field 'nose'"]),
        ("x.name", ["type 'int' does not support field selection"]),
        ("quantity.name", ["unexpected failed resolution of 'Quantity'"]),
        (
            "x && 'a'",
            ["expected type 'bool' but found 'int'", "expected type 'bool' but found 'string'"],
        ),
        ("[?1]", ["expected type 'optional_type(int)' but found 'int'"]),
        ("{?'a': 1}", ["expected type 'optional_type(int)' but found 'int'"]),
        ("names.all(n, 1)", ["expected type 'bool' but found 'int'"]),
        ("Pod{nose: 1}", ["undefined field 'nose'"]),
        ("Pod{name: 1}", ["expected type of field 'name' is 'string' but provided type is 'int'"]),
        ("int{}", ["'int' is not a message type"]),
        (
            "x.exists(y, y)",
            [f"expression of type 'int' {NO_RANGE}"],
        ),
    ],
)
def test_mistake_is_told(text: str, messages: list[str]) -> None:
    assert complaints(text) == messages


def test_checking_goes_on_after_an_error() -> None:
    assert complaints("y + 1 == size(1) && pod.nose") == [
        "undeclared reference to 'y' (in container '')",
        "found no matching overload for 'size' applied to '(int)'",
        "undefined field 'nose'",
    ]


def test_error_shows_the_place() -> None:
    with pytest.raises(CompileError) as raised:
        checked("pod.name == 1")
    assert str(raised.value) == (
        "ERROR: <input>:1:10: found no matching overload for '_==_' applied to '(string, int)'\n"
        " | pod.name == 1\n"
        " | .........^"
    )


# --- names --------------------------------------------------------------------------------


def test_namespaced_function_becomes_a_global_call() -> None:
    result = checked("sets.contains([1], [])")
    call = result.parsed.expr
    assert isinstance(call, ast.Call)
    assert (call.function, call.target) == ("sets.contains", None)
    assert result.references[call.id].overload_ids == ("list_sets_contains_list",)


def test_qualified_name_becomes_one_identifier() -> None:
    result = checked("a.b.c.size()")
    assert isinstance(result.parsed.expr, ast.Call)
    target = result.parsed.expr.target
    assert isinstance(target, ast.Ident)
    assert target.name == "a.b.c"
    assert result.references[target.id].name == "a.b.c"


def test_type_name_refers_to_the_type_as_value() -> None:
    result = checked("net.IP")
    reference = result.references[result.parsed.expr.id]
    assert reference.value == TypeValue(opaque("net.IP"))


def test_struct_name_refers_to_no_value() -> None:
    result = checked("Pod")
    assert result.references[result.parsed.expr.id].value is None


def test_local_hides_a_variable_unless_a_dot_asks_for_it() -> None:
    result = checked("names.exists(x, x == 'a' && .x == 1)")
    names = {reference.name for reference in result.references.values()}
    assert {"x", ".x"} <= names


def test_local_hides_a_qualified_name() -> None:
    assert str(checked("[{'b': {'c': 1}}].map(a, a.b.c)").output_type) == "list(int)"


def test_dynamic_arguments_keep_all_overloads_that_fit() -> None:
    result = checked("anything + anything")
    ids = result.references[result.parsed.expr.id].overload_ids
    assert ids == ("add_int64", "add_string", "add_list")


def test_deep_expression_is_checked() -> None:
    text = " + ".join(["1"] * 200)
    assert checked(text).output_type == INT


# --- types --------------------------------------------------------------------------------


def test_failed_comparison_teaches_nothing() -> None:
    substitutions = Substitutions()
    unknown = substitutions.fresh_parameter()
    assert not substitutions.assign_all([unknown, INT], [STRING, STRING])
    assert substitutions.resolve(unknown) == unknown
    assert substitutions.assign(unknown, BOOL)
    assert substitutions.resolve(unknown) == BOOL


TYPES = st.recursive(
    st.sampled_from([BOOL, INT, STRING, NULL, DYN, struct("Pod"), param("A"), param("B")]),
    lambda inner: st.one_of(inner.map(list_of), st.builds(map_of, inner, inner)),
    max_leaves=6,
)


@given(TYPES, TYPES)
def test_comparison_teaches_what_makes_it_true_or_nothing(wanted: Type, given_: Type) -> None:
    substitutions = Substitutions()
    if substitutions.assign(wanted, given_):
        assert substitutions.assign(substitutions.resolve(wanted), substitutions.resolve(given_))
    else:
        assert substitutions.resolve(wanted) is wanted
        assert substitutions.resolve(given_) is given_


def test_parameter_never_stands_for_itself() -> None:
    substitutions = Substitutions()
    unknown = param("T")
    assert not substitutions.assign(unknown, list_of(unknown))


def test_parameter_takes_the_more_general_type() -> None:
    substitutions = Substitutions()
    unknown = param("T")
    assert substitutions.assign(unknown, INT)
    assert substitutions.assign(unknown, DYN)
    assert substitutions.resolve(list_of(unknown)) == list_of(DYN)


def test_wrapper_is_the_same_type_as_what_it_wraps() -> None:
    assert same(list_of(wrapper_of(INT)), list_of(INT))
    assert not same(wrapper_of(INT), STRING)


def test_full_name_is_that_of_the_declaration() -> None:
    assert full_name(type_of(list_of(INT))) == "type(list(int))"
    assert str(checked("null").output_type) == "null"
    assert full_name(checked("null").output_type) == "null_type"


def test_overload_declared_in_two_ways_is_refused() -> None:
    other = library({"size": ["size_string: (int) -> int"]})
    with pytest.raises(ValueError, match="size_string"):
        Environment([library(FUNCTIONS), other], variables={}, structs={})


# --- what cannot be real ------------------------------------------------------------------


def test_type_that_doubles_with_every_level_is_refused() -> None:
    text = "x"
    for _ in range(40):
        text = f"[{text}].map(v, {{v: v}})[0]"
    assert complaints(text) == ["expression is too complex to be checked"]


def test_deeply_nested_list_is_checked() -> None:
    type_ = checked("[" * 100 + "]" * 100).output_type
    assert str(type_).count("list") == 100


# --- what Kubernetes answered -------------------------------------------------------------


def test_recorded_types_and_mistakes_are_the_same() -> None:
    different = [
        (case["expression"], outcome, expected)
        for case in recorded.cases()
        if (expected := _expected(case["expect"])) is not None
        and (outcome := _outcome(case)) != expected
    ]
    assert different == []


def _outcome(case: dict[str, Any]) -> str:
    """Return the full name of an expression's type, or what is wrong with it."""
    environment = recorded.case_environment(case)
    try:
        result = recorded.checked(case["expression"], environment)
        validate(result, environment)
    except CompileError as error:
        return f"compilation failed: {error}"
    return full_name(result.output_type)


def _expected(expect: dict[str, Any]) -> str | None:
    """Return what checking should result in, None if only later stages left a trace of it."""
    error = expect["compile_error"] or ""
    if error.startswith("compilation failed: "):
        return str(error)
    if error.startswith("must evaluate to "):
        return str(error).rpartition(", not ")[2]
    type_ = expect["output_type"]
    return None if type_ is None else str(type_)
