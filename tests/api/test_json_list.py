"""A dump is read item by item as if it had been read at once, or not at all."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moorage.api.documents import Document, Limits, expand_lists, json_list, read
from moorage.api.documents.document import Tree

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text('aü: \n{["\\'),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab:"), inner, max_size=3),
    max_leaves=12,
)
objects = st.dictionaries(st.sampled_from(["kind", "apiVersion", "spec", "ä"]), values, max_size=4)
heads = st.fixed_dictionaries(
    {"kind": st.sampled_from(["List", "PodList", "Pod"])},
    optional={"apiVersion": st.just("v1"), "metadata": values, "Kind": values},
)


def at_once(data: bytes) -> list[Document]:
    return [item for document in read(data, source="x") for item in expand_lists(document)]


def places(tree: Tree, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield above
    members: Any = ()
    if isinstance(tree, dict | list):
        members = tree.items() if isinstance(tree, dict) else enumerate(tree)
    for key, value in members:
        yield from places(value, (*above, key))


@settings(max_examples=300)
@given(
    head=heads,
    items=st.lists(objects, max_size=4),
    indent=st.sampled_from([None, 1, 4]),
    is_ascii=st.booleans(),
    is_sorted=st.booleans(),
    batch_bytes=st.sampled_from([1, 40, 1_000]),
)
def test_items_are_those_of_the_whole_text(
    head: Any,
    items: list[Any],
    indent: int | None,
    is_ascii: bool,
    is_sorted: bool,
    batch_bytes: int,
) -> None:
    text = json.dumps({**head, "items": items}, indent=indent, ensure_ascii=is_ascii)
    if is_sorted:
        text = json.dumps(json.loads(text), indent=indent, ensure_ascii=is_ascii, sort_keys=True)
    data = text.encode()
    found = json_list(data, source="x", batch_bytes=batch_bytes)
    if found is None:
        return
    assert found.head == {k: v for k, v in head.items() if k != "items"}
    expected = at_once(data)
    documents = list(found.documents())
    assert [repr(d.tree) for d in documents] == [repr(d.tree) for d in expected]
    for document, other in zip(reversed(documents), reversed(expected), strict=True):
        for name in ("source", "index", "duplicates", "within", "line", "raw", "text"):
            assert getattr(document, name) == getattr(other, name)
        for place in (*places(other.tree), ("none",)):
            assert document.locate(place) == other.locate(place)


WRITTEN = json.dumps(
    {
        "apiVersion": "v1",
        "items": [
            {"kind": "Pod", "metadata": {"name": f"pod-{number}"}, "spec": {"list": [{}, {"a": 1}]}}
            for number in range(4)
        ],
        "kind": "List",
    },
    indent=4,
).encode()


class StoredParts:
    """A text of which parts are handed out; it keeps how long they were."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.lengths: list[int] = []

    @property
    def bytes_count(self) -> int:
        return len(self._data)

    def part(self, start: int, end: int) -> bytes:
        found = self._data[start:end]
        self.lengths.append(len(found))
        return found


@settings(max_examples=400)
@given(
    place=st.integers(0, len(WRITTEN) - 1),
    removed=st.integers(0, 12),
    added=st.sampled_from(
        [b"", b"{", b"}", b"},\n        {", b"]", b"[", b",", b'"', b"\xff", b"\n"]
    ),
    batch_bytes=st.sampled_from([1, 100, 100_000]),
)
def test_damaged_text_is_left_to_the_careful_reader_or_read_like_it(
    place: int, removed: int, added: bytes, batch_bytes: int
) -> None:
    data = WRITTEN[:place] + added + WRITTEN[place + removed :]
    found = json_list(StoredParts(data), source="x", batch_bytes=batch_bytes)
    if found is None:
        return
    expected = at_once(data)
    documents = list(found.documents())
    assert [(d.tree, d.line) for d in documents] == [(d.tree, d.line) for d in expected]
    for document, other in zip(documents, expected, strict=True):
        assert document.locate(("spec", "list")) == other.locate(("spec", "list"))


def test_stored_text_is_read_in_batches() -> None:
    item = json.dumps({"kind": "Pod", "spec": {"a": "x" * 1_000}}, indent=4).replace("\n", "\n    ")
    items = ",".join([f"\n    {item}"] * 500)
    text = StoredParts(DUMP % f"{items}\n    ".encode())

    found = json_list(text, source="x", batch_bytes=5_000)

    assert found is not None
    assert len(list(found.documents())) == 500
    assert sum(text.lengths) < text.bytes_count * 2
    assert max(text.lengths) <= 64 * 1024 + 1  # as long as what is around the items may be


DUMP = b'{"apiVersion": "v1", "items": [%b], "kind": "List", "metadata": {}}'
ITEM = b'{"kind": "Pod", "spec": {"e": "a \\u003e= b", "x": [1, 1.5]}}'


def test_a_dump_is_read_item_by_item() -> None:
    found = json_list(DUMP % b", ".join([ITEM] * 3), source="x")

    assert found is not None
    assert [item.tree["kind"] for item in found.documents()] == ["Pod"] * 3  # type: ignore[call-overload, index]


@pytest.mark.parametrize(
    "data",
    [
        DUMP % b'{"a": 1, "a": 2}',
        DUMP % b'{"a": "\\ud800"}',
        DUMP % b'{"a": 1, "\\u003a": 2}',
        DUMP % b'{"a": "\xff"}',
        DUMP % b'{"a": 1e999}',
        DUMP % (b'{"a": ' + b"1" * 500 + b"}"),
        DUMP % (b'{"a": ' + b"[" * 99 + b"]" * 99 + b"}"),
        DUMP % b'{"kind": "List", "items": []}',
        DUMP % b"1",
        DUMP % b'{"a": 1},',
        DUMP % ITEM + DUMP % ITEM,
        DUMP % ITEM + b"\n---\n",
        b'{"items": [1], "kind": "List", "items": [{"a": 1}]}',
        b'{"kind": "List", "metadata": {"items": [{"a": 1}]}, "items": [{"a": 2}]}',
        b'{"kind": "List", "metadata": {"items": [{"a": 1}]}, "items": 0}',
        b'{"kind": "List", "metadata": {"items": [{"a": 1}]}, "items": false}',
        b'{"kind": "List", "kind": "PodList", "items": [{"a": 2}]}',
        b'{"kind": "Pod", "items": [{"a": 1}]}',
        b'{"kind": "ListList", "items": [{"items": [{"a": 1}]}]}',
        b'{"kind": 1, "items": [{"a": 1}]}',
        b'\xef\xbb\xbf{"kind": "List", "items": []}',
    ],
)
def test_what_needs_care_is_left_to_the_careful_reader(data: bytes) -> None:
    assert json_list(data, source="x") is None


def test_limits_hold() -> None:
    data = DUMP % b'{"a": [[1]]}'
    assert json_list(data, source="x", limits=Limits(depth_max=5)) is not None
    assert json_list(data, source="x", limits=Limits(depth_max=4)) is None
    assert json_list(data, source="x", limits=Limits(nodes_max=100)) is not None
    assert json_list(data, source="x", limits=Limits(nodes_max=5)) is None
    assert json_list(data, source="x", limits=Limits(bytes_max=len(data) - 1)) is None
