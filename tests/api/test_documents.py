"""Reading YAML and JSON text: values, positions and errors."""

from __future__ import annotations

import copy
import json
import pickle
import string
from collections.abc import Iterator
from itertools import islice

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from moorage.api.documents import (
    CORE,
    KUBERNETES,
    Document,
    Duplicate,
    Limits,
    NumberText,
    PlacedError,
    Position,
    Schema,
    Tree,
    expand_lists,
    read,
)
from moorage.api.documents.scalars import float_key, json_text
from moorage.api.documents.yaml_tree import Events
from moorage.api.errors import DocumentError
from moorage.api.field_path import MapKey, Segment
from tests.corpus import corpus


def documents(text: str, *, schema: Schema = CORE) -> list[Document]:
    return list(read(text.encode(), source="file.yaml", schema=schema))


def trees(text: str, *, schema: Schema = CORE) -> list[Tree]:
    return [document.tree for document in documents(text, schema=schema)]


def only(text: str) -> Document:
    (document,) = documents(text)
    return document


def refusal(text: str) -> str:
    with pytest.raises(DocumentError) as caught:
        documents(text)
    return str(caught.value)


@pytest.fixture(params=["libyaml", "pure"])
def _both_parsers(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "pure":
        monkeypatch.setattr(Events, "new_parser", staticmethod(yaml.SafeLoader))


# Plain scalars

SCALARS: list[tuple[str, Tree, Tree]] = [
    # text, in the YAML 1.2 core schema, in Kubernetes
    ("", None, None),
    ("~", None, None),
    ("null", None, None),
    ("Null", None, None),
    ("nULL", "nULL", "nULL"),
    ("true", True, True),
    ("False", False, False),
    ("on", "on", True),
    ("Off", "Off", False),
    ("yes", "yes", True),
    ("NO", "NO", False),
    ("y", "y", True),
    ("n", "n", False),
    ("yEs", "yEs", "yEs"),
    ("0", 0, 0),
    ("12", 12, 12),
    ("-12", -12, -12),
    ("+12", 12, 12),
    ("017", 15, 15),
    ("-017", -15, -15),
    ("0644", 420, 420),
    ("08", 8, 8),
    ("0o17", 15, 15),
    ("0O17", "0O17", 15),
    ("0x1F", 31, 31),
    ("-0x1F", "-0x1F", -31),
    ("0X1f", "0X1f", 31),
    ("0b11", "0b11", 3),
    ("1_000", "1_000", 1000),
    ("12:30:45", "12:30:45", "12:30:45"),
    ("2024-01-31", "2024-01-31", "2024-01-31"),
    ("2024-01-31T10:00:00Z", "2024-01-31T10:00:00Z", "2024-01-31T10:00:00Z"),
    ("9223372036854775807", 2**63 - 1, 2**63 - 1),
    ("18446744073709551615", 2**64 - 1, 2**64 - 1),
    ("+18446744073709551615", 2**64 - 1, 18446744073709552000),
    ("18446744073709551616", 2**64, 18446744073709552000),
    ("0.5", 0.5, 0.5),
    (".5", 0.5, 0.5),
    ("-.5e1", -5, -5),
    ("1.", 1, 1),
    ("1.0", 1, 1),
    ("1e3", 1000, 1000),
    ("1_0.5", "1_0.5", 10.5),
    ("._5", "._5", "._5"),
    (".", ".", "."),
    ("-", [None], [None]),
    ("+", "+", "+"),
    ("1e", "1e", "1e"),
    ("0x", "0x", "0x"),
    ("1.2.3", "1.2.3", "1.2.3"),
    ("10Gi", "10Gi", "10Gi"),
    ("NaN", "NaN", "NaN"),
    ("=", "=", "="),
]


@pytest.mark.parametrize(("text", "core", "kubernetes"), SCALARS)
def test_plain_scalar_means(text: str, core: Tree, kubernetes: Tree) -> None:
    written = f"- {text}\n"
    assert trees(written) == [[core]]
    assert trees(written, schema=KUBERNETES) == [[kubernetes]]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("'12'", "12"),
        ('"true"', "true"),
        ('"a\\tb\\u00e9"', "a\tbé"),
        ("|\n  a\n  b\n", "a\nb\n"),
        (">-\n  a\n  b\n", "a b"),
        ("!!str 12", "12"),
        ("! 12", "12"),
        ("!!int '12'", 12),
        ("!!float 2", 2),
        ("!!float 2.5", 2.5),
        ("!!bool 'true'", True),
        ("!!null ''", None),
        ("!!timestamp 2024-01-31", "2024-01-31"),
        ("!!map {a: 1}", {"a": 1}),
        ("!!seq [a]", ["a"]),
    ],
)
def test_quotes_blocks_and_tags_say_what_a_scalar_is(text: str, expected: Tree) -> None:
    assert trees(f"- {text}\n") == [[expected]]


