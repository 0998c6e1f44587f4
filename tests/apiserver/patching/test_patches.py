"""JSON patch, merge patch and strategic merge patch."""

from __future__ import annotations

import json
from typing import Any

import pytest

from moorage.apiserver.patching import (
    JSON_PATCH,
    MERGE_PATCH,
    STRATEGIC_MERGE_PATCH,
    PatchError,
    apply_patch,
    read_applied,
)
from tests.apiserver.patching.makers import POD, pod

OUT_OF_ORDER = """\
The order in patch list:
[map[name:a]]
 doesn't match $setElementOrder list:
[map[name:b]]
"""
REJECTED = "the server rejected our request due to an error in our request"


def patched(content_type: str, patch: Any, current: Any) -> Any:
    return apply_patch(POD, content_type, json.dumps(patch).encode(), current)


def patched_spec(patch: Any, **spec: Any) -> Any:
    result = patched(STRATEGIC_MERGE_PATCH, {"spec": patch}, pod(**spec))
    return result if isinstance(result, PatchError) else result.get("spec")


# --- JSON patch ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("operations", "result"),
    [
        ([{"op": "add", "path": "/a/-", "value": 3}], {"a": [1, 2, 3]}),
        ([{"op": "add", "path": "/a/0", "value": 0}], {"a": [0, 1, 2]}),
        ([{"op": "add", "path": "/a/-1", "value": 3}], {"a": [1, 2, 3]}),
        ([{"op": "remove", "path": "/a/1"}], {"a": [1]}),
        ([{"op": "replace", "path": "/a/-1", "value": 9}], {"a": [1, 9]}),
        ([{"op": "replace", "path": "/b", "value": 9}], {"a": [1, 2], "b": 9}),
        ([{"op": "move", "from": "/a/0", "path": "/b"}], {"a": [2], "b": 1}),
        ([{"op": "copy", "from": "/a", "path": "/b~1c"}], {"a": [1, 2], "b/c": [1, 2]}),
        ([{"op": "test", "path": "/a", "value": [1, 2]}], {"a": [1, 2]}),
        ([{"op": "test", "path": "/none", "value": None}], {"a": [1, 2]}),
        ([{"op": "replace", "path": "", "value": {"z": 1}}], {"z": 1}),
        ([{"op": "add", "path": "/b", "value": {}}, {"op": "add", "path": "/b/c", "value": 1}],
         {"a": [1, 2], "b": {"c": 1}}),
        (None, {"a": [1, 2]}),
    ],
)  # fmt: skip
def test_operations_are_done_in_order(operations: Any, result: Any) -> None:
    assert patched(JSON_PATCH, operations, {"a": [1, 2]}) == result


@pytest.mark.parametrize(
    ("operation", "detail"),
    [
        ({"op": "remove", "path": "/x"}, "Unable to remove nonexistent key: x: missing value"),
        ({"op": "add", "path": "/a/7", "value": 1}, "invalid index: 7: invalid index referenced"),
        ({"op": "add", "path": "/a/b", "value": 1}, 'strconv.Atoi: parsing "b": invalid syntax'),
        ({"op": "add", "path": "/x/y", "value": 1}, 'doc is missing path: "/x/y": missing value'),
        ({"op": "test", "path": "/a", "value": [1]}, "testing value /a failed: test failed"),
        ({"op": "test", "path": "/a/0", "value": True}, "testing value /a/0 failed: test failed"),
        ({"op": "fly", "path": "/a"}, "Unexpected kind: fly"),
        ({"path": "/a"}, "Unexpected kind: unknown"),
        ({"op": "add"}, "add operation failed to decode path: missing value"),
        ({"op": "replace", "path": "", "value": 1}, "value must be object or array"),
    ],
)
def test_an_operation_that_does_not_apply_is_unprocessable(operation: Any, detail: str) -> None:
    error = patched(JSON_PATCH, [operation], {"a": [1, 2]})
    assert (error.status, error.reason, error.message) == (422, "Invalid", REJECTED)
    assert detail in error.detail


