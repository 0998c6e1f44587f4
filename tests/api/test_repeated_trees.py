"""What was made of JSON that comes again is made once, and is the same as if it was made anew."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw

from benchmarks._dump import DumpSize, cluster_objects
from moorage.api.documents.scalars import NumberText
from moorage.api.errors import DecodeError
from moorage.api.gates import Gates
from moorage.api.go_types import ITEMS_MAX, Unknown, message_named
from moorage.api.object_reader import read_tree
from moorage.api.repeated_trees import BYTES_MAX, MISSES_MAX, PASSED_OVER, made_once

VALUES: st.SearchStrategy[Any] = st.sampled_from(
    [None, True, 1, 0, "", "1", "true", 1.5, [], {}, [1], [True], "\ud800"]
)


class Maker:
    """Makes a list of a tree, and keeps the trees that it saw."""

    def __init__(self) -> None:
        self.seen: list[Any] = []

    def __call__(self, tree: Any) -> list[Any]:
        self.seen.append(tree)
        return [tree]


@settings(max_examples=200)
@given(trees=st.lists(st.dictionaries(st.sampled_from("ab"), VALUES, max_size=2), max_size=20))
def test_trees_get_what_is_made_of_them(trees: list[Any]) -> None:
    make = made_once(lambda tree: [repr(tree)])
    assert [make(tree) for tree in (*trees, *trees)] == [[repr(tree)] for tree in (*trees, *trees)]


def test_equal_trees_share_what_is_made_of_the_first() -> None:
    maker = Maker()
    make = made_once(maker)
    found = [make({"a": [1]}) for _ in range(1_000)]
    assert maker.seen == [{"a": [1]}]
    assert all(each is found[0] for each in found)


@pytest.mark.parametrize(
    "tree", [{"a": NumberText("1.50")}, {"a": "\ud800"}, {"a": "x" * BYTES_MAX}, Raw(b'{"a":1}')]
)
def test_of_some_trees_nothing_is_remembered(tree: Any) -> None:
    maker = Maker()
    make = made_once(maker)
    make(tree)
    make(tree)
    assert len(maker.seen) == 2


def test_where_all_trees_differ_most_are_passed_over() -> None:
    maker = Maker()
    make = made_once(maker)
    for number in range(MISSES_MAX):
        make({"name": number})
    for _ in range(PASSED_OVER):
        make({"name": 0})
    assert len(maker.seen) == MISSES_MAX + PASSED_OVER - 1  # The last was looked for again.


def test_pods_of_a_template_share_their_parts() -> None:
    trees = [tree for tree in cluster_objects(DumpSize(4, 10)) if tree["kind"] == "Pod"]
    pods = [read_tree(tree, gates=Gates.parse()).value for tree in trees * 300]
    sources = {id(pod.spec.volumes[0]["projected"]) for pod in pods}
    assert len(sources) <= PASSED_OVER  # They were, at first, if others came before.
    assert len({pod.spec.volumes[0]["name"] for pod in pods}) == len(trees)


def test_items_that_come_again_count_each_time() -> None:
    sources = [{"configMap": {"items": [{"key": "k", "path": "p"}] * 9}}] * 10  # 100 items
    volume = {"name": "v", "projected": {"sources": sources}}
    read = message_named("core/v1.PodSpec").fields["volumes"].read
    fitting = ITEMS_MAX // 101
    assert len(read([volume] * fitting, (), Unknown())) == fitting
    with pytest.raises(DecodeError, match="the lists of the object have more than 10,000 items"):
        read([volume] * (fitting + 1), (), Unknown())


def test_unknown_fields_are_reported_each_time() -> None:
    read = message_named("core/v1.PodSpec").fields["volumes"].read
    for _ in range(3):
        unknown = Unknown()
        read([{"name": "v", "emptyDir": {"odd": 1}}], ("volumes",), unknown)
        assert unknown == [("volumes", 0, "emptyDir", "odd")]