@pytest.mark.parametrize(
    ("text", "in_json"),
    [
        ("0.1", "0.1"),
        ("1.50", "1.5"),
        ("1e21", "1e+21"),
        ("1.5e-7", "1.5e-7"),
        ("0.000001", "0.000001"),
        ("1.25e300", "1.25e+300"),
        ("-2.5", "-2.5"),
    ],
)
def test_yaml_float_keeps_the_text_go_writes(text: str, in_json: str) -> None:
    (tree,) = trees(f"[{text}]")
    assert isinstance(tree, list)
    (number,) = tree
    assert isinstance(number, NumberText)
    assert number.text == in_json
    assert number == float(text)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0.0, "0"),
        (-0.0, "-0"),
        (100.0, "100"),
        (1e20, "100000000000000000000"),
        (1e21, "1e+21"),
        (123456789.125, "123456789.125"),
        (1e-6, "0.000001"),
        (9.5e-7, "9.5e-7"),
        (5e-324, "5e-324"),
        (1e-10, "1e-10"),
    ],
)
def test_float_is_written_as_go_writes_it(value: float, expected: str) -> None:
    assert json_text(value) == expected


@pytest.mark.parametrize("text", ["1e3", "1.50", "-0.0", "1E+2", "0.1"])
def test_json_number_keeps_its_text(text: str) -> None:
    tree = only(f'{{"a": {text}}}').tree
    assert isinstance(tree, dict)
    number = tree["a"]
    assert isinstance(number, NumberText)
    assert number.text == text
    for copied in (copy.deepcopy(number), pickle.loads(pickle.dumps(number))):
        assert copied.text == text


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("1", "1"),
        ("0x1F", "31"),
        ("true", "true"),
        ("FALSE", "false"),
        ("on", "on"),
        ("1.5", "1.5"),
        ("1.0", "1"),
        ("0.1", "0.1"),
        ("1e6", "1e+06"),
        ("1234567.0", "1.234567e+06"),
        ("0.00001", "1e-05"),
        (".inf", ".inf"),
        ("-.INF", "-.inf"),
        (".nan", ".nan"),
        ("1e300", ".inf"),
        ("'1'", "1"),
        ("!!str 1", "1"),
        ("? long", "long"),
    ],
)
def test_key_that_is_no_string_becomes_one(key: str, expected: str) -> None:
    separator = "\n: " if key.startswith("?") else ": "
    assert trees(f"{key}{separator}x\n") == [{expected: "x"}]


def test_kubernetes_key_may_be_a_word_of_yaml_1_1() -> None:
    assert trees("on: x\n017: z", schema=KUBERNETES) == [{"true": "x", "15": "z"}]


@given(st.floats(allow_nan=False, allow_infinity=False, width=32))
def test_float_key_reads_back_as_the_same_float32(value: float) -> None:
    assert float(float_key(value)) == pytest.approx(value, rel=1e-7)


# Streams


