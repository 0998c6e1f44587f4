"""Values against schemas: Kubernetes' documented rules and kube-openapi's messages, row by row."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from moorage.api.errors import DecodeError
from moorage.api.json_schema import DEPTH_MAX, plain_json, read_schema
from moorage.validation.custom_resources.correlation import Correlated
from moorage.validation.custom_resources.defaulting import defaulted
from moorage.validation.custom_resources.formats import format_check
from moorage.validation.custom_resources.list_types import validate_list_types
from moorage.validation.custom_resources.pruning import pruned
from moorage.validation.custom_resources.schema_validator import SchemaValidator
from moorage.validation.custom_resources.structural import structural

INT_OR_STRING = {
    "x-kubernetes-int-or-string": True,
    "anyOf": [{"type": "integer"}, {"type": "string"}],
}


def at_a(tree: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"a": tree}, **fields}


# schema of a, value of a, errors
ROWS: list[tuple[dict[str, Any], Any, list[str]]] = [
    ({"type": "string"}, "x", []),
    (
        {"type": "string"},
        1,
        ['a: Invalid value: "integer": a in body must be of type string: "integer"'],
    ),
    (
        {"type": "string"},
        None,
        ['a: Invalid value: "null": a in body must be of type string: "null"'],
    ),
    ({"type": "string", "nullable": True}, None, []),
    (
        {"type": "integer"},
        1.5,
        [
            'a: Invalid value: "number": a in body must be of type integer: "number"',
            '<nil>: Invalid value: "": Checked value must be of type integer (default format) in a',
        ],
    ),
    ({"type": "number"}, 1, []),
    (
        {"type": "boolean"},
        "true",
        ['a: Invalid value: "string": a in body must be of type boolean: "string"'],
    ),
    (
        {"type": "integer", "format": "int32"},
        2**31,
        ['<nil>: Invalid value: "": Checked value must be of type integer with format int32 in a'],
    ),
    (
        {"type": "integer", "minimum": 3},
        2,
        ["a: Invalid value: 2: a in body should be greater than or equal to 3"],
    ),
    (
        {"type": "integer", "minimum": 3, "exclusiveMinimum": True},
        3,
        ["a: Invalid value: 3: a in body should be greater than 3"],
    ),
    (
        {"type": "number", "maximum": 1.5},
        2.5,
        ["a: Invalid value: 2.5: a in body should be less than or equal to 1.5"],
    ),
    (
        {"type": "integer", "multipleOf": 3},
        4,
        ["a: Invalid value: 4: a in body should be a multiple of 3"],
    ),
    (
        {"type": "string", "minLength": 2},
        "é",
        ['a: Invalid value: "é": a in body should be at least 2 chars long'],
    ),
    ({"type": "string", "maxLength": 1}, "ab", ["a: Too long: may not be more than 1 byte"]),
    (
        {"type": "string", "pattern": "^[a-z]+$"},
        "A",
        ["a: Invalid value: \"A\": a in body should match '^[a-z]+$'"],
    ),
    (
        {"type": "string", "enum": ["x", "y"]},
        "z",
        ['a: Unsupported value: "z": supported values: "x", "y"'],
    ),
    ({"type": "integer", "enum": [1, 2]}, 2, []),
    (
        {"type": "array", "items": {"type": "string"}, "minItems": 1},
        [],
        ["a: Invalid value: 0: a in body should have at least 1 items"],
    ),
    (
        {"type": "array", "items": {"type": "string"}, "maxItems": 1},
        ["x", "y"],
        ["a: Too many: 2: must have at most 1 item"],
    ),
    (
        {"type": "array", "items": {"type": "string"}},
        ["x", 1],
        ['a[1]: Invalid value: "integer": a[1] in body must be of type string: "integer"'],
    ),
    (
        {"type": "object", "additionalProperties": {"type": "string"}},
        {"k": 1},
        ['a.k: Invalid value: "integer": a.k in body must be of type string: "integer"'],
    ),
    (
        {"type": "object", "additionalProperties": {"type": "string"}, "maxProperties": 1},
        {"k": "", "l": ""},
        ["a: Too many: 2: must have at most 1 item"],
    ),
    ({"type": "object", "required": ["b"]}, {}, ["a.b: Required value"]),
    (INT_OR_STRING, 1, []),
    (INT_OR_STRING, "80%", []),
    (
        {"type": "string", "format": "date-time"},
        "yesterday",
        [
            'a: Invalid value: "yesterday": a in body must be of type date-time: "yesterday"',
        ],
    ),
    ({"type": "string", "format": "nobody-knows-it"}, "x", []),
    (
        {"type": "string", "not": {"enum": ["x"]}},
        "x",
        ['<nil>: Invalid value: "": "a" must not validate the schema (not)'],
    ),
    (
        {"type": "string", "oneOf": [{"minLength": 1}, {"maxLength": 2}]},
        "x",
        [
            (
                '<nil>: Invalid value: "": "a" must validate one and only one schema (oneOf). '
                "Found 2 valid alternatives"
            )
        ],
    ),
    (
        {"type": "string", "allOf": [{"minLength": 2}, {"maxLength": 9}]},
        "x",
        [
            'a: Invalid value: "x": a in body should be at least 2 chars long',
            '<nil>: Invalid value: "": "a" must validate all the schemas (allOf)',
        ],
    ),
    (
        {"type": "string", "anyOf": [{"minLength": 2}, {"pattern": "^y"}]},
        "x",
        [
            '<nil>: Invalid value: "": "a" must validate at least one schema (anyOf)',
            'a: Invalid value: "x": a in body should be at least 2 chars long',
        ],
    ),
    ({"x-kubernetes-preserve-unknown-fields": True}, {"any": [1, "x", None]}, []),
]


@pytest.mark.parametrize(("tree", "value", "errors"), ROWS)
def test_values(tree: dict[str, Any], value: Any, errors: list[str]) -> None:
    found = SchemaValidator(at_a(tree)).errors({"a": value})
    assert [str(error) for error in found] == errors


def test_what_an_update_leaves_unchanged_breaks_no_rule() -> None:
    """The rules of ratcheting: unchanged values, by name or key, and their parents."""
    item = {"type": "object", "properties": {"n": {"type": "string"}, "v": {"maximum": 1}}}
    items = {
        "type": "array",
        "items": item,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["n"],
    }
    tree = {
        "type": "object",
        "properties": {"a": {"maximum": 1}, "b": {"maximum": 1}, "l": items, "x": {}},
    }
    validator, schema = SchemaValidator(tree), structural(tree)

    def errors(new: Any, old: Any) -> list[str]:
        return [error.field for error in validator.errors(new, None, Correlated(new, old, schema))]

    assert errors({"a": 5, "b": 5}, {"a": 5, "b": 4}) == ["b"]
    assert errors({"a": 5, "x": 1}, {"a": 5, "x": 2}) == []
    old = {"l": [{"n": "p", "v": 5}, {"n": "q", "v": 5}]}
    new = {"l": [{"n": "q", "v": 5}, {"n": "p", "v": 6}, {"n": "r", "v": 7}]}
    assert errors(new, old) == ["l[1].v", "l[2].v"]


# --- pruning and defaulting -----------------------------------------------------------------------


def test_pruning_follows_the_schema() -> None:
    tree = {
        "type": "object",
        "properties": {
            "kept": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
            "map": {"type": "object", "additionalProperties": {"type": "object"}},
            "list": {"type": "array", "items": {"type": "object", "properties": {"a": {}}}},
            "inner": {
                "type": "object",
                "x-kubernetes-embedded-resource": True,
                "properties": {"spec": {"type": "object"}},
            },
        },
    }
    value = {
        "kept": {"x": {"y": 1}},
        "map": {"k": {"x": 1}},
        "list": [{"a": 1, "b": 2}],
        "inner": {"apiVersion": "v1", "kind": "P", "metadata": {"name": "n"}, "x": 1},
        "other": 1,
    }
    unknown: list[Any] = []
    after = pruned(value, structural(tree), unknown)
    assert after == {
        "kept": {"x": {"y": 1}},
        "map": {"k": {}},
        "list": [{"a": 1}],
        "inner": {"apiVersion": "v1", "kind": "P", "metadata": {"name": "n"}},
    }
    assert sorted(map(str, unknown)) == sorted(
        map(str, [("map", "k", "x"), ("list", 0, "b"), ("inner", "x"), ("other",)])
    )
    assert pruned(after, structural(tree), []) is after


DEFAULTS = {
    "type": "object",
    "properties": {
        "a": {"type": "string", "default": "x"},
        "b": {"type": "string", "nullable": True, "default": "x"},
        "c": {"type": "string"},
        "d": {"type": "object", "default": {}, "properties": {"e": {"default": 1}}},
        "l": {"type": "array", "items": {"type": "object", "properties": {"f": {"default": 2}}}},
    },
}


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        ({}, {"a": "x", "b": "x", "d": {"e": 1}}),
        ({"a": None, "b": None, "c": None}, {"a": "x", "b": None, "d": {"e": 1}}),
        ({"a": "", "b": "y", "d": {"e": 5}}, {"a": "", "b": "y", "d": {"e": 5}}),
        ({"l": [{}, {"f": 3}]}, {"a": "x", "b": "x", "d": {"e": 1}, "l": [{"f": 2}, {"f": 3}]}),
    ],
)
def test_defaults(value: dict[str, Any], wanted: dict[str, Any]) -> None:
    assert defaulted(value, structural(DEFAULTS)) == wanted


JSON = some.recursive(
    some.none() | some.booleans() | some.integers(-5, 5) | some.text(max_size=2),
    lambda inner: (
        some.lists(inner, max_size=3)
        | some.dictionaries(some.sampled_from("abcdelf"), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(JSON)
def test_pruning_and_defaulting_are_done_once(value: Any) -> None:
    schema = structural(DEFAULTS)
    after = defaulted(pruned(value, schema, []), schema)
    assert defaulted(pruned(after, schema, []), schema) == after


@given(JSON)
def test_no_json_makes_a_validator_fail(value: Any) -> None:
    for tree, _, _ in ROWS:
        SchemaValidator(at_a(tree)).errors({"a": value})
    validate_list_types({"l": value}, structural(DEFAULTS), None)


# --- lists, formats, schemas ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "value", "errors"),
    [
        ("set", ["a", "b"], []),
        ("set", ["a", "b", "a", "a"], ['l[2]: Duplicate value: "a"']),
        ("set", [1, True], []),
        ("map", [{"k": 1}, {"k": 1, "v": 2}], ['l[1]: Duplicate value: {"k":1}']),
        (
            "map",
            [{"k": 1}, 5],
            ["l[1]: Invalid value: 5: must be an object for an array of list-type map"],
        ),
        ("atomic", ["a", "a"], []),
    ],
)
def test_list_types(kind: str, value: list[Any], errors: list[str]) -> None:
    items = {"type": "array", "x-kubernetes-list-type": kind, "x-kubernetes-list-map-keys": ["k"]}
    schema = structural({"type": "object", "properties": {"l": items}})
    assert [str(e) for e in validate_list_types({"l": value}, schema, None)] == errors


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("date-time", "2014-12-15T19:30:20.000Z", "2014-12-15"),
        ("date", "2006-01-02", "2006-13-02"),
        ("duration", "1h30m", "long"),
        ("duration", "22 ns", ""),
        ("ipv4", "192.168.0.1", "300.1.1.1"),
        ("ipv6", "fe80::1", "1.2.3.4"),
        ("cidr", "10.0.0.0/8", "10.0.0.0"),
        ("mac", "01:23:45:67:89:ab", "01:23"),
        ("uuid", "A987FBC9-4BED-3078-CF07-9141BA07C9F3", "x"),
        ("uuid4", "57b73598-8764-4ad0-a76a-679bb6640eb1", "A987FBC9-4BED-3078-CF07-9141BA07C9F3"),
        ("uri", "https://example.com/x", "::"),
        ("email", "a@example.com", "example.com"),
        ("hostname", "example.com", "-x-"),
        ("hostname", "a-b", "a-b-c"),  # as upstream's expression has it
        ("hostname", "a-b-c.4$.ExAmPle", "a.b"),
        ("hostname", "ünïcode.中国", "a-.com"),
        ("hostname", "a" * 63, "a" * 64),
        ("hostname", f"{'a' * 49}." * 5 + "examp", f"{'a' * 49}." * 5 + "example"),
        ("hostname", "x1", "a..com"),
        ("byte", "aGVsbG8=", "a"),
        ("isbn13", "978-0321751041", "978-0321751042"),
        ("isbn10", "0321751043", "0321751044"),
        ("creditcard", "4111 1111 1111 1111", "4111 1111 1111 1112"),
        ("hexcolor", "#FFFFFF", "#FFFFF"),
        ("rgbcolor", "rgb(255,255,255)", "rgb(256,0,0)"),
        ("ssn", "111-22-3333", "11-22-3333"),
        ("k8s-short-name", "a-b", "a.b"),
        ("k8s-long-name", "a.b", "a..b"),
        ("password", "anything", None),
    ],
)
def test_formats(name: str, good: str, bad: str | None) -> None:
    check = format_check(name)
    assert check is not None
    assert check(good)
    assert bad is None or not check(bad)


def test_a_long_list_of_hostnames_is_validated() -> None:
    schema = {"type": "array", "items": {"type": "string", "format": "hostname"}}
    names = [f"host-{number}.{'a' * 60}.example.com" for number in range(1000)]
    assert SchemaValidator(at_a(schema)).errors({"a": names}) == []


# --- objects and schemas that are much work together ------------------------------------------

ALTERNATIVES = {"type": "string", "anyOf": [{"pattern": f"^a*b{n}$"} for n in range(1000)]}
TOO_MANY = "<nil>: Invalid value: more than 1,000,000 checks by the schema and its alternatives"


@pytest.mark.parametrize(
    ("items", "value"),
    [
        (ALTERNATIVES, ["a"] * 1000),
        ({"type": "string", "oneOf": ALTERNATIVES["anyOf"]}, ["a"] * 1000),
        (ALTERNATIVES, ["a" * 300_000]),  # much for each pattern
        ({"not": {"not": {"not": {"anyOf": [{"pattern": "b"}] * 900}}}}, ["0"] * 1200),
    ],
)
def test_checks_are_bounded(items: dict[str, Any], value: list[Any]) -> None:
    schema = SchemaValidator(at_a({"type": "array", "items": items}))
    assert list(map(str, schema.errors({"a": value}))) == [TOO_MANY]
    assert list(map(str, schema.errors({"a": [item[:9] for item in value[:9]]}))) != [TOO_MANY]


def test_a_long_enum_is_no_work() -> None:
    values = [f"v{n}" for n in range(9000)]
    schema = SchemaValidator(at_a({"type": "array", "items": {"enum": values}}))
    assert schema.errors({"a": values * 10}) == []
    assert len(schema.errors({"a": ["x"] * 9000})) == 1000


@pytest.mark.parametrize(
    ("value", "allowed", "is_allowed"),
    [
        (1, [1.0], True),
        (1, [True], False),
        (False, [0], False),
        ("1", [1], False),
        ([1, {"a": True}], [[1.0, {"a": True}]], True),
        ([1, {"a": True}], [[1.0, {"a": 1}]], False),
        ({"a": 1, "b": 2}, [{"b": 2, "a": 1}], True),
        ([], [{}], False),
    ],
)
def test_values_of_enums_are_equal_as_json(value: Any, allowed: Any, is_allowed: bool) -> None:
    found = SchemaValidator(at_a({"enum": allowed})).errors({"a": value})
    assert (not found) is is_allowed


def test_defaults_of_one_object_are_bounded() -> None:
    item = at_a({"type": "string", "default": "x" * 50_000})
    schema = structural(at_a({"type": "array", "items": item}))
    assert defaulted({"a": [{}]}, schema) == {"a": [{"a": "x" * 50_000}]}
    with pytest.raises(DecodeError, match="defaults of its schema are more than 3,145,728 bytes"):
        defaulted({"a": [{}] * 63}, schema)
    null = structural(at_a({"type": "array", "items": {"type": "string", "default": "x" * 9000}}))
    with pytest.raises(DecodeError, match="defaults of its schema"):
        defaulted({"a": [None] * 400}, null)


def test_schemas_are_read_as_kubernetes_reads_them() -> None:
    unknown: list[Any] = []
    tree = {"type": "object", "minimum": 1.0, "title": "", "bogus": 1, "items": {"bogus": 1}}
    assert read_schema(tree, (), unknown) == {"type": "object", "minimum": 1, "items": {}}
    assert unknown == [("bogus",)]
    with pytest.raises(DecodeError, match="cannot unmarshal string into Go struct field"):
        read_schema({"properties": {"a": "x"}}, (), [])


def test_a_schema_that_is_too_deep_is_refused() -> None:
    tree: dict[str, Any] = {}
    for _ in range(DEPTH_MAX + 1):
        tree = {"not": tree}
    with pytest.raises(DecodeError, match="nested more than 64 deep"):
        read_schema(tree, (), [])


def test_numbers_are_what_go_writes() -> None:
    assert repr(plain_json([1.0, 1.5, 2**70, True])) == f"[1, 1.5, {float(2**70)!r}, True]"
