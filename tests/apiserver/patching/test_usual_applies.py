"""Usual applies give the objects and owners that the field manager gives the long way."""

from __future__ import annotations

from typing import Any

from hypothesis import event, given, settings
from hypothesis import strategies as st

from moorage.api.codec import decode_tree, to_tree
from moorage.api.timestamp import Timestamp
from moorage.apiserver.patching import PatchError
from moorage.apiserver.patching.usual_applies import UsualApplies
from moorage.apiserver.verbs.managed_fields import (
    all_entries,
    field_manager_of,
    owned_tree,
    read_entries,
    with_owners,
)
from tests.apiserver.patching.makers import CLAIM, NOW, POD, claim
from tests.apiserver.patching.test_laws import pods, subset, words
from tests.apiserver.patching.test_usual_writes import claims, statuses

LATER = "2026-10-02T12:00:00Z"

pod_statuses = subset(
    {
        "phase": st.sampled_from(["Running", "Failed"]),
        "resourceClaimStatuses": st.lists(
            st.builds(lambda n: {"name": n, "resourceClaimName": f"{n}-1"}, words),
            unique_by=lambda item: str(item["name"]),
        ),
        "podIPs": st.just([{"ip": "10.0.0.1"}]),
        "unknown": st.just({"a": None}),
    }
)
managers = st.sampled_from(["m", "n", "kubectl"])
parts = st.sampled_from(["", "status"])


def check_law(
    kind: Any, tree: Any, applied: Any, updates: list[tuple[str, Any]], where: tuple[str, str]
) -> bool:
    """Apply to an object that others wrote, both ways; return whether it was usual."""
    manager, subresource = where
    live = None
    for name, status in [("m", None), *updates]:
        new = decode_tree(tree if status is None else {**tree, "status": status}, kind.struct).value
        part = "" if live is None else "status"
        if live is not None:
            new = with_owners(new, live.metadata.managed_fields)
        live = with_owners(new, all_entries(live, new, kind, part, name, Timestamp.parse(NOW)))
    assert live is not None
    metadata = live.metadata
    whole = owned_tree(live, kind.api_version, ours=metadata.managed_fields)
    usual = UsualApplies(kind, subresource).applied(
        metadata.managed_fields,
        {"name": metadata.name, "namespace": metadata.namespace, "uid": metadata.uid},
        lambda name: to_tree(getattr(live, name)) if hasattr(live, name) else None,
        applied,
        manager,
        Timestamp.parse(LATER),
    )
    if usual is None:
        return False
    manager_of = field_manager_of(kind, subresource)
    long = manager_of.apply(whole, applied, manager=manager, force=False, now=LATER)
    assert not isinstance(long, PatchError), long
    assert read_entries(long["metadata"].pop("managedFields")) == usual.entries
    whole["metadata"].pop("managedFields")
    assert {**whole, **usual.members} == long
    return True


def head(kind: Any, metadata: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": kind.api_version, "kind": kind.name, "metadata": metadata}


law = settings(max_examples=200)
metadata = st.sampled_from([{}, {"name": "p"}, {"uid": "other"}, {"labels": {"a": "b"}}])


@law
@given(pods, st.lists(st.tuples(managers, pod_statuses), max_size=2), pod_statuses, metadata, parts)
def test_pods_are_the_same(
    tree: Any, updates: list[tuple[str, Any]], status: Any, named: Any, part: str
) -> None:
    tree = {**tree, "apiVersion": "v1", "kind": "Pod"}
    updates = [(name, {k: v for k, v in s.items() if k != "unknown"}) for name, s in updates]
    applied = {**head(POD, named), "status": status}
    event(f"usual: {check_law(POD, tree, applied, updates, ('c', part))}")


@law
@given(claims, st.lists(st.tuples(managers, statuses), max_size=2), statuses, managers, parts)
def test_claims_are_the_same(
    tree: Any, updates: list[tuple[str, Any]], status: Any, manager: str, part: str
) -> None:
    check_law(CLAIM, tree, {**head(CLAIM, {}), "status": status}, updates, (manager, part))


def test_the_name_of_a_claim_in_the_status_of_a_pod_is_usual() -> None:
    tree = {
        **head(POD, {"name": "p", "namespace": "default", "uid": "u"}),
        "spec": {"containers": [{"name": "c", "image": "i"}]},
        "status": {"phase": "Pending"},
    }
    names = [{"name": "r", "resourceClaimName": "p-r-1"}]
    applied = {**head(POD, {"uid": "u"}), "status": {"resourceClaimStatuses": names}}
    assert check_law(POD, tree, applied, [], ("ResourceClaimController", "status"))
    assert not check_law(POD, tree, applied, [("n", applied["status"])], ("n", "status"))
    assert not check_law(CLAIM, claim(), head(CLAIM, {}), [], ("n", "status"))