@pytest.mark.usefixtures("_both_parsers")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("   \n\t\n", []),
        ("# nothing\n", []),
        ("---\n", []),
        ("---\n---\n# x\n---\n", []),
        ("null\n---\n~\n", []),
        ("a: 1\n---\nb: 2\n", [{"a": 1}, {"b": 2}]),
        ("---\n\n---\na: 1\n---\n", [{"a": 1}]),
        ("a: 1\n...\n---\nb: 2\n...\n", [{"a": 1}, {"b": 2}]),
        ("--- # claim\na: 1\n", [{"a": 1}]),
        ("--- {a: 1}\n", [{"a": 1}]),
        ("%YAML 1.2\n---\na: on\n", [{"a": "on"}]),
        ("%TAG !y! tag:yaml.org,2002:\n---\na: !y!str 1\n", [{"a": "1"}]),
        ("a: |\n  ---\n  b\n", [{"a": "---\nb\n"}]),
        ("\ufeffa: 1\n", [{"a": 1}]),
        ("a: 1\r\nb: 2\r\n", [{"a": 1, "b": 2}]),
        ("just text", ["just text"]),
        ("- 1\n- [2, {a: 3}]\n", [[1, [2, {"a": 3}]]]),
        ("{}", [{}]),
        ("{a: b}", [{"a": "b"}]),
        ("{a: b}\n---\nc: d\n", [{"a": "b"}, {"c": "d"}]),
    ],
)
def test_yaml_stream_has_documents(text: str, expected: list[Tree]) -> None:
    assert trees(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"a": 1}', [{"a": 1}]),
        (' \n\t{"a": [1, {"b": null}]}\n', [{"a": [1, {"b": None}]}]),
        ('{"a":1}{"b":2}\n {}', [{"a": 1}, {"b": 2}, {}]),
        ('{"a":1}\n---\nb: 2\n---\n{"c":3}', [{"a": 1}, {"b": 2}, {"c": 3}]),
        ('{"a":1}{"b":2}\n---\n{"c":3}\n', [{"a": 1}, {"b": 2}, {"c": 3}]),
        ('{"a":1} # why\n', [{"a": 1}]),
        ('{"a":1}\n...\n', [{"a": 1}]),
        ('{"a":1}\n{b: 2}\n', [{"a": 1}, {"b": 2}]),
        ('{"a": 1,}', [{"a": 1}]),
        ('{"a": b}', [{"a": "b"}]),
        ("{\"a\": 'b', # c\n}", [{"a": "b"}]),
        ('{"a": NaN}', [{"a": "NaN"}]),
        ('{"a": "\\ud83d\\ude00"}', [{"a": "😀"}]),
        ('{"a": "\\ud83dx \\ude00\\\\ud83d"}', [{"a": "\ufffdx \ufffd\\ud83d"}]),
        ('{"a": 123456789012345678901234567890}', [{"a": 123456789012345678901234567890}]),
        ('{"a": "\x7f"}', [{"a": "\x7f"}]),
        ('\ufeff{"a": 1}', [{"a": 1}]),
    ],
)
def test_json_stream_has_documents(text: str, expected: list[Tree]) -> None:
    assert trees(text) == expected


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("text", ["a: é😀\n", '{"a": "é😀"}'])
def test_encoding_is_recognised(text: str, encoding: str) -> None:
    (document,) = read(text.encode(encoding), source="file")
    assert document.tree == {"a": "é😀"}


def test_documents_say_where_they_are_from() -> None:
    found = documents("# head\n\na: 1\n---\n\n---\n# b\nb: 2\n")
    assert [(d.source, d.index, d.line) for d in found] == [
        ("file.yaml", 0, 3),
        ("file.yaml", 1, 8),
    ]
    found = documents('\n{"a":1} {\n"b":2}\n---\nc: 3\n')
    assert [(d.index, d.line) for d in found] == [(0, 2), (1, 2), (2, 5)]


def test_json_document_has_its_own_bytes() -> None:
    first, second, third = documents('{"a": "é"} {"b":\n2}\n---\n{"c": 3}')
    assert first.raw == '{"a": "é"}'.encode()
    assert second.raw == b'{"b":\n2}'
    assert third.raw is None


def test_documents_before_a_fault_are_delivered() -> None:
    for text in [b"a: 1\n---\nb: 2\n---\nc: [", b"a: 1\n---\nb: 2\n---\nc: \x01\n"]:
        stream = read(text, source="file")
        assert [document.tree for document in islice(stream, 2)] == [{"a": 1}, {"b": 2}]
        with pytest.raises(DocumentError, match=r"^file:5:"):
            next(stream)


def test_documents_before_bytes_that_are_no_text_are_delivered() -> None:
    stream = read(b"a: 1\n---\nb: 2\n---\nc: \xff\n", source="file")
    assert [document.tree for document in islice(stream, 2)] == [{"a": 1}, {"b": 2}]
    with pytest.raises(DocumentError) as caught:
        next(stream)
    assert str(caught.value) == "file:5:4: byte 0xff is not UTF-8: invalid start byte"


# Anchors, merges, duplicates