@pytest.mark.parametrize(
    ("patch", "message"),
    [
        (
            {},
            "json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp",
        ),
        ([1], "json: cannot unmarshal number into Go value of type handlers.jsonPatchOp"),
        (
            [{"op": 1}],
            "json: cannot unmarshal number into Go struct field jsonPatchOp.op of type string",
        ),
    ],
)
def test_what_is_no_json_patch_is_a_bad_request(patch: Any, message: str) -> None:
    error = patched(JSON_PATCH, patch, {})
    assert (error.status, error.message) == (400, f"error decoding patch: {message}")


def test_there_is_a_bound_on_operations() -> None:
    operations = [{"op": "test", "path": "/a", "value": 1}] * 10_001
    error = patched(JSON_PATCH, operations, {"a": 1})
    assert (error.status, error.reason) == (413, "RequestEntityTooLarge")
    expected = "The allowed maximum operations in a JSON patch is 10000, got 10001"
    assert error.message == expected


def test_copies_cannot_blow_up_a_document() -> None:
    doubling = [{"op": "copy", "from": "/a", "path": f"/a/{n}"} for n in range(40)]
    error = patched(JSON_PATCH, doubling, {"a": {"text": "x" * 100}})
    assert error.status == 422
    assert "exceeding the limit 3145728" in error.detail


# --- merge patch ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("patch", "result"),
    [
        ({"b": 2}, {"a": {"x": 1}, "b": 2}),
        ({"a": None}, {}),
        ({"a": {"x": None, "y": {"z": None}}}, {"a": {"y": {}}}),
        ({"a": [{"n": None}]}, {"a": [{"n": None}]}),
        ({"b": [{"n": None}, None]}, {"a": {"x": 1}, "b": [{}, None]}),
        ({"a": 1}, {"a": 1}),
    ],
)
def test_a_merge_patch_is_merged(patch: Any, result: Any) -> None:
    assert patched(MERGE_PATCH, patch, {"a": {"x": 1}}) == result


def test_what_is_no_merge_patch_is_a_bad_request() -> None:
    assert patched(MERGE_PATCH, None, {}).message == "Invalid JSON Patch"
    assert "cannot unmarshal array" in patched(MERGE_PATCH, [], {}).message


# --- strategic merge patch -----------------------------------------------------------------


def test_items_are_merged_by_key() -> None:
    spec = patched_spec(
        {"containers": [{"name": "b", "image": "new"}, {"name": "c", "image": "z"}]},
        containers=[{"name": "a", "image": "x"}, {"name": "b", "image": "y", "tty": True}],
    )
    assert spec["containers"] == [
        {"name": "a", "image": "x"},
        {"name": "b", "image": "new", "tty": True},
        {"name": "c", "image": "z"},
    ]


def test_an_item_is_deleted_by_directive() -> None:
    patch = {"containers": [{"name": "a", "$patch": "delete"}]}
    spec = patched_spec(patch, containers=[{"name": "a"}, {"name": "b"}])
    assert spec["containers"] == [{"name": "b"}]


def test_a_list_is_replaced_by_directive() -> None:
    patch = {"containers": [{"$patch": "replace"}, {"name": "c"}]}
    assert patched_spec(patch, containers=[{"name": "a"}])["containers"] == [{"name": "c"}]


def test_a_map_is_replaced_or_emptied_by_directive() -> None:
    kept = {"nodeSelector": {"$patch": "replace", "b": "2"}}
    assert patched_spec(kept, nodeSelector={"a": "1"}) == {"nodeSelector": {"b": "2"}}
    gone = {"nodeSelector": {"$patch": "delete"}}
    assert patched_spec(gone, nodeSelector={"a": "1"}) == {"nodeSelector": {}}


def test_other_keys_go_with_retain_keys() -> None:
    volume = {"name": "v", "$retainKeys": ["name", "emptyDir"], "emptyDir": {}}
    spec = patched_spec({"volumes": [volume]}, volumes=[{"name": "v", "hostPath": {"path": "/"}}])
    assert spec["volumes"] == [{"name": "v", "emptyDir": {}}]


def test_scalars_are_merged_and_taken_out() -> None:
    current = pod({"finalizers": ["x/1", "x/2"]})
    more = patched(STRATEGIC_MERGE_PATCH, {"metadata": {"finalizers": ["x/3"]}}, current)
    assert more["metadata"]["finalizers"] == ["x/3", "x/1", "x/2"]  # Its place is unknown.
    gone = {"metadata": {"$deleteFromPrimitiveList/finalizers": ["x/1"]}}
    less = patched(STRATEGIC_MERGE_PATCH, gone, current)
    assert less["metadata"]["finalizers"] == ["x/2"]


