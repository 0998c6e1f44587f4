"""The fast JSON reader returns the same as the full reader, or nothing."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moorage.api.documents import DEFAULT_LIMITS, Limits
from moorage.api.documents.document import DocumentStream
from moorage.api.documents.reader import JsonReader, plain_document
from moorage.api.documents.scalars import CORE

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


def careful(data: bytes) -> Any:
    return JsonReader(DocumentStream(data.decode(), "x", DEFAULT_LIMITS, CORE)).read(0, 0).document


def quick(data: bytes, limits: Limits = DEFAULT_LIMITS) -> Any:
    return plain_document(data, source="x", limits=limits)


@settings(max_examples=200)
@given(
    tree=st.dictionaries(st.text(), values, min_size=1),
    indent=st.sampled_from([None, 1]),
    separators=st.sampled_from([(",", ":"), (", ", ": "), (" ,", " :")]),
)
def test_it_reads_what_the_careful_reader_reads(
    tree: Any, indent: int | None, separators: tuple[str, str]
) -> None:
    text = json.dumps(tree, indent=indent, separators=separators, ensure_ascii=False)
    try:
        data = text.encode()
    except UnicodeEncodeError:
        return
    document = quick(data)
    if document is not None:
        slow = careful(data)
        assert document.tree == slow.tree
        assert repr(document.tree) == repr(slow.tree)
        assert (document.line, document.raw, document.duplicates) == (slow.line, slow.raw, ())


@st.composite
def texts_with_repeated_keys(draw: st.DrawFn, depth: int = 3) -> str:
    """Return JSON text whose objects may name a key twice, with colons and blanks in strings."""
    words = st.text("ab: ,{", max_size=3).map(json.dumps)
    if depth == 0 or draw(st.booleans()):
        return draw(words | st.sampled_from(["1", "1.5", "null"]))
    inner = st.lists(texts_with_repeated_keys(depth=depth - 1), max_size=3)
    if draw(st.booleans()):
        return f"[{', '.join(draw(inner))}]"
    members = (f"{draw(words)} : {value}" for value in draw(inner))
    return f"{{{', '.join(members)}}}"


@settings(max_examples=300)
@given(texts_with_repeated_keys())
def test_no_repeated_key_escapes_it(text: str) -> None:
    data = f'{{"a": {text}}}'.encode()
    slow = careful(data)
    document = quick(data)
    if slow.duplicates:
        assert document is None
    if document is not None:
        assert document.tree == slow.tree


@pytest.mark.parametrize("offset", range(16))
def test_no_long_number_escapes_it(offset: int) -> None:
    before = b'{"a": "' + b"x" * offset
    assert quick(before + b'", "b": ' + b"7" * 401 + b"}") is None
    assert quick(before + b'", "b": ' + b"7" * 300 + b"}") is not None


def test_a_plain_object_is_read_the_fast_way() -> None:
    assert quick(b'{"a": {"b": [1, 1.5, "c: d"]}, "e" : null}') is not None


@pytest.mark.parametrize(
    "data",
    [
        b'{"a": 1, "a": 2}',
        b'{"a": {"b": 1, "c": [{"d": 1, "d": 2}]}}',
        b'{"a" : 1, "a" : 2}',
        b'{"a": ":", "b": 1, "b": 2}',
        b'{"a": 1} {"b": 2}',
        b'{"a": NaN}',
        b"{}",
        b"[1]",
        b'{"a": "\xff"}',
        b'{"a": ' + b"1" * 500 + b"}",
        b'{"a": ' + b"[" * 101 + b"]" * 101 + b"}",
    ],
)
def test_what_needs_care_is_left_to_the_careful_reader(data: bytes) -> None:
    assert quick(data) is None


def test_limits_hold() -> None:
    assert quick(b'{"a": [[1]]}', Limits(depth_max=3)) is not None
    assert quick(b'{"a": [[1]]}', Limits(depth_max=2)) is None
    assert quick(b'{"a": [{"b": [1]}]}', Limits(depth_max=4)) is not None
    assert quick(b'{"a": [{"b": [1]}]}', Limits(depth_max=3)) is None