@pytest.mark.usefixtures("_both_parsers")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: &x 1\nb: *x\n", {"a": 1, "b": 1}),
        ("a: &x {c: [1]}\nb: *x\n", {"a": {"c": [1]}, "b": {"c": [1]}}),
        ("a: &x k\n*x : 1\n", {"a": "k", "k": 1}),
        ("&x k: 1\nb: *x\n", {"k": 1, "b": "k"}),
        ("a: &x 1\nb: &x 2\nc: *x\n", {"a": 1, "b": 2, "c": 2}),
        ("a: &x [&x 1]\nb: *x\n", {"a": [1], "b": 1}),
        ("a: &x {p: 1}\nb:\n  <<: *x\n  q: 2\n", {"a": {"p": 1}, "b": {"p": 1, "q": 2}}),
        ("<<: {p: 1}\nq: 2\n", {"p": 1, "q": 2}),
        ("<<: {p: 1}\np: 2\n", {"p": 2}),
        # Kubernetes goes by the order of the text; YAML would keep 2.
        ("p: 2\n<<: {p: 1}\n", {"p": 1}),
        ("<<: [{p: 1}, {p: 2, q: 3}]\n", {"p": 1, "q": 3}),
        ("<<: {<<: {p: 1}, q: 2}\n", {"p": 1, "q": 2}),
        ('"<<": 1\n', {"<<": 1}),
        ("!!merge <<: {p: 1}\n", {"p": 1}),
    ],
)
def test_anchor_alias_and_merge(text: str, expected: Tree) -> None:
    document = only(text)
    assert document.tree == expected
    assert document.duplicates == ()


def test_aliases_are_copies() -> None:
    tree = only("a: &x {c: [1]}\nb: *x\n").tree
    assert isinstance(tree, dict)
    assert isinstance(tree["a"], dict)
    tree["a"]["c"] = "changed"
    assert tree["b"] == {"c": [1]}


@pytest.mark.usefixtures("_both_parsers")
@pytest.mark.parametrize(
    ("text", "expected", "duplicates"),
    [
        ("a: 1\nb: 2\na: 3\n", {"a": 3, "b": 2}, [(("a",), (3, 1))]),
        ("s:\n- x: 1\n- x: 1\n  x: 2\n", {"s": [{"x": 1}, {"x": 2}]}, [(("s", 1, "x"), (4, 3))]),
        ("1: a\n'1': b\n", {"1": "b"}, [(("1",), (2, 1))]),
        ("<<: {a: 1}\na: 2\na: 3\n", {"a": 3}, [(("a",), (3, 1))]),
        ('{"a": 1, "b": {"c": [0, {"d": 1,\n"d": 2}]}}', None, [(("b", "c", 1, "d"), (2, 1))]),
        ('{"a": {}, "a": 1, "\\u0061": []}', None, [(("a",), (1, 11)), (("a",), (1, 19))]),
        ('{"a": 1}\n{"b": 2, "b": 3}', None, [(("b",), (2, 10))]),
    ],
)
def test_duplicate_key_is_noted_and_the_last_value_stands(
    text: str,
    expected: Tree,
    duplicates: list[tuple[tuple[Segment, ...], tuple[int, int]]],
) -> None:
    document = documents(text)[-1]
    if expected is not None:
        assert document.tree == expected
    assert document.duplicates == tuple(
        Duplicate(segments, Position(*position)) for segments, position in duplicates
    )


