"""Usual writes have the owners that the field manager finds the long way."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moorage.api.catalogue import CATALOGUE
from moorage.api.codec import decode_tree
from moorage.api.timestamp import Timestamp
from moorage.apiserver.patching import usual_writes
from moorage.apiserver.verbs.managed_fields import all_entries, usual_entries, with_owners
from tests.apiserver.patching.makers import CLAIM, NOW, POD, claim
from tests.apiserver.patching.test_laws import labels, pods, subset, words

NOW_ = Timestamp.parse(NOW)
START = NOW_.instant
requests = st.lists(
    st.builds(lambda n, c: {"name": n, "exactly": {"deviceClassName": c}}, words, words), max_size=2
)
statuses = subset(
    {
        "reservedFor": st.lists(
            st.builds(lambda u: {"resource": "pods", "name": "p", "uid": u}, words),
            unique_by=lambda item: str(item["uid"]),
        ),
        "conditions": st.lists(
            st.builds(lambda t: {"type": t, "status": "True"}, words),
            unique_by=lambda item: str(item["type"]),
        ),
    }
)
owned = subset(
    {
        "labels": labels,
        "annotations": labels,
        "finalizers": st.lists(words, unique=True),
        "ownerReferences": st.builds(
            lambda u: [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": u}], words
        ),
    }
)
claims = st.builds(
    lambda m, r, s: {**claim(*r, metadata=m), "status": s}, owned, requests, statuses
)
steps = st.lists(
    st.tuples(st.sampled_from(["m", "n", "kubectl", ""]), st.sampled_from(["", "status"]))
)


def check_law(trees: list[Any], steps: list[tuple[str, str]], kind: Any) -> int:
    """Write versions of an object one after another, both ways; return how many were usual."""
    old, usual_count = None, 0
    for number, (tree, (manager, subresource)) in enumerate(zip(trees, steps, strict=False)):
        new = decode_tree(tree, kind.struct).value
        now = Timestamp(START + timedelta(seconds=number // 2))
        if old is None:
            subresource = ""
        else:
            new = with_owners(new, old.metadata.managed_fields)
        where = (old, new, kind, subresource, manager, now)
        usual, whole = usual_entries(*where), all_entries(*where)
        if usual is not None:
            assert usual == whole
            assert [bytes(e.fields_v1) for e in usual] == [bytes(e.fields_v1) for e in whole]
            usual_count += 1
        old = with_owners(new, whole)
    return usual_count


law = settings(max_examples=150)


@law
@given(st.lists(claims, max_size=6), steps)
def test_claims_have_the_same_owners(trees: list[Any], steps: list[tuple[str, str]]) -> None:
    check_law(trees, steps, CLAIM)


@law
@given(st.lists(pods, max_size=6), steps)
def test_pods_have_the_same_owners(trees: list[Any], steps: list[tuple[str, str]]) -> None:
    check_law(trees, steps, POD)


def test_more_managers_than_the_bound_go_the_long_way() -> None:
    trees = [claim(metadata={"labels": {f"l{n}": "x" for n in range(k)}}) for k in range(14)]
    steps = [(f"manager-{number}", "") for number in range(14)]
    assert check_law(trees, steps, CLAIM) < len(steps)


def test_a_claim_that_is_made_and_allocated_is_usual() -> None:
    made = claim({"name": "r", "exactly": {"deviceClassName": "k"}}, metadata={"uid": "1"})
    held = {**made, "metadata": {**made["metadata"], "finalizers": ["f"]}}
    given_ = {**held, "status": {"reservedFor": [{"resource": "pods", "name": "p", "uid": "u"}]}}
    steps = [("manager", ""), ("scheduler", ""), ("scheduler", "status")]
    assert check_law([made, held, given_], steps, CLAIM) == len(steps)


def test_owners_of_other_fields_are_neither_parsed_nor_made_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = claim({"name": "r", "exactly": {"deviceClassName": "k"}}, metadata={"uid": "1"})
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}
    made["metadata"]["ownerReferences"] = [owner]
    held = {**made, "metadata": {**made["metadata"], "finalizers": ["f"]}}
    given_ = {**held, "status": {"reservedFor": [{"resource": "pods", "name": "p", "uid": "u"}]}}
    first, *others = [decode_tree(tree, CLAIM.struct).value for tree in (made, held, given_)]
    entries = usual_entries(None, first, CLAIM, "", "controllers", NOW_)
    assert entries is not None
    old, parsed = with_owners(first, entries), list[bytes]()
    monkeypatch.setattr(usual_writes, "fields_of_text", parsed.append)
    for value, part in zip(others, ("", "status"), strict=True):
        found = usual_entries(old, with_owners(value, entries), CLAIM, part, "scheduler", NOW_)
        assert found is not None
        assert len(found) == len(entries) + 1
        assert {id(entry) for entry in entries} <= {id(entry) for entry in found}
        old, entries = with_owners(value, found), found
    assert not parsed


def test_managers_in_another_version_go_the_long_way() -> None:
    old_version = CATALOGUE.find("resource.k8s.io/v1beta2", "ResourceClaim")
    old = decode_tree(claim(metadata={"labels": {"a": "b"}}), CLAIM.struct).value
    now = Timestamp.parse(NOW)
    old = with_owners(old, all_entries(None, old, CLAIM, "", "m", now))
    new = decode_tree(claim(metadata={"labels": {"a": "c"}}), CLAIM.struct).value
    new = with_owners(new, old.metadata.managed_fields)
    assert usual_entries(old, new, old_version, "", "m", now) is None
