"""Field ownership, and its effect on server-side apply."""

from __future__ import annotations

import json

import pytest

from moorage.apiserver.patching import FieldManager, PatchError, manager_name
from moorage.apiserver.patching.json_values import Tree
from tests.apiserver.patching.makers import (
    CLAIM,
    LATER,
    NODE,
    NOW,
    OLD_CLAIM,
    POD,
    apply,
    claim,
    owners,
    pod,
    refused,
    update,
    written,
)

WEB = {"name": "web", "image": "nginx"}
UNTYPED = "failed to create typed patch object (/p; /v1, Kind=Pod)"
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def test_what_is_applied_is_owned() -> None:
    live = apply(None, pod(containers=[WEB]))
    assert owners(live) == {
        "a": {
            "f:spec": {"f:containers": {'k:{"name":"web"}': {".": {}, "f:image": {}, "f:name": {}}}}
        }
    }


def test_another_manager_that_changes_a_field_is_in_conflict() -> None:
    live = apply(None, pod(containers=[WEB]))
    error = refused(live, pod(containers=[{"name": "web", "image": "caddy"}]))
    assert (error.status, error.reason) == (409, "Conflict")
    place = '.spec.containers[name="web"].image'
    assert error.message == f'Apply failed with 1 conflict: conflict with "a": {place}'
    (cause,) = error.causes
    assert (cause.reason, cause.field) == ("FieldManagerConflict", place)


def test_several_conflicts_are_listed_by_manager() -> None:
    live = apply(None, pod({"labels": {"x": "1", "y": "1"}}))
    live = update(live, {**live, "metadata": {**live["metadata"], "labels": {"x": "1", "y": "2"}}})
    error = refused(live, pod({"labels": {"x": "3", "y": "3"}}))
    assert error.message == (
        'Apply failed with 2 conflicts: conflicts with "a":\n- .metadata.labels.x\n'
        'conflicts with "u" using v1:\n- .metadata.labels.y'
    )


def test_force_takes_the_field() -> None:
    live = apply(None, pod(containers=[WEB]))
    live = apply(live, pod(containers=[{"name": "web", "image": "caddy"}]), "b", force=True)
    assert live["spec"]["containers"][0]["image"] == "caddy"
    item = 'k:{"name":"web"}'
    assert owners(live)["a"]["f:spec"]["f:containers"][item] == {".": {}, "f:name": {}}


def test_the_same_value_is_owned_together_and_stays_until_both_let_go() -> None:
    live = apply(None, pod({"labels": {"x": "1"}}))
    live = apply(live, pod({"labels": {"x": "1"}}), "b")
    live = apply(live, pod(), "a")
    assert live["metadata"]["labels"] == {"x": "1"}
    live = apply(live, pod(), "b")
    assert "labels" not in live["metadata"]


def test_what_others_set_stays_when_a_manager_lets_go_of_its_item() -> None:
    live = apply(None, pod(containers=[WEB, {"name": "log", "image": "x"}]))
    live = apply(live, pod(containers=[{"name": "log", "tty": True}]), "b")
    live = apply(live, pod(containers=[WEB]), "a")
    kept = [c for c in live["spec"]["containers"] if c["name"] == "log"]
    assert kept == [{"name": "log", "tty": True, "resources": {}}]


def test_an_update_takes_what_it_changes() -> None:
    live = apply(None, pod({"labels": {"x": "1"}}))
    live = update(live, pod({"labels": {"x": "2"}, "uid": "1"}), now=LATER)
    assert owners(live) == {"u": {"f:metadata": {"f:labels": {"f:x": {}}}}}
    (entry,) = live["metadata"]["managedFields"]
    assert (entry["operation"], entry["time"]) == ("Update", LATER)


def test_an_update_that_changes_nothing_leaves_times_alone() -> None:
    live = update(None, pod({"labels": {"x": "1"}}))
    again = update(live, live, now=LATER)
    assert again["metadata"]["managedFields"] == live["metadata"]["managedFields"]


def test_applying_again_keeps_the_time_unless_something_changes() -> None:
    live = apply(None, pod({"labels": {"x": "1"}}))
    again = apply(live, pod({"labels": {"x": "1"}}), now=LATER)
    assert again["metadata"]["managedFields"][0]["time"] == NOW
    changed = apply(live, pod({"labels": {"x": "2"}}), now=LATER)
    assert changed["metadata"]["managedFields"][0]["time"] == LATER


def test_status_is_not_owned_by_who_writes_the_object() -> None:
    tree = {**pod({"labels": {"x": "1"}}), "status": {"phase": "Running"}}
    assert "f:status" not in owners(update(None, tree))["u"]