# Refusals


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: .inf", "1:4: .inf is not a JSON number"),
        ("a: -.Inf", "1:4: -.inf is not a JSON number"),
        ("a: .nan", "1:4: .nan is not a JSON number"),
        ("a: 1e400", "1:4: number 1e400 is out of range"),
        ('{"b": 0,\n "a": 1e400}', "2:7: number 1e400 is out of range"),
        ("a: !!int x", "1:4: cannot decode !!str `x` as a !!int"),
        ("a: !!bool yes", "1:4: cannot decode !!str `yes` as a !!bool"),
        ("a: !mine x", "1:4: tag !mine is not supported"),
        ("a: !!set {x, y}", "1:4: tag !!set is not supported on a !!map"),
        ("a: !!map [x]", "1:4: tag !!map is not supported on a !!seq"),
        (
            "a: !!binary aGk=",
            "1:4: tag !!binary is not supported: write the base64 text without it",
        ),
        ("a: *x", "1:4: unknown anchor 'x' referenced"),
        ("a: &x 1\n---\nb: *x", "3:4: unknown anchor 'x' referenced"),
        ("a: &x [*x]", "1:8: anchor 'x' value contains itself"),
        ("a: &x {b: [{c: *x}]}", "1:16: anchor 'x' value contains itself"),
        ("<<: 1", "1:5: map merge requires map or sequence of maps as the value"),
        ("<<: [1]", "1:7: map merge requires map or sequence of maps as the value"),
        ("a: &x [{}]\n<<: *x", "2:5: map merge requires map or sequence of maps as the value"),
        ("~: 1", "1:1: null cannot be the key of a mapping"),
        ("? [a]\n: 1", "1:3: a list cannot be the key of a mapping"),
        ("a: &x [1]\n*x : 1", "2:1: a list cannot be the key of a mapping"),
        (
            "a: {{ .Values.a }}",
            "1:5: a mapping cannot be the key of a mapping; is this a template that was not",
        ),
        ("a:\n\t- b", "2:1: found a tab where only spaces may be: indent with spaces"),
        ("a: @b", "1:4: found character '@' that cannot start any token: quote the text"),
        ("a: b: c", "1:5: mapping values are not allowed in this context"),
        ("b: 1\na: 'x\n\n", "2:4: a quoted text is not closed"),
        ('a: "x', "1:4: a quoted text is not closed"),
        (
            "a: [1,\n2",
            "2:2: unexpected end: did not find expected ',' or ']' while parsing a flow sequence",
        ),
        (
            "a: 1\n b: 2\n",
            "2:3: mapping values are not allowed in this context",
        ),
        (
            "a:\n- 1\nb\n",
            "4:1: unexpected end: could not find expected ':' while scanning a simple key",
        ),
        ("%YAML 3.0\n---\na", "1:1: found incompatible YAML document"),
        ("a: \0", "1:4: NUL character: this looks like binary data"),
        ("a: 1\nb: \x1b", "2:4: control character U+001B is not allowed"),
        ("a: 1\n\ufeffb: 2", "2:1: byte order mark inside the text: were two files joined?"),
        ('{"a": 1', "1:8: invalid JSON: unexpected end: expecting ',' delimiter"),
        ('{"a":\n', "2:1: invalid JSON: unexpected end: expecting value"),
        ('{"a": "b', "1:7: invalid JSON: unterminated string"),
        ('{"a": 1 "b": 2}', "1:9: invalid JSON: expecting ',' delimiter"),
        ('{"a": ]}', "1:7: invalid JSON: expecting value"),
        ('{"a": "\x01"}', "1:8: invalid JSON: invalid control character"),
        ('{"a": 1}}', "1:9: found '}' after a JSON value: expected `{` or a `---` line"),
        ('{"a": 1}\n---\nb: [', "3:5: unexpected end: did not find expected node content"),
        ("{a: b", "1:6: unexpected end: did not find expected ',' or '}'"),
    ],
)
def test_bad_text_is_refused_with_place_and_fact(text: str, expected: str) -> None:
    assert refusal(text).startswith(f"file.yaml:{expected}")


def test_refusal_carries_its_data() -> None:
    with pytest.raises(PlacedError) as caught:
        documents("a: *x")
    assert caught.value.source == "file.yaml"
    assert caught.value.position == Position(1, 4)
    assert caught.value.fact == "unknown anchor 'x' referenced"


def test_messages_stay_short() -> None:
    long = "x" * 10_000
    for text in [f"a: !{long} 1", f"a: *{long}", f"a: !!int {long}", f"a: {'1' * 5000}"]:
        assert len(refusal(text)) < 200


# Places

MANIFEST = """\
# A claim.
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata:
  name: gpu
  labels: {app: "x", "b/c": y}
spec:
  devices:
    requests:
    - name: one
      exactly:
        selectors:
        - cel:
            expression: |-
              device.driver == "gpu"
    - # the second
      name: two
"""


@pytest.mark.usefixtures("_both_parsers")
@pytest.mark.parametrize(
    ("segments", "line", "column"),
    [
        ((), 2, 1),
        (("kind",), 3, 1),
        (("metadata", "name"), 5, 3),
        (("metadata", "labels", MapKey("app")), 6, 12),
        (("metadata", "labels", MapKey("b/c")), 6, 22),
        (("spec",), 7, 1),
        (("spec", "devices", "requests", 0), 10, 7),
        (("spec", "devices", "requests", 0, "exactly", "selectors", 0, "cel"), 13, 11),
        (("spec", "devices", "requests", 1, "name"), 17, 7),
        # What is missing is where its deepest ancestor is.
        (("status",), 2, 1),
        (("metadata", "namespace"), 4, 1),
        (("spec", "devices", "requests", 2, "name"), 9, 5),
        (("spec", "devices", "requests", -1), 9, 5),
        (("spec", "devices", "requests", "name"), 9, 5),
        (("metadata", 0), 4, 1),
        (("metadata", "name", "x"), 5, 3),
    ],
)
def test_field_is_located(segments: tuple[Segment, ...], line: int, column: int) -> None:
    assert only(MANIFEST).locate(segments) == Position(line, column)
    _, second = documents(f"a: 1\n---\n{MANIFEST}")
    assert second.locate(segments) == Position(line + 2, column)


