"""Laws of patches and of ownership, on random objects."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moorage.api.codec import to_tree
from moorage.api.custom_workloads import is_workload
from moorage.api.documents import CORE, read
from moorage.api.gates import Gates
from moorage.api.object_reader import read_tree
from moorage.apiserver.patching import (
    JSON_PATCH,
    MERGE_PATCH,
    STRATEGIC_MERGE_PATCH,
    FieldManager,
    apply_patch,
    with_times_kept,
)
from moorage.apiserver.patching.field_set import FieldSet, from_json, to_json
from moorage.apiserver.patching.json_values import same
from moorage.apiserver.patching.shapes import find_shape, shape_of
from moorage.apiserver.patching.structured_compare import compare, fields_of
from moorage.apiserver.patching.structured_merge import merge, remove
from tests.apiserver.patching.diffs import json_patch_back, strategic_diff
from tests.apiserver.patching.makers import LATER, POD, apply, owners, pod, written

EXAMPLES = sorted((Path(__file__).parents[3] / "examples").rglob("*.yaml"))
SHAPE = shape_of("core/v1.Pod")


law = settings(
    max_examples=80,
)


def subset(items: dict[str, st.SearchStrategy[Any]]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=items)


def named(names: str, key: str, **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Any]]:
    item = st.builds(lambda name, rest: {key: name, **rest}, st.sampled_from(names), subset(fields))
    return st.lists(item, min_size=1, max_size=3, unique_by=lambda i: str(i[key]))


words = st.sampled_from(["x", "y"])
labels = st.dictionaries(st.sampled_from("klm"), words, min_size=1, max_size=3)
environment = named("EFG", "name", value=words)
containers = named(
    "abc",
    "name",
    image=words,
    tty=st.booleans(),
    args=st.lists(words, min_size=1, max_size=2),
    env=environment,
)
specs = subset(
    {
        "containers": containers,
        "nodeSelector": labels,
        "volumes": named("vw", "name", emptyDir=st.just({})),
        "tolerations": st.lists(st.builds(lambda k: {"key": k}, words), min_size=1, max_size=2),
        "activeDeadlineSeconds": st.integers(1, 3),
    }
)
finalizers = st.lists(st.sampled_from(["f/1", "f/2"]), min_size=1, unique=True)
metadata = subset({"labels": labels, "finalizers": finalizers})
pods = st.builds(lambda m, s: pod(m, **s), metadata, specs)


def stripped(tree: Any) -> Any:
    """Return an object without its owners."""
    kept = {k: v for k, v in tree["metadata"].items() if k not in ("managedFields", "uid")}
    return {**tree, "metadata": kept}


@law
@given(pods, pods)
def test_applying_twice_is_applying_once(live: Any, applied: Any) -> None:
    start = apply(None, live, "other")
    once = apply(start, applied, force=True)
    # A field that is stored by leaving it out (`tty: false`) is set again each time.
    assert with_times_kept(once, apply(once, applied, force=True, now=LATER)) == once


@law
@given(metadata, specs)
def test_managers_of_different_fields_can_go_in_any_order(meta: Any, spec: Any) -> None:
    first, second = pod(meta), pod(**spec)
    forth = apply(apply(None, first, "a"), second, "b")
    back = apply(apply(None, second, "b"), first, "a")
    assert forth == back


@law
@given(pods, pods)
def test_taking_back_what_one_alone_applied_restores(live: Any, applied: Any) -> None:
    start = apply(None, live, "other")
    manager = FieldManager(POD)
    added = manager.apply(start, applied, manager="a", force=False, now=LATER)
    if not isinstance(added, dict):
        return  # in conflict
    after = apply(written(added), pod(), "a")
    assert _unordered(stripped(after)) == _unordered(stripped(start))
    assert owners(after) == owners(start)


def _unordered(tree: Any) -> Any:
    """Return an object with the items of its lists sorted: applying may have moved them."""
    if isinstance(tree, dict):
        return {key: _unordered(value) for key, value in tree.items()}
    if isinstance(tree, list):
        return sorted(map(_unordered, tree), key=lambda item: json.dumps(item, sort_keys=True))
    return tree


@law
@given(pods, pods)
def test_what_is_applied_is_there(live: Any, applied: Any) -> None:
    result = apply(apply(None, live, "other"), applied, force=True)
    mine = fields_of(SHAPE, applied)
    there = fields_of(SHAPE, result)
    missing = {path[-1] for path in mine.paths() if path not in there and path[0] == "f:spec"}
    assert missing <= {"f:tty"}  # false is stored by leaving it out


@law
@given(pods, pods)
def test_strategic_merge_of_a_difference_gives_the_target(old: Any, new: Any) -> None:
    patch = strategic_diff(SHAPE, old, new)
    body = json.dumps(patch).encode()
    assert apply_patch(POD, STRATEGIC_MERGE_PATCH, body, old) == new


documents = st.fixed_dictionaries(
    {
        "a": st.lists(st.integers(0, 5), min_size=1, max_size=3),
        "b": st.dictionaries(st.sampled_from("xy"), st.integers(0, 5)),
    }
)


@st.composite
def operations(draw: st.DrawFn, document: Any) -> dict[str, Any]:
    where = draw(st.sampled_from("ab"))
    holder = document[where]
    if where == "a":
        op = draw(st.sampled_from(["add", "remove", "replace"]))
        last = len(holder) if op == "add" else len(holder) - 1
        key = str(draw(st.integers(0, last)))
    else:
        op = draw(st.sampled_from(["add", "remove", "replace"] if holder else ["add"]))
        keys = "xy" if op == "add" else sorted(holder)
        key = draw(st.sampled_from(keys))
    return {"op": op, "path": f"/{where}/{key}", "value": draw(st.integers(0, 5))}


@law
@given(documents.flatmap(lambda d: st.tuples(st.just(d), operations(d))))
def test_a_json_patch_can_be_undone(case: tuple[Any, dict[str, Any]]) -> None:
    document, operation = case
    there = apply_patch(POD, JSON_PATCH, json.dumps([operation]).encode(), document)
    back = json.dumps([json_patch_back(document, operation)]).encode()
    assert apply_patch(POD, JSON_PATCH, back, there) == document


plain = st.recursive(
    st.integers(0, 2) | words | st.booleans(),
    lambda inner: st.dictionaries(st.sampled_from("klm"), inner, max_size=3),
    max_leaves=8,
)
maps = st.dictionaries(st.sampled_from("klm"), plain, max_size=3)


@law
@given(maps, maps)
def test_a_merge_patch_of_a_difference_gives_the_target(old: Any, new: Any) -> None:
    def difference(left: Any, right: Any) -> Any:
        if not (isinstance(left, dict) and isinstance(right, dict)):
            return right
        gone = {key: None for key in left if key not in right}
        return {**gone, **{key: difference(left.get(key), right[key]) for key in right}}

    body = json.dumps(difference(old, new)).encode()
    result = apply_patch(POD, MERGE_PATCH, body, old)
    assert same(result, new)


@law
@given(maps, maps)
def test_same_is_what_json_says(left: Any, right: Any) -> None:
    texts = [json.dumps(value, sort_keys=True) for value in (left, right)]
    assert same(left, right) == (texts[0] == texts[1])


@law
@given(pods, pods)
def test_field_sets_are_sets(left: Any, right: Any) -> None:
    one, other = fields_of(SHAPE, left), fields_of(SHAPE, right)
    mine, theirs = set(one.paths()), set(other.paths())
    assert set((one | other).paths()) == mine | theirs
    assert set((one & other).paths()) == mine & theirs
    assert set((one - other).paths()) == mine - theirs
    assert from_json(json.loads(json.dumps(to_json(one)))) == one
    assert (one - one).is_empty
    assert all(path in one for path in mine)
    assert FieldSet.of(*mine) == one


@law
@given(pods, pods)
def test_a_comparison_says_what_came_and_went(old: Any, new: Any) -> None:
    removed, modified, added = compare(SHAPE, old, new)
    before, after = (fields_of(SHAPE, tree) for tree in (old, new))
    assert (before & removed) == (before - after)
    assert (after & added) == (after - before)
    assert (modified & before & after) == modified
    assert compare(SHAPE, old, old).added.is_empty


@law
@given(pods, pods)
def test_merging_loses_nothing_and_removing_takes_all(live: Any, applied: Any) -> None:
    merged = merge(SHAPE, live, applied)
    mine = fields_of(SHAPE, applied)
    assert (mine - fields_of(SHAPE, merged)).is_empty
    assert (fields_of(SHAPE, live) - fields_of(SHAPE, merged)).is_empty
    assert remove(SHAPE, live, fields_of(SHAPE, live).with_named_fields(SHAPE)) is None


# --- the creator of an object -------------------------------------------------------------------


class TheLongWay(FieldManager):
    """Compares with the empty object, as for every other update."""

    def _created(self, new: Any, manager: str, now: str) -> None:
        return None


@law
@given(pods)
def test_what_a_creator_owns_is_what_the_empty_object_lacks(new: Any) -> None:
    tree = written(new)
    told = FieldManager(POD).update(None, tree, manager="m", now=LATER)
    assert told == TheLongWay(POD).update(None, tree, manager="m", now=LATER)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_creators_of_examples_own_the_same_either_way(path: Path) -> None:
    for document in read(path.read_bytes(), source=path.name, schema=CORE):
        if is_workload(document):
            continue
        reading = read_tree(document.tree, gates=Gates.parse())
        kind, tree = reading.kind, to_tree(reading.value)
        if find_shape(kind.api_version, kind.name) is None:
            continue
        told = FieldManager(kind).update(None, tree, manager="m", now=LATER)
        assert told == TheLongWay(kind).update(None, tree, manager="m", now=LATER)
