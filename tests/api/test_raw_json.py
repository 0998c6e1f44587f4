"""Raw JSON keeps its text, or is written as Go would write it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from moorage.api.codec import compact, in_one_line
from moorage.api.raw_json import escaped, keep_texts, keep_written, marshal, remarshal

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    # Not -0.0: Go writes it as -0, and reads that as the integer 0.
    | st.floats(-1e15, 1e15).map(lambda number: number + 0.0)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("ab <&\u2028"), inner),
    max_leaves=12,
)
INDENTS = st.sampled_from([None, 0, 1, "\t", "\r\n"])


def body(parameters: str) -> tuple[Any, bytes]:
    opaque = f'{{"opaque": {{"driver": "d", "parameters": {parameters}}}}}'
    status = f'{{"devices": [{{"data": {parameters}}}]}}'
    text = f'{{"spec": {{"config": [{{}}, {opaque}]}}, "status": {status}}}'
    return json.loads(text), text.encode()


@given(VALUES, INDENTS)
def test_compact_text_says_the_same_in_one_line(value: Any, indent: Any) -> None:
    text = json.dumps(value, indent=indent).encode()
    for shorter in (compact(text), in_one_line(text), escaped(compact(text))):
        assert json.loads(shorter) == value
        assert b"\n" not in shorter
        assert b"\r" not in shorter


@given(VALUES)
def test_what_is_marshalled_says_the_same(value: Any) -> None:
    text = marshal(value)
    assert json.loads(text) == value
    assert not set(b"<>&") & set(text)
    assert marshal(Raw(text)) == text


@given(VALUES.filter(lambda value: value is not None), INDENTS)
def test_a_tree_keeps_the_text_that_it_was_parsed_from(value: Any, indent: Any) -> None:
    parameters = json.dumps(value, indent=indent)
    tree, text = body(parameters)
    keep_texts(tree, text)
    held = tree["spec"]["config"][1]["opaque"]["parameters"], tree["status"]["devices"][0]["data"]
    assert [bytes(raw).decode() for raw in held] == [parameters, parameters]


def test_a_text_that_says_something_else_is_not_kept() -> None:
    tree, _ = body('{"b": 1, "a": 2}')
    for other in (body("{}")[1], b"nonsense", b"[]", b"{}"):
        changed = json.loads(json.dumps(tree))
        keep_texts(changed, other)
        assert bytes(changed["status"]["devices"][0]["data"]) == b'{"a":2,"b":1}'


def test_true_is_not_one() -> None:
    tree, _ = body('{"a": true}')
    keep_written(tree, [Raw(b'{ "a" : 1 }'), Raw(b'{ "a" : true }')])
    assert bytes(tree["status"]["devices"][0]["data"]) == b'{"a":true}'


@pytest.mark.parametrize(
    ("number", "text"),
    [
        ("1.0", "1"),
        ("1e3", "1000"),
        ("1.50", "1.5"),
        ("-0.0", "-0"),
        ("1e20", "100000000000000000000"),
        ("1e21", "1e+21"),
        ("0.000001", "0.000001"),
        ("1e-7", "1e-7"),
        ("1.5e-10", "1.5e-10"),
        ("9223372036854775807", "9223372036854775807"),
        ("9223372036854775808", "9223372036854776000"),
    ],
)
def test_numbers_are_written_as_go_writes_them(number: str, text: str) -> None:
    tree, _ = body(f'{{"n": {number}}}')
    remarshal(tree)
    assert bytes(tree["status"]["devices"][0]["data"]).decode() == f'{{"n":{text}}}'