@pytest.mark.parametrize(
    ("text", "segments", "expected"),
    [
        ('{"a": 1,\n "b": [1, {"c": 2}]}', (), (1, 1)),
        ('{"a": 1,\n "b": [1, {"c": 2}]}', ("a",), (1, 2)),
        ('{"a": 1,\n "b": [1, {"c": 2}]}', ("b",), (2, 2)),
        ('{"a": 1,\n "b": [1, {"c": 2}]}', ("b", 0), (2, 8)),
        ('{"a": 1,\n "b": [1, {"c": 2}]}', ("b", 1, "c"), (2, 12)),
        ('{"a": 1,\n "b": [1, {"c": 2}]}', ("b", 2), (2, 2)),
        ('{"a": "{\\"[", "b]": {}}', ("b]", "x"), (1, 15)),
        ('\n {"a": "\\\\", "b": 1}', ("b",), (2, 14)),
        ('{"a": 1, "a": 2}', ("a",), (1, 10)),
        ('{"a": {}} {"b": 1}', ("b",), (1, 12)),
        ('{"a": {}}\n{"b": 1}', ("b",), (2, 2)),
        ('{"a": {}} # x\n---\nb: 1', ("b",), (3, 1)),
        ('{"a": {}} {b: 1}', ("b",), (1, 12)),
        ("a: &x {c: 1}\nb: *x", ("b", "c"), (1, 8)),
        ("a: &x {c: 1}\nb: *x", ("b",), (2, 1)),
        ("a: &x {c: 1}\nb: {<<: *x}", ("b", "c"), (1, 8)),
        ("a: &x [&x 1]\nb: [*x]", ("b", 0), (2, 5)),
        ("<<: [{p: 1}, {p: 2}]", ("p",), (1, 7)),
        ("a: &x k\n*x : {c: 1}", ("k", "c"), (2, 7)),
        ("a: 1\na: 2", ("a",), (2, 1)),
        ("  a: 1\n  b: 2", ("b",), (2, 3)),
        ("%TAG ! tag:yaml.org,2002:\n---\na: !str 1", ("a",), (3, 1)),
        ("1: a\ntrue: b", ("true",), (2, 1)),
        ("é: {ü: 1}", ("é", "ü"), (1, 5)),
    ],
)
def test_place_in_the_last_document(
    text: str, segments: tuple[Segment, ...], expected: tuple[int, int]
) -> None:
    assert documents(text)[-1].locate(segments) == expected


def paths(tree: Tree, here: tuple[Segment, ...] = ()) -> Iterator[tuple[Segment, ...]]:
    """Yield the path of every value of a tree."""
    yield here
    if isinstance(tree, dict):
        for key, value in tree.items():
            yield from paths(value, (*here, key))
    elif isinstance(tree, list):
        for index, value in enumerate(tree):
            yield from paths(value, (*here, index))


def text_at(text: str, position: Position) -> str:
    return text.split("\n")[position.line - 1][position.column - 1 :]


# Lists


def test_items_of_a_list_are_documents_of_their_own() -> None:
    (document,) = documents(
        "apiVersion: v1\nkind: List\nitems:\n- kind: A\n  x: 1\n- kind: B\n  x: 1\n  x: 2\n"
    )
    first, second = expand_lists(document)
    assert first.tree == {"kind": "A", "x": 1}
    assert second.tree == {"kind": "B", "x": 2}
    assert (first.line, second.line) == (4, 6)
    assert first.locate(("x",)) == Position(5, 3)
    assert second.locate(("y",)) == Position(6, 3)
    assert first.duplicates == ()
    assert second.duplicates == (Duplicate(("x",), Position(8, 3)),)
    assert second.within == ("items", 1)
    assert (first.source, first.index, first.raw) == ("file.yaml", 0, None)


def test_items_of_a_typed_list_inherit_what_they_are() -> None:
    document = only(
        json.dumps(
            {
                "apiVersion": "resource.k8s.io/v1",
                "kind": "ResourceClaimList",
                "items": [{"metadata": {"name": "a"}}, {"apiVersion": "x/v1", "kind": "Y"}, 3],
            }
        )
    )
    found = [item.tree for item in expand_lists(document)]
    assert found == [
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": {"name": "a"},
        },
        {"apiVersion": "x/v1", "kind": "Y"},
        3,
    ]
    assert document.tree["items"][0] == {"metadata": {"name": "a"}}  # type: ignore[call-overload,index]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("kind: List\nitems: [{a: 1}]", [{"a": 1}]),
        ("kind: List\nitems: [{kind: List, items: [{a: 1}, {b: 2}]}]", [{"a": 1}, {"b": 2}]),
        ("kind: List\nitems: []", []),
        ("kind: FooList\nitems: null", []),
        ("kind: AllowList\nspec: {}", [{"kind": "AllowList", "spec": {}}]),
        ("kind: AllowList\nitems: {}", [{"kind": "AllowList", "items": {}}]),
        ("kind: Pod\nitems: [1]", [{"kind": "Pod", "items": [1]}]),
        ("items: [1]", [{"items": [1]}]),
        ("kind: [List]\nitems: [1]", [{"kind": ["List"], "items": [1]}]),
        ("[1, 2]", [[1, 2]]),
    ],
)
def test_what_is_a_list_is_expanded(text: str, expected: list[Tree]) -> None:
    assert [item.tree for item in expand_lists(only(text))] == expected