def test_a_list_is_put_in_order() -> None:
    spec = patched_spec(
        {
            "$setElementOrder/containers": [{"name": "c"}, {"name": "a"}],
            "containers": [{"name": "c"}],
        },
        containers=[{"name": "a"}, {"name": "b"}],
    )
    assert [c["name"] for c in spec["containers"]] == ["c", "a", "b"]


def test_lists_without_a_strategy_are_replaced() -> None:
    spec = patched_spec({"tolerations": [{"key": "b"}]}, tolerations=[{"key": "a"}])
    assert spec["tolerations"] == [{"key": "b"}]


@pytest.mark.parametrize(
    ("patch", "message"),
    [
        ({"nodeSelector": {"$patch": "eat"}}, "unknown patch type: eat in map: map[$patch:eat]"),
        (
            {"containers": [{"image": "x"}]},
            "map: map[image:x] does not contain declared merge key: name",
        ),
        ({"$retainKeys": "x"}, "invalid patch format of retainKeys"),
        (
            {"$setElementOrder/containers": [{"name": "b"}], "containers": [{"name": "a"}]},
            OUT_OF_ORDER,
        ),
        (
            {"containers": ["x"]},
            "list element types are not identical: [[map[name:a]] [x]]",
        ),
        (
            {"containers": [{"name": {}}]},
            "map[] is not a scalar, items cannot be compared by it",
        ),
    ],
)
def test_a_strategic_patch_that_makes_no_sense_is_refused(patch: Any, message: str) -> None:
    error = patched_spec(patch, containers=[{"name": "a"}], nodeSelector={"a": "1"})
    assert (error.status, error.message) == (400, message)


def test_a_patch_is_not_changed_by_being_applied() -> None:
    current = pod(containers=[{"name": "a", "env": [{"name": "E", "value": "1"}]}])
    before = json.dumps(current)
    patched(STRATEGIC_MERGE_PATCH, {"spec": {"containers": [{"name": "a", "env": None}]}}, current)
    patched(JSON_PATCH, [{"op": "remove", "path": "/spec/containers/0/env/0"}], current)
    patched(MERGE_PATCH, {"spec": {"containers": None}}, current)
    assert json.dumps(current) == before


# --- bodies --------------------------------------------------------------------------------


@pytest.mark.parametrize("body", [b"", b"{", b"\xff", b"[1,]", b"nope"])
def test_what_is_no_json_is_a_bad_request(body: bytes) -> None:
    for content_type in (JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH):
        error = apply_patch(POD, content_type, body, {})
        assert isinstance(error, PatchError)
        assert (error.status, error.message) == (400, "invalid JSON patch")


@pytest.mark.parametrize("depth", [900, 200_000])
def test_deep_nesting_is_no_fault(depth: int) -> None:
    body = b'{"metadata":' * depth + b"{}" + b"}" * depth
    deep: Any = {}
    for _ in range(900):
        deep = {"metadata": deep}
    for content_type in (MERGE_PATCH, STRATEGIC_MERGE_PATCH):
        result = apply_patch(POD, content_type, body, deep)
        assert isinstance(result, dict | PatchError)


def test_other_content_types_are_not_known() -> None:
    error = apply_patch(POD, "application/json", b"{}", {})
    assert isinstance(error, PatchError)
    assert (error.status, error.reason) == (415, "UnsupportedMediaType")


def test_parameters_of_the_content_type_do_not_matter() -> None:
    assert apply_patch(POD, f"{MERGE_PATCH}; charset=utf-8", b'{"a":1}', {}) == {"a": 1}


def test_applied_objects_are_read_from_yaml() -> None:
    assert read_applied(b"kind: Pod\nspec: {hostNetwork: yes}") == {
        "kind": "Pod",
        "spec": {"hostNetwork": True},
    }
    for body in (b"a: [", b"a: 1\n---\nb: 2\n"):
        error = read_applied(body)
        assert isinstance(error, PatchError)
        assert error.message.startswith("error decoding patch: ")
