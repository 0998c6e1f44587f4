"""Every recorded write of a real server gives the same object, owners included."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from moorage.api.catalogue import from_hub
from moorage.api.codec import decode_tree, to_tree
from moorage.api.gates import Gates
from moorage.api.timestamp import Timestamp
from moorage.apiserver.patching import (
    APPLY_PATCH,
    FieldManager,
    PatchError,
    apply_patch,
    read_applied,
    with_times_kept,
)
from moorage.apiserver.patching.field_set import from_json, to_json
from moorage.validation.registry import defaulted_hub
from moorage.validation.strategy import Context
from tests.apiserver.patching.recorded import Write, writes

# What the server fills in when it stores an object.
_STORED = ("uid", "resourceVersion", "creationTimestamp", "generation", "name", "namespace")


# Refused or completed by admission, which is not tested here.
_BEYOND = {"36-apply-immutable", "41-create-pod", "A0-run"}


def _compared() -> list[Write]:
    return [write for write in writes() if write.label not in _BEYOND]


def _done(write: Write) -> Any:
    """Return the object that a write leads to, or why it was refused."""
    manager = FieldManager(write.kind, write.subresource)
    if write.content_type == APPLY_PATCH:
        applied = read_applied(write.body)
        return manager.apply(
            write.before, applied, manager=write.manager, force=write.force, now=write.now
        )
    if write.method == "PATCH":
        new = apply_patch(write.kind, write.content_type, write.body, write.before)
        if isinstance(new, PatchError):
            return new
    else:
        new = json.loads(write.body)
    before = write.before if write.method != "POST" else None
    return manager.update(before, _defaulted(new, write), manager=write.manager, now=write.now)


def _defaulted(tree: Any, write: Write) -> Any:
    """Return an object as the codec writes it, with defaults."""
    value = decode_tree(tree, write.kind.struct).value
    hub = defaulted_hub(value, write.kind, Context(Gates.parse(), Timestamp.parse(write.now)))
    written = to_tree(from_hub(hub, write.kind.api_version))
    entries = (tree.get("metadata") or {}).get("managedFields")
    if entries is not None:
        written["metadata"]["managedFields"] = entries
    return written


def _stored(tree: Any, write: Write) -> Any:
    metadata = {**tree["metadata"]}
    for name in _STORED:
        metadata.pop(name, None)
        if name in write.answer["metadata"]:
            metadata[name] = write.answer["metadata"][name]
    return {**tree, "metadata": metadata}


def test_a_write_gives_the_object_that_the_server_answered(subtests: pytest.Subtests) -> None:
    compared = _compared()
    assert len(compared) >= 37
    for number, write in enumerate(compared):
        with subtests.test(f"{write.label}-{number}"):
            _assert_as_answered(_done(write), write)


def _assert_as_answered(result: Any, write: Write) -> None:
    if write.answer["kind"] != "Status":
        assert _stored(result, write) == write.answer
        return
    assert isinstance(result, PatchError)
    causes = [msgspec.to_builtins(cause) for cause in result.causes]
    assert write.answer == {
        "apiVersion": "v1",
        "kind": "Status",
        "metadata": {},
        "status": "Failure",
        "message": result.message,
        "reason": result.reason,
        "details": {"causes": causes} if causes else {},
        "code": result.status,
    }


def test_owners_are_listed_as_the_server_lists_them() -> None:
    for write in writes():
        entries = write.answer.get("metadata", {}).get("managedFields") or []
        for entry in entries:
            fields = entry["fieldsV1"]
            assert json.dumps(to_json(from_json(fields))) == json.dumps(fields)


def test_applying_the_same_again_leaves_times_alone() -> None:
    (write,) = (write for write in writes() if write.label == "21-apply-ssa-unchanged")
    result = _done(write)
    assert result["metadata"]["managedFields"] == write.before["metadata"]["managedFields"]
    assert with_times_kept(write.before, result) is write.before