def test_item_in_a_list_in_a_list_is_located() -> None:
    (item,) = expand_lists(only("kind: List\nitems:\n- kind: List\n  items:\n  - a: 1\n"))
    assert item.within == ("items", 0, "items", 0)
    assert item.locate(("a",)) == Position(5, 5)


# Limits


@pytest.mark.parametrize(
    ("limits", "text", "expected"),
    [
        (Limits(bytes_max=3), "a: 1", "file: 4 bytes are more than the 3 that are read"),
        (Limits(depth_max=2), "a: [1, [2]]", "file:1:8: nested more than 2 levels deep"),
        (Limits(depth_max=2), '{"a": [1, [2]]}', "file:1:11: nested more than 2 levels deep"),
        (Limits(depth_max=2), '{} {"a": [1, [2]]}', "file:1:14: nested more than 2 levels deep"),
        (
            Limits(depth_max=2),
            "a: &x [1]\nb: [*x]",
            "file:2:5: nested more than 2 levels deep",
        ),
        (Limits(nodes_max=3), "[1, 2, 3]", "file:1:8: more than 3 values"),
        (Limits(nodes_max=3), "[1]\n---\n[1]", "file:3:2: more than 3 values"),
        (Limits(nodes_max=3), '{"a": [1, 2, 3, 4]}', "file:1:12: more than 3 values"),
        (Limits(nodes_max=2), '{"a": 1} {"a": 1} {"a": 1}', "file:1:19: more than 2 values"),
        (Limits(documents_max=2), "a: 1\n---\n---\nb: 1", "file:3:1: more than 2 documents"),
        (Limits(documents_max=2), "{} {} {}", "file:1:7: more than 2 documents"),
        (
            Limits(aliased_nodes_max=4),
            "a: &x [1]\nb: [*x, *x, *x]",
            "file:2:13: document contains excessive aliasing: more than 4 values come from aliases",
        ),
    ],
)
def test_text_over_a_limit_is_refused(limits: Limits, text: str, expected: str) -> None:
    with pytest.raises(DocumentError) as caught:
        list(read(text.encode(), source="file", limits=limits))
    assert str(caught.value) == expected


@pytest.mark.parametrize(
    ("limits", "text"),
    [
        (Limits(bytes_max=4), "a: 1"),
        (Limits(depth_max=2), "a: [1, 2]"),
        (Limits(depth_max=2), '{"a": ["[[[", "\\"[[", 2], "b": "{"}'),
        (Limits(depth_max=2), "a: &x [1]\nb: *x"),
        (Limits(nodes_max=4), "[1, 2, 3]"),
        (Limits(documents_max=2), "{} {}"),
        (Limits(documents_max=2), "a: 1\n---\nb: 1"),
        (Limits(aliased_nodes_max=4), "a: &x [1]\nb: [*x, *x]"),
    ],
)
def test_text_at_a_limit_is_read(limits: Limits, text: str) -> None:
    assert list(read(text.encode(), source="file", limits=limits))


@pytest.mark.parametrize("text", ["a: {}", '{{"a": {}}}'])
def test_number_has_a_bounded_length(text: str) -> None:
    digits = "1" * 400
    assert only(text.format(digits)).tree == {"a": int(digits)}
    assert "has 401 characters, at most 400 are read" in refusal(text.format(digits + "1"))


def test_digits_in_a_text_are_not_a_number() -> None:
    digits = "1" * 5000
    assert trees(json.dumps({"a": digits, "b": 1})) == [{"a": digits, "b": 1}]


def test_duplicates_noted_are_bounded() -> None:
    limits = Limits(duplicates_max=3)
    for text in ["a: 1\n" * 9, "{" + '"a": 1,' * 8 + '"a": 1}']:
        (document,) = read(text.encode(), source="file", limits=limits)
        assert len(document.duplicates) == 3


