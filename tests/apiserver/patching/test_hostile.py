"""Any patch, however malformed, gets an answer."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mooring.apiserver.patching import (
    CONTENT_TYPES,
    FieldManager,
    PatchError,
    apply_patch,
    read_applied,
)
from tests.apiserver.patching.makers import NOW, POD, apply, pod, update, written

law = settings(
    max_examples=150,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
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