def test_an_entry_of_a_subresource_says_so_and_owns_status_only() -> None:
    live = update(None, pod(containers=[WEB]))
    new = {**live, "status": {"phase": "Running"}}
    live = update(live, new, "kubelet", subresource="status", now=LATER)
    entry = live["metadata"]["managedFields"][-1]
    expected: Tree = {"f:status": {"f:phase": {}}}
    assert (entry["subresource"], entry["fieldsV1"]) == ("status", expected)


def test_of_many_managers_that_update_the_oldest_become_one() -> None:
    live = update(None, pod({"labels": {"l0": "x"}}), "m00")
    for n in range(1, 12):
        labels = {**live["metadata"]["labels"], f"l{n}": "x"}
        new = {**live, "metadata": {**live["metadata"], "labels": labels}}
        live = update(live, new, f"m{n:02}", now=f"2026-01-01T00:00:{n:02}Z")
    names = list(owners(live))
    assert len(names) == 10
    assert names[0] == "ancient-changes"
    oldest: Tree = {".": {}, "f:l0": {}, "f:l1": {}, "f:l2": {}}
    assert owners(live)["ancient-changes"]["f:metadata"]["f:labels"] == oldest


@pytest.mark.parametrize("entries", [[], [{}]])
def test_owners_are_dropped_on_request_and_not_kept_until_an_apply(entries: list[object]) -> None:
    live = update(None, pod({"labels": {"x": "1"}}))
    live = update(live, {**live, "metadata": {**live["metadata"], "managedFields": entries}})
    assert "managedFields" not in live["metadata"]
    assert "managedFields" not in update(live, live)["metadata"]


def test_the_first_apply_gives_what_was_there_an_owner() -> None:
    live = written(pod({"labels": {"x": "1"}}))
    error = refused(live, pod({"labels": {"x": "2"}}))
    assert 'conflict with "before-first-apply" using v1: .metadata.labels.x' in error.message


def test_kubectl_takes_over_what_it_applied_on_the_client_side() -> None:
    last = json.dumps(pod({"labels": {"x": "1"}}))
    metadata = {"labels": {"x": "1"}, "annotations": {LAST_APPLIED: last}}
    live = update(None, pod(metadata), "kubectl-client-side-apply")
    live = apply(live, pod({"labels": {"x": "2"}}), "kubectl")
    assert live["metadata"]["labels"] == {"x": "2"}
    kept = json.loads(live["metadata"]["annotations"][LAST_APPLIED])
    assert kept["metadata"]["labels"] == {"x": "2"}


def test_kubectl_does_not_take_what_others_changed_since() -> None:
    last = json.dumps(pod({"labels": {"x": "1"}}))
    metadata = {"labels": {"x": "9"}, "annotations": {LAST_APPLIED: last}}
    live = update(None, pod(metadata), "kubectl-edit")
    assert refused(live, pod({"labels": {"x": "2"}}), "kubectl").status == 409


def test_owners_in_another_version_are_asked_there() -> None:
    request = {"name": "r", "exactly": {"deviceClassName": "gpu", "count": 1}}
    live = apply(None, claim(request), kind=CLAIM)
    older = {"name": "r", "deviceClassName": "tpu", "count": 1}
    wanted = claim(older, api_version="resource.k8s.io/v1beta1")
    error = refused(live, wanted, kind=OLD_CLAIM)
    assert error.message.endswith('conflict with "a": .spec.devices.requests')
    live = apply(live, wanted, "b", kind=OLD_CLAIM, force=True)
    assert live["apiVersion"] == "resource.k8s.io/v1beta1"
    assert list(owners(live)) == ["b"]


def test_a_list_has_the_order_of_who_applied_last_and_others_between() -> None:
    first = [{"name": n, "image": "x"} for n in "abc"]
    live = apply(None, pod(containers=first))
    live = apply(live, pod(containers=[{"name": n} for n in "cxa"]), "b")
    assert [c["name"] for c in live["spec"]["containers"]] == ["b", "c", "x", "a"]


def test_new_items_come_after_those_that_only_others_have() -> None:
    live = apply(None, pod(containers=[{"name": n, "image": "x"} for n in "abc"]))
    live = apply(live, pod(containers=[{"name": n} for n in "ax"]), "b")
    assert [c["name"] for c in live["spec"]["containers"]] == ["a", "b", "c", "x"]


def test_a_set_is_the_union() -> None:
    live = apply(None, pod({"finalizers": ["x/1", "x/2"]}))
    live = apply(live, pod({"finalizers": ["x/3"]}), "b")
    assert live["metadata"]["finalizers"] == ["x/1", "x/2", "x/3"]
    live = apply(live, pod({"finalizers": ["x/2"]}), "a")
    assert live["metadata"]["finalizers"] == ["x/2", "x/3"]


def test_a_list_that_is_one_value_has_one_owner() -> None:
    toleration = {"key": "k", "operator": "Exists"}
    live = apply(None, pod(tolerations=[toleration]))
    assert refused(live, pod(tolerations=[toleration, toleration])).causes[0].field == (
        ".spec.tolerations"
    )


