"""Text that means harm: the answer is always an error, soon, and in little memory."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from moorage.api.documents import CORE, KUBERNETES, Limits, Schema, Tree, expand_lists, read
from moorage.api.errors import DocumentError
from moorage.api.field_path import Segment

MEBIBYTE = 1024 * 1024


@contextmanager
def memory_below(bytes_max: int) -> Iterator[None]:
    """Assert what the block allocates at most at one time."""
    tracemalloc.start()
    try:
        yield
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < bytes_max


def refusal(data: bytes, limits: Limits | None = None) -> str:
    with pytest.raises(DocumentError) as caught:
        list(read(data, source="file", limits=limits or Limits()))
    return str(caught.value)


def laughs(levels: int, width: int) -> str:
    """Return a text whose aliases stand for width ** levels values."""
    lines = [f"a0: &a0 [{', '.join(['lol'] * width)}]"]
    for level in range(1, levels):
        aliases = ", ".join([f"*a{level - 1}"] * width)
        lines.append(f"a{level}: &a{level} [{aliases}]")
    return "\n".join(lines)


@pytest.mark.parametrize("filler", [b" ", b"a", b"\n", b"[", b'{"a":', b"\0", b"- a\n", b"---\n"])
def test_a_hundred_megabytes_are_refused_unread(filler: bytes) -> None:
    data = filler * (100_000_000 // len(filler) + 1)
    with memory_below(MEBIBYTE):
        assert "are more than the 67108864 that are read" in refusal(data)


@pytest.mark.parametrize("levels", [9, 30])
def test_alias_bomb_is_refused_unexpanded(levels: int) -> None:
    with memory_below(100 * MEBIBYTE):
        assert "document contains excessive aliasing" in refusal(laughs(levels, 10).encode())


def test_alias_bomb_of_merges_is_refused_unexpanded() -> None:
    merges = laughs(30, 10).replace("[lol", "{k: [lol").replace("lol]", "lol]}")
    text = "\n".join(
        line if line.startswith("a0") else line.replace("[", "{x: [").replace("]", "]}")
        for line in merges.split("\n")
    )
    assert "document contains excessive aliasing" in refusal(text.encode())


def test_aliases_cannot_nest_deeper_than_the_limit() -> None:
    lines = ["a0: &a0 [x]"] + [f"a{n}: &a{n} [*a{n - 1}]" for n in range(1, 200)]
    assert "nested more than 100 levels deep" in refusal("\n".join(lines).encode())


@pytest.mark.parametrize(
    "make",
    [
        lambda depth: b"[" * depth,
        lambda depth: b"[" * depth + b"]" * depth,
        lambda depth: b"{a: " * depth + b"}" * depth,
        lambda depth: b"- " * depth + b"x",
        lambda depth: b"".join(b" " * level + b"a:\n" for level in range(min(depth, 2000))),
        lambda depth: b'{"a":' * depth,
        lambda depth: b'{"a":' * depth + b"1" + b"}" * depth,
        lambda depth: b'{"a":' + b"[" * depth + b"]" * depth + b"}",
        lambda depth: b'{"a": "[[", "b":' + b"[" * depth,
    ],
)
@pytest.mark.parametrize("depth", [101, 1000, 1_000_000])
def test_deep_nesting_is_refused(make: Callable[[int], bytes], depth: int) -> None:
    assert "nested more than 100 levels deep" in refusal(make(depth))


@pytest.mark.parametrize("opened", ["[", '{"a":'])
def test_the_deepest_limit_there_is_can_be_read(opened: str) -> None:
    closed = {"[": "]", '{"a":': "}"}[opened]
    text = opened * 200 + "1" + closed * 200
    (document,) = read(text.encode(), source="file", limits=Limits(depth_max=200))
    assert document.locate(()).line == 1


@pytest.mark.parametrize(
    ("data", "fact"),
    [
        (b"\0\1\2\3" * 1000, "NUL character"),
        (b"\x7fELF\2\1\1", "control character U+007F"),
        (b"\x89PNG\r\n\x1a\n", "byte 0x89 is not UTF-8"),
        (b"\x1f\x8b\x08\0", "byte 0x8b is not UTF-8"),
        (b"a: \xc3", "byte 0xc3 is not UTF-8: unexpected end of data"),
        (b"a: \xed\xa0\x80", "byte 0xed is not UTF-8"),
        (b'{"a": "\xff"}', "file:1:8: byte 0xff is not UTF-8"),
        (b"\xff\xfea", "is not UTF-16"),
        (b"\xff\xfea\0:\0 \0\0\xd8", "is not UTF-16"),
        (b"\xff\xfe\0\0a\0\0\0", "NUL character"),
        (b"a: 1\n\x00", "file:2:1: NUL character"),
    ],
)
def test_binary_data_is_refused(data: bytes, fact: str) -> None:
    assert fact in refusal(data)


@pytest.mark.parametrize(
    ("data", "fact"),
    [
        (b"&" * 1_000_000, "while scanning an anchor"),
        (b"!" * 1_000_000, "is not supported"),
        (b'"' + b"x" * 1_000_000, "a quoted text is not closed"),
        (b'{"a":"' + b"x" * 1_000_000, "unterminated string"),
        (b'{"a":"' + b"\\" * 1_000_001, "unterminated string"),
        (b"{" + b'"' * 1_000_000, "invalid JSON"),
        (b"? " * 100_000, "cannot be the key of a mapping"),
        (b"1" * 1_000_000, "number"),
        (b'{"a":' + b"9" * 1_000_000 + b"}", "number"),
        (b'{"a":1.' + b"9" * 1_000_000 + b"}", "number"),
        (b"x" * 1_000_000 + b": 1", "mapping values are not allowed"),
    ],
)
def test_monotonous_text_is_refused(data: bytes, fact: str) -> None:
    with memory_below(60 * MEBIBYTE):
        message = refusal(data)
    assert fact in message
    assert len(message) < 300


@pytest.mark.parametrize("data", [b"[" + b"[]," * 50_000, b'{"a":[' + b"[]," * 50_000 + b"1]}"])
def test_many_values_are_refused_before_they_are_built(data: bytes) -> None:
    with memory_below(20 * MEBIBYTE):
        assert "more than 1000 values" in refusal(data, Limits(nodes_max=1000))


@pytest.mark.parametrize("data", [b"---\n" * 100_001, b"{}" * 100_001])
def test_many_documents_are_refused(data: bytes) -> None:
    assert "more than 100000 documents" in refusal(data)


@pytest.mark.parametrize("sound", [b"a: {b: [1, 'x', \"y\"]}\nc: |\n  t\n", b'{"a": [1, "x"]}\n'])
def test_truncated_text_is_a_document_or_an_error(sound: bytes) -> None:
    for end in range(len(sound)):
        with suppress(DocumentError):
            list(read(sound[:end], source="file"))


def use(data: bytes, schema: Schema) -> None:
    """Do with a stream all that can be done."""
    for document in read(data, source="file", schema=schema):
        json.dumps(document.tree, allow_nan=False).encode()
        for path in paths(document.tree):
            position = document.locate(path)
            assert min(position) >= 1
        for item in expand_lists(document):
            assert item.line >= 1


def paths(tree: Tree, here: tuple[Segment, ...] = ()) -> Iterator[tuple[Segment, ...]]:
    """Yield the path of every value of a tree."""
    yield here
    if isinstance(tree, dict):
        for key, value in tree.items():
            yield from paths(value, (*here, key))
    elif isinstance(tree, list):
        for index, value in enumerate(tree):
            yield from paths(value, (*here, index))


@given(st.binary(max_size=60), st.sampled_from([CORE, KUBERNETES]))
@example(b"\xff\xfe", CORE)
@example(b"\xfe\xff\0", CORE)
@example(b"\xef\xbb\xbf\xef\xbb\xbf1", CORE)
def test_any_bytes_are_documents_or_an_error(data: bytes, schema: Schema) -> None:
    with suppress(DocumentError):
        use(data, schema)


WORDS = [
    "a",
    "b: ",
    "- ",
    "\n",
    "\n  ",
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    '"',
    "'",
    "&x ",
    "*x",
    "<<: ",
    "!!str ",
    "!!int ",
    "!foo ",
    "---\n",
    "...\n",
    "#c\n",
    "1",
    "0x1F",
    "1e3",
    ".inf",
    "~",
    "true",
    '"a": ',
    "? ",
    ">\n",
    "\t",
    "%TAG ! a\n",
    "é",
    "😀",
    "\r\n",
    "\x01",
    "\u2028",
    '{"a":',
    "1.5",
    "}{",
    "\\",
    "\\ud800",
    "\ufeff",
    ": ",
]


@given(
    st.lists(st.sampled_from([*WORDS, "|"]), max_size=25).map("".join),
    st.sampled_from([CORE, KUBERNETES]),
)
@settings(max_examples=500)
def test_any_salad_of_yaml_is_documents_or_an_error(text: str, schema: Schema) -> None:
    with suppress(DocumentError):
        use(text.encode(), schema)


@pytest.mark.parametrize("line_break", ["\n", "\r\n", "\r", "\x85", "\u2028"])
def test_directives_of_a_document_are_bound_before_they_are_parsed(line_break: str) -> None:
    def text(count: int) -> bytes:
        tags = "".join(f"%TAG !a{number}! x:{line_break}" for number in range(count))
        return f"a: 1\n---\nb: 2\n...\n{tags}---\nc: 3\n".encode()

    limit = Limits().directives_max
    assert [document.tree for document in read(text(limit), source="f")][-1] == {"c": 3}
    found = read(text(limit + 1), source="f")
    assert next(found).tree == {"a": 1}
    with pytest.raises(DocumentError, match=f"more than {limit} %TAG directives for one document"):
        list(found)


def test_directives_of_many_documents_are_fine() -> None:
    text = "%TAG !a! x:\n---\na: 1\n...\n" * (Limits().directives_max + 1)
    assert len(list(read(text.encode(), source="f"))) == Limits().directives_max + 1


def test_lines_of_a_text_that_look_like_directives_are_text() -> None:
    text = "a: |\n" + "  %TAG !a! x:\n" * (Limits().directives_max + 1)
    (document,) = read(text.encode(), source="f")
    assert str(document.tree).count("%TAG") == Limits().directives_max + 1


def test_a_plain_document_has_no_more_values_than_allowed() -> None:
    data = b'{"a":[' + b"1," * 50 + b"1]}"
    few = Limits(nodes_max=53)
    assert next(read(data, source="f", limits=few)).tree == {"a": [1] * 51}
    with pytest.raises(DocumentError, match="more than 20 values"):
        list(read(data, source="f", limits=Limits(nodes_max=20)))
    # Signs in a text are no values.
    assert list(read(b'{"a":"' + b",[{" * 99 + b'"}', source="f", limits=few))
