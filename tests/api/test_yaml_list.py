"""A dump in YAML is read item by item as if it had been read at once, or not at all."""

from __future__ import annotations

import io
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks._dump import DumpSize, cluster_objects, write_yaml
from moorage.api.documents import CORE, KUBERNETES, Document, Limits, Schema, expand_lists, read
from moorage.api.documents import yaml_list as read_list
from moorage.api.documents.yaml_block import BlockParser, NotBlockError
from moorage.api.errors import DocumentError
from tests.api.test_json_list import places

WORDS = [
    "on",
    "y",
    "null",
    "~",
    "1e3",
    "0x1f",
    "017",
    "1_000",
    "1.50",
    "-.inf",
    "a b",
    "a:b",
    "a: b",
]
WORDS += [
    "- a",
    "#",
    "a #b",
    "'",
    '"',
    "{}",
    "[]",
    "*a",
    "&a",
    "!x",
    "",
    " a",
    "a ",
    "\n",
    "a\nb\n",
    "ü",
]
WORDS += [
    "%",
    "@",
    "`",
    "---",
    "...",
    "?",
    "?a",
    "-",
    "-a",
    ":",
    "a:",
    "<<",
    "=",
    "\\",
    "\t",
    "x" * 90,
]
scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False)
texts = st.sampled_from(WORDS) | st.text("ab:#-'\" \\{[,\n", max_size=6)
values = st.recursive(
    scalars | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=12,
)
items = st.dictionaries(st.sampled_from(["kind", "apiVersion", "spec", "x"]) | texts, values)
schemas = pytest.mark.parametrize("schema", [CORE, KUBERNETES], ids=["core", "kubernetes"])


def outcome(data: bytes, schema: Schema) -> list[Document] | None:
    try:
        found = read(data, source="x", schema=schema)
        return [item for document in found for item in expand_lists(document)]
    except DocumentError:
        return None


def check(data: bytes, schema: Schema) -> bool:
    """Check that the list, if it is read one by one, is that of the whole text."""
    found = read_list(data, source="x", schema=schema)
    if found is None:
        return False
    expected = outcome(data, schema)
    documents = list(found.documents())
    assert expected is not None
    assert [repr(d.tree) for d in documents] == [repr(d.tree) for d in expected]
    for document, other in zip(reversed(documents), reversed(expected), strict=True):
        for name in ("source", "index", "duplicates", "within", "line", "raw", "text"):
            assert getattr(document, name) == getattr(other, name)
        for place in (*places(other.tree), ("none",)):
            assert document.locate(place) == other.locate(place)
    return True


def dumped(objects: list[Any], **options: Any) -> bytes:
    tree = {"apiVersion": "v1", "items": objects, "kind": "List"}
    text: str = yaml.safe_dump(tree, default_flow_style=False, **options)
    return text.encode()


@schemas
@settings(max_examples=150)
@given(objects=st.lists(items, min_size=1, max_size=4), is_wide=st.booleans(), style=st.booleans())
def test_what_a_tool_writes(objects: list[Any], is_wide: bool, style: bool, schema: Schema) -> None:
    width = 10_000 if is_wide else 20
    check(dumped(objects, width=width, default_style='"' if style else None), schema)


@schemas
@settings(max_examples=400)
@given(
    lines=st.lists(
        st.tuples(
            st.sampled_from(["", "  ", "    ", "      "]),
            st.sampled_from(["", "- ", "-  ", "- - "]),
            st.sampled_from(["a:", "b:", "on:", "1:", '"c":', "", "<<:", "? a:", "a :"]),
            st.sampled_from(
                ["", " x", " 1", " {}", " [a]", ' "x"', " 'x'", " |", " &a x", " *a", " #"]
            )
            | texts.map(lambda text: f" {text}"),
        ),
        max_size=8,
    )
)
def test_what_nobody_writes(lines: list[tuple[str, ...]], schema: Schema) -> None:
    body = "\n".join("".join(parts) for parts in lines)
    check(f"items:\n- a: 1\n{body}\n- b: 2\nkind: List\n".encode(), schema)


@schemas
@settings(max_examples=400)
@given(
    lines=st.lists(
        st.tuples(
            st.integers(0, 4),
            st.sampled_from(["", "- ", "- - "]),
            st.sampled_from(["a:", "b:", "c:", ""]),
            st.sampled_from(["", " x", " 1", " {}"]),
        ),
        min_size=1,
        max_size=7,
    )
)
def test_block_lines_of_any_indentation(lines: list[Any], schema: Schema) -> None:
    texts = [f"{'  ' * depth}{dash}{key}{value}" for depth, dash, key, value in lines]
    data = ("\n".join(["root: 1", *texts]) + "\n").encode()
    try:
        quick = BlockParser(schema, 90).mapping(data.decode()[:-1].split("\n"), 0)
    except NotBlockError:
        return
    (document,) = read(data, source="x", schema=schema)
    assert repr(document.tree) == repr(quick)


def dump() -> bytes:
    file = io.StringIO()
    write_yaml(cluster_objects(DumpSize(nodes=2, pods=4)), file)
    return file.getvalue().encode()


@schemas
def test_a_dump_is_read_item_by_item(schema: Schema) -> None:
    assert check(dump(), schema)


def test_an_item_that_is_not_plain_is_read_by_itself() -> None:
    odd = (
        b"- 123456789012345678901234567890\n- \n  a: 1.50\n"
        b"- kind: Pod\n  kind: Pod\n  b: |\n    - x\n  c: {d: [1]}\n  e: x\n    y\n  # f\n"
    )
    assert check(dump().replace(b"kind: List", odd + b"kind: List"), CORE)


@pytest.mark.parametrize(
    "data",
    [
        b"items:\n- a: &x 1\n- b: *x\nkind: List\n",
        b"items:\n- a: &x 1\nkind: List\n",
        b"items:\n- a: 'x\n- b: y'\nkind: List\n",
        b"items:\n- a: \x01\nkind: List\n",
        b"items:\n- a: \xff\nkind: List\n",
        b"items:\n- a: 1\nkind: List\n---\na: 1\n",
        b"items:\n- a: 1\r\nkind: List\n",
        b"items:\n- a: 1\nkind: Pod\n",
        b"items:\n- a: 1\nkind: List\nkind: List\n",
        b"items:\n- a: 1\nitems:\n- a: 1\nkind: List\n",
        b"items:\n- kind: List\n  items: [{a: 1}]\nkind: List\n",
        b"items:\n- a: 1\n b: 2\nkind: List\n",
        b"items:\n- a: 1\n",
    ],
)
def test_what_needs_care_is_left_to_the_full_parser(data: bytes) -> None:
    assert read_list(data, source="x", schema=CORE) is None


def test_limits_hold() -> None:
    data = b"items:\n- a:\n    b:\n    - c: 1\nkind: List\n"

    def is_read(**limits: int) -> bool:
        return read_list(data, source="x", schema=CORE, limits=Limits(**limits)) is not None

    assert is_read(depth_max=6)
    assert not is_read(depth_max=5)
    odd = data.replace(b"c: 1", b"{c: 1}")
    assert read_list(odd, source="x", schema=CORE, limits=Limits(depth_max=6)) is not None
    assert read_list(odd, source="x", schema=CORE, limits=Limits(depth_max=5)) is None
    assert is_read(nodes_max=100)
    assert not is_read(nodes_max=3)
    assert not is_read(bytes_max=len(data) - 1)