@pytest.mark.parametrize(
    ("applied", "message"),
    [
        (
            pod(bogus=1),
            f"{UNTYPED}: .spec.bogus: field not declared in schema",
        ),
        (
            pod(containers=[WEB, WEB]),
            f'{UNTYPED}: .spec.containers: duplicate entries for key [name="web"]',
        ),
        (
            pod(hostNetwork="yes"),
            f"{UNTYPED}: .spec.hostNetwork: expected boolean, got &{{yes}}",
        ),
        (pod({"managedFields": []}), "metadata.managedFields must be nil"),
        ({"apiVersion": "v2", "kind": "Pod"}, "invalid object type: /v2, Kind=Pod"),
        ([], "error decoding patch: an object must be a map"),
    ],
)
def test_an_apply_that_makes_no_sense_is_a_bad_request(applied: object, message: str) -> None:
    error = refused(None, applied)
    assert (error.status, error.reason, error.message) == (400, "BadRequest", message)


@pytest.mark.parametrize(
    "entry",
    [
        {"manager": "x", "operation": "Look", "apiVersion": "v1", "fieldsType": "FieldsV1"},
        {"manager": "x", "operation": "Update", "fieldsType": "FieldsV1"},
        {"manager": "x", "operation": "Update", "apiVersion": "v1"},
        {
            "manager": "x",
            "operation": "Update",
            "apiVersion": "v1",
            "fieldsType": "FieldsV1",
            "fieldsV1": {"k:nonsense": {}},
        },
    ],
)
def test_owners_that_cannot_be_read_are_those_of_the_live_object(entry: object) -> None:
    live = update(None, pod({"labels": {"x": "1"}}))
    new = written(live)
    new["metadata"]["managedFields"] = [entry]
    result = FieldManager(POD).update(live, new, manager="u", now=LATER)
    assert result["metadata"]["managedFields"] == live["metadata"]["managedFields"]


def test_an_object_that_cannot_be_compared_keeps_its_owners() -> None:
    live = update(None, pod({"labels": {"x": "1"}}))
    new = written(live)
    new["spec"]["containers"] = [3]
    result = FieldManager(POD).update(live, new, manager="u", now=LATER)
    assert result["metadata"]["managedFields"] == live["metadata"]["managedFields"]


def test_deep_nesting_is_refused() -> None:
    deep: object = 1
    for _ in range(3000):
        deep = {"a": deep}
    applied = claim(metadata={})
    applied["spec"]["devices"]["config"] = [{"opaque": {"driver": "d", "parameters": deep}}]
    result = FieldManager(CLAIM).apply(None, applied, manager="m", force=False, now=NOW)
    assert isinstance(result, PatchError)
    assert result.status == 400


def test_true_is_not_one() -> None:
    def configured(value: object) -> object:
        tree = claim({"name": "r", "exactly": {"deviceClassName": "gpu"}})
        config = [{"opaque": {"driver": "d", "parameters": {"a": value}}}]
        tree["spec"]["devices"]["config"] = config
        return tree

    live = apply(None, configured(True), kind=CLAIM)
    assert refused(live, configured(1), kind=CLAIM).status == 409


def test_keys_that_are_left_out_have_their_defaults() -> None:
    web = {"name": "web", "ports": [{"containerPort": 80}]}
    live = apply(None, pod(containers=[web]))
    same_port = {"name": "web", "ports": [{"containerPort": 80, "protocol": "TCP", "name": "http"}]}
    live = apply(live, pod(containers=[same_port]), "b")
    assert len(live["spec"]["containers"][0]["ports"]) == 1


def test_conditions_are_told_apart_by_type() -> None:
    def node(kind: str) -> object:
        condition = {"type": kind, "status": "True"}
        tree = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}
        return {**tree, "status": {"conditions": [condition]}}

    live = apply(None, node("Ready"), kind=NODE, subresource="status")
    live = apply(live, node("Hot"), "b", kind=NODE, subresource="status")
    assert [c["type"] for c in live["status"]["conditions"]] == ["Ready", "Hot"]


@pytest.mark.parametrize(
    ("field_manager", "user_agent", "name"),
    [
        ("me", "kubectl/v1", "me"),
        ("", "kubectl/v1.37.0 (linux/amd64)", "kubectl"),
        ("", "a\tb\x00c/1", "abc"),
        ("", "é" * 100, "é" * 64),
        ("", "", ""),
    ],
)
def test_a_manager_is_named_by_the_request_or_its_user_agent(
    field_manager: str, user_agent: str, name: str
) -> None:
    assert manager_name(field_manager, user_agent) == name


def test_who_has_no_name_is_unknown() -> None:
    assert list(owners(update(None, pod({"labels": {"x": "1"}}), ""))) == ["unknown"]
