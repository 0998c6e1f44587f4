"""Any patch, however malformed, gets an answer."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moorage.apiserver.patching import (
    CONTENT_TYPES,
    JSON_PATCH,
    FieldManager,
    PatchError,
    apply_patch,
    read_applied,
)
from moorage.apiserver.patching.json_patch import OPERATIONS_MAX, STEPS_MAX, Draft
from tests.apiserver.patching.makers import NOW, POD, apply, pod, update, written

law = settings(
    max_examples=150,
)

LIVE = update(
    apply(
        None,
        pod(
            {"labels": {"a": "b"}, "finalizers": ["x/y"]},
            containers=[{"name": "c", "image": "i", "env": [{"name": "E", "value": "1"}]}],
            volumes=[{"name": "v", "emptyDir": {}}],
        ),
        "kubectl",
    ),
    pod({"labels": {"a": "c"}, "uid": "1"}, containers=[{"name": "c", "image": "i"}]),
)

WORDS = """
metadata spec status containers env name image volumes labels finalizers managedFields annotations
apiVersion kind op path value from $patch $retainKeys f:a k:{} . fieldsV1 operation fieldsType
manager kubectl.kubernetes.io/last-applied-configuration $setElementOrder/containers
$deleteFromPrimitiveList/finalizers $setElementOrder
"""
names = st.sampled_from(WORDS.split())
scalars = st.sampled_from(
    [None, True, 0, 1, -1, 1.5, 10**30, "", "x", "c", "replace", "delete", "merge", "add", "/",
     "/spec/containers/0", "/metadata/labels/a", "copy", "move", "v1", "Pod", "\ud800", "Apply"]
)  # fmt: skip
trees = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=4),
    max_leaves=12,
)


@law
@given(trees, st.sampled_from(["kubectl", "m", ""]), st.booleans())
def test_an_apply_is_answered(body: Any, manager: str, force: bool) -> None:
    applied = {"apiVersion": "v1", "kind": "Pod", **body} if isinstance(body, dict) else body
    for live in (None, LIVE):
        result = FieldManager(POD).apply(live, applied, manager=manager, force=force, now=NOW)
        assert isinstance(result, dict | PatchError)


@law
@given(trees)
def test_a_live_object_with_odd_owners_is_answered(entries: Any) -> None:
    live = {**LIVE, "metadata": {**LIVE["metadata"], "managedFields": entries}}
    result = FieldManager(POD).apply(live, pod(), manager="m", force=True, now=NOW)
    assert isinstance(result, dict | PatchError)
    assert isinstance(FieldManager(POD).update(LIVE, live, manager="m", now=NOW), dict)
    assert isinstance(FieldManager(POD).update(live, LIVE, manager="m", now=NOW), dict)


@law
@given(trees, st.sampled_from(CONTENT_TYPES))
def test_a_patch_is_answered(body: Any, content_type: str) -> None:
    bodies = [body, [body], {"spec": body}, {"metadata": body}]
    for patch in bodies:
        before = json.dumps(LIVE)
        result = apply_patch(POD, content_type, json.dumps(patch).encode(), LIVE)
        assert isinstance(result, dict | list | PatchError)
        assert json.dumps(LIVE) == before


@law
@given(st.binary(max_size=60) | st.text(max_size=60).map(str.encode))
def test_bytes_are_answered(body: bytes) -> None:
    for content_type in CONTENT_TYPES:
        apply_patch(POD, content_type, body, LIVE)
    read_applied(body)


def test_the_live_object_is_as_the_server_writes_it() -> None:
    assert written(LIVE) == LIVE


# --- work -----------------------------------------------------------------------------------------


def _steps(current: Any, operations: list[Any]) -> int:
    draft = Draft(current)
    for operation in operations:
        draft.do(operation)
    return draft.steps


def test_many_removals_from_a_large_map_cost_one_copy_of_it() -> None:
    current = {"data": {f"k{number}": "" for number in range(60_000)}}
    removals = [{"op": "remove", "path": f"/data/k{number}"} for number in range(9_900)]
    assert _steps(current, removals) < 60_000 + 10 * 9_900
    assert len(current["data"]) == 60_000


def test_insertions_at_the_front_of_a_large_list_end_at_a_bound() -> None:
    patch = json.dumps([{"op": "add", "path": "/data/0", "value": ""}] * 9_000).encode()
    result = apply_patch(POD, JSON_PATCH, patch, {"data": [""] * 300_000})
    assert isinstance(result, PatchError)
    assert (result.status, result.reason) == (413, "RequestEntityTooLarge")
    assert result.message == f"The JSON patch takes more than the allowed {STEPS_MAX} steps"


def test_as_many_operations_as_kubernetes_takes_are_done() -> None:
    patch = json.dumps([{"op": "add", "path": "/data/0", "value": 1}] * OPERATIONS_MAX).encode()
    result = apply_patch(POD, JSON_PATCH, patch, {"data": [0]})
    assert result == {"data": [1] * OPERATIONS_MAX + [0]}


@pytest.mark.parametrize(
    ("operations", "expected"),
    [
        # What a copy and its source become are two things.
        (
            [
                {"op": "add", "path": "/a/x", "value": 1},
                {"op": "copy", "from": "/a", "path": "/b"},
                {"op": "add", "path": "/b/y", "value": 2},
                {"op": "remove", "path": "/a/x"},
            ],
            {"a": {"l": [1, 2]}, "b": {"l": [1, 2], "x": 1, "y": 2}},
        ),
        (
            [
                {"op": "move", "from": "/a/l", "path": "/l"},
                {"op": "add", "path": "/l/-", "value": 3},
                {"op": "replace", "path": "/l/-1", "value": 4},
            ],
            {"a": {}, "l": [1, 2, 4]},
        ),
        (
            [
                {"op": "replace", "path": "", "value": {"c": [[]]}},
                {"op": "add", "path": "/c/0/0", "value": 5},
            ],
            {"c": [[5]]},
        ),
    ],
)
def test_a_draft_shares_nothing_that_it_changes(operations: list[Any], expected: Any) -> None:
    current = {"a": {"l": [1, 2]}}
    patch = json.dumps(operations).encode()
    assert apply_patch(POD, JSON_PATCH, patch, current) == expected
    assert current == {"a": {"l": [1, 2]}}