@pytest.mark.parametrize("depth", [0, 201])
def test_depth_limit_has_its_own_bounds(depth: int) -> None:
    with pytest.raises(ValueError, match="depth_max must be between 1 and 200"):
        Limits(depth_max=depth)


# Laws

# What YAML and JSON both carry as it is; lone surrogates are no text.
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
numbers = st.integers(-(10**30), 10**30) | st.floats(allow_nan=False, allow_infinity=False)
scalars = st.none() | st.booleans() | numbers | texts
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=20,
)
objects = st.dictionaries(texts, values, max_size=4)


@given(objects, st.sampled_from([None, 1, "\t"]), st.booleans())
def test_json_reads_back_as_it_was(tree: Tree, indent: int | str | None, ascii_only: bool) -> None:
    text = json.dumps(tree, indent=indent, ensure_ascii=ascii_only)
    document = only(text)
    assert document.tree == tree
    assert document.raw == text.encode()


@given(objects, st.sampled_from([None, True, False]), st.sampled_from([None, '"', "'"]))
def test_yaml_reads_back_as_it_was(tree: Tree, flow: bool | None, style: str | None) -> None:
    # Quoted strings, so that 1.1 and 1.2 agree on what is one.
    text = yaml.dump(tree, Dumper=_Quoting, default_flow_style=flow, default_style=style)
    assert trees(f"---\n{text}") == [_as_go_writes_it(tree)]


def _as_go_writes_it(tree: Tree) -> Tree:
    """Return a tree with the numbers that go through Go's JSON: large floats are integers."""
    if isinstance(tree, dict):
        return {key: _as_go_writes_it(value) for key, value in tree.items()}
    if isinstance(tree, list):
        return [_as_go_writes_it(value) for value in tree]
    if isinstance(tree, float) and json_text(tree).lstrip("-").isdigit():
        return int(json_text(tree))
    return tree


class _Quoting(yaml.SafeDumper):
    """Writes all strings in double quotes and never an alias."""

    def ignore_aliases(self, data: object) -> bool:
        return True


def _quoted(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style='"')


def _tagged_float(dumper: yaml.SafeDumper, number: float) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:float", json_text(number))


_Quoting.add_representer(str, _quoted)
_Quoting.add_representer(float, _tagged_float)

names = st.text(string.ascii_letters, min_size=1, max_size=8)
fields = st.recursive(
    st.integers() | names.map("text {}".format),
    lambda inner: (
        st.lists(inner, min_size=1, max_size=3)
        | st.dictionaries(names, inner, min_size=1, max_size=3)
    ),
    max_leaves=15,
)


@given(st.dictionaries(names, fields, min_size=1, max_size=4), st.integers(0, 3))
def test_located_key_is_where_the_text_says_it(tree: dict[str, Tree], before: int) -> None:
    written = [
        "---\nx: 1\n" * before + "---\n" + yaml.safe_dump(tree),
        "---\nx: 1\n" * before + "---\n" + yaml.safe_dump(tree, default_flow_style=True),
        '{"x": 1}\n' * before + json.dumps(tree, indent=1),
        '{"x": 1}\n' * before + json.dumps(tree),
    ]
    for text in written:
        document = documents(text)[-1]
        for path in paths(document.tree):
            if path and isinstance(path[-1], str):
                shown = text_at(text, document.locate(path)).lstrip("\"'")
                assert shown.startswith(path[-1])


@given(fields)
def test_located_item_is_where_the_text_says_it(tree: Tree) -> None:
    for text in [yaml.safe_dump({"a": tree}), json.dumps({"a": tree}, indent=1)]:
        document = only(text)
        for path in paths(document.tree):
            value: Tree = document.tree
            for segment in path:
                value = value[segment]  # type: ignore[index]
            if path and isinstance(path[-1], int) and isinstance(value, str | int):
                shown = text_at(text, document.locate(path)).lstrip("\"'")
                assert shown.startswith(str(value))


@given(st.lists(objects, max_size=4))
def test_json_values_one_after_the_other_are_documents(found: list[Tree]) -> None:
    assert trees("\n".join(json.dumps(tree) for tree in found)) == found
    assert trees("".join(json.dumps(tree) for tree in found)) == found


def test_manifests_read_as_other_readers_read_them() -> None:
    for path in sorted(corpus("golden", "manifests").glob("*.yaml")):
        text = path.read_text()
        expected = [tree for tree in yaml.safe_load_all(text) if tree is not None]
        for schema in (CORE, KUBERNETES):
            assert trees(text, schema=schema) == expected, path.name
