"""YAML that is written is read back as it was, by every schema; text keeps what does not change."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from moorage.api.documents import CORE, KUBERNETES, NumberText, read
from moorage.api.documents.yaml_writer import dump_yaml, text_of, with_value

STRINGS = st.one_of(
    st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc", "Co", "Cn"])),
    st.sampled_from(
        ["1e3", "0o17", "on", "y", "~", "", "1_0", ".5", "null", "a\nb\n", " a\n", "<<"]
    ),
)
TREES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-(2**63), 2**63), STRINGS),
    lambda inner: st.one_of(st.lists(inner), st.dictionaries(STRINGS, inner)),
    max_leaves=10,
)


@given(value=TREES)
def test_what_is_written_is_read_back_by_all_readers(value: Any) -> None:
    tree = {"value": value}
    for schema in (CORE, KUBERNETES):
        for is_ascii in (True, False):
            text = dump_yaml([tree, tree], is_ascii=is_ascii)
            found = read(text.encode(), source="", schema=schema)
            assert [each.tree for each in found] == [tree, tree]


def test_numbers_keep_their_text() -> None:
    assert dump_yaml([{"a": NumberText("1e-7")}]) == "a: 1e-7\n"


@pytest.mark.parametrize(
    ("text", "value", "expected"),
    [
        ("a: {b: [1, x]} # c\n", "z", "a: {b: [1, z]} # c\n"),
        ("a:\n  b:\n  - 1\n  - 'x' # c\n", "it's", "a:\n  b:\n  - 1\n  - 'it''s' # c\n"),
        ('a: {b: [1, "x"]}\n', "1e3", "a: {b: [1, '1e3']}\n"),
        ("a: {b: [1, x]}\n", "y, z: [", "a: {b: [1, 'y, z: [']}\n"),
        ("a:\n  b:\n  - 1\n  - x\n", 'y["z"]', 'a:\n  b:\n  - 1\n  - y["z"]\n'),
        ("a: {b: [1, 9]}\n", 8, "a: {b: [1, 8]}\n"),
        ("a: {b: [1, 9]}\n", True, "a: {b: [1, true]}\n"),
        ("a: {b: [1, 9]}\n", {"c": 1}, None),
        ("a: {b: [1]}\n", 8, None),
        ("a: 1\n", 8, None),
        ("a:\n  b:\n  - 1\n  - |\n    x\n", "y", None),
        ("a: {b: [1, x]}\n", "two\nlines", 'a: {b: [1, "two\\nlines"]}\n'),
    ],
)
def test_a_value_is_replaced_in_its_text(text: str, value: Any, expected: str | None) -> None:
    assert with_value(text, ("a", "b", 1), value) == expected
    if expected is not None:
        assert yaml.safe_load(expected)["a"]["b"][1] == value


def test_documents_have_their_text_with_comments() -> None:
    stream = b"# first\n---\na: 1 # one\n---\n# second\nb: 2\n# after\n"
    first, second = read(stream, source="")
    assert text_of(first) == "# first\na: 1 # one\n"
    assert text_of(second) == "# second\nb: 2\n# after\n"


@pytest.mark.parametrize("stream", [b'{"a": 1}', b"%YAML 1.1\n---\na: 1\n", b"--- {a: 1}\n"])
def test_json_and_documents_with_markers_have_none(stream: bytes) -> None:
    (only,) = read(stream, source="")
    assert text_of(only) is None
