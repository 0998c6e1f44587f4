"""MutatingAdmissionPolicy changes objects as Kubernetes documents it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from moorage.apiserver.runtime_config import read_runtime_config
from tests.apiserver.client import (
    APPLY_PATCH,
    CONFIG_MAPS,
    MERGE_PATCH,
    PODS,
    Client,
    config_map,
    pod,
)
from tests.apiserver.custom_resources.definitions import (
    GROUP,
    WIDGETS,
    define,
    definition,
    widget,
)
from tests.apiserver.policies import (
    applied,
    enforce,
    mutating_binding,
    mutating_policy,
    patched,
    rule,
)

LABEL = 'Object{metadata: Object.metadata{labels: {"team": "a"}}}'


def test_an_apply_configuration_is_merged(client: Client) -> None:
    enforce(client, mutating_policy(applied(LABEL)), mutating_binding())
    made = client.post(CONFIG_MAPS, config_map(labels={"app": "x"})).json
    assert made["metadata"]["labels"] == {"app": "x", "team": "a"}
    assert made["data"] == {"a": "b"}


def test_containers_are_merged_by_name(client: Client) -> None:
    expression = """Object{spec: Object.spec{containers: [
        Object.spec.containers{name: "side", image: "side:1"}] + object.spec.containers.map(c,
        Object.spec.containers{name: c.name, imagePullPolicy: "Always"})}}"""
    enforce(client, mutating_policy(applied(expression), rules=[rule("pods")]), mutating_binding())
    spec = client.post(PODS, pod()).json["spec"]
    by_name = {each["name"]: each for each in spec["containers"]}
    assert by_name["c"]["image"] == "i"
    assert by_name["c"]["imagePullPolicy"] == "Always"
    assert by_name["side"]["terminationMessagePath"] == "/dev/termination-log"  # a default


def test_a_json_patch_is_applied(client: Client) -> None:
    expression = """[
        JSONPatch{op: "test", path: "/data/a", value: "b"},
        JSONPatch{op: "add", path: "/metadata/annotations", value: {}},
        JSONPatch{op: "add", path: "/metadata/annotations/" + jsonpatch.escapeKey("a/b"),
                  value: request.userInfo.username}]"""
    enforce(client, mutating_policy(patched(expression)), mutating_binding())
    made = client.post(CONFIG_MAPS, config_map()).json
    assert made["metadata"]["annotations"] == {"a/b": "kubernetes-admin"}


def test_custom_objects_lose_what_a_patch_adds_and_nobody_knows(client: Client) -> None:
    define(client, definition())
    expression = """[JSONPatch{op: "add", path: "/spec/unknown", value: "x"},
        JSONPatch{op: "add", path: "/spec/size", value: 2}]"""
    rules = [rule("widgets", apiGroups=[GROUP])]
    enforce(client, mutating_policy(patched(expression), rules=rules), mutating_binding())
    made = client.post(WIDGETS, widget())
    assert (made.status, made.json["spec"]) == (201, {"size": 2, "color": "red"})


def test_a_failed_test_of_a_json_patch_changes_nothing(client: Client) -> None:
    expression = """[JSONPatch{op: "add", path: "/data/new", value: "1"},
        JSONPatch{op: "test", path: "/data/a", value: "c"}]"""
    enforce(client, mutating_policy(patched(expression)), mutating_binding())
    assert client.post(CONFIG_MAPS, config_map()).json["data"] == {"a": "b"}


def test_updates_patches_and_applies_are_changed_too(client: Client) -> None:
    client.post(CONFIG_MAPS, config_map())
    enforce(client, mutating_policy(applied(LABEL)), mutating_binding())
    url = f"{CONFIG_MAPS}/m"
    changed = client.patch(url, {"data": {"a": "c"}}, MERGE_PATCH).json
    assert changed["metadata"]["labels"] == {"team": "a"}
    client.patch(url, {"metadata": {"labels": None}}, MERGE_PATCH)
    assert client.get(url).json["metadata"]["labels"] == {"team": "a"}
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "n"}}
    answer = client.patch(f"{CONFIG_MAPS}/n?fieldManager=me", body, APPLY_PATCH)
    assert answer.json["metadata"]["labels"] == {"team": "a"}


def test_what_a_policy_sets_has_no_field_manager(client: Client) -> None:
    enforce(client, mutating_policy(applied(LABEL)), mutating_binding())
    (entry,) = client.post(CONFIG_MAPS, config_map()).json["metadata"]["managedFields"]
    assert entry["fieldsV1"] == {"f:data": {".": {}, "f:a": {}}}
    answer = client.patch(f"{CONFIG_MAPS}/m", {"data": {"a": "c"}}, MERGE_PATCH)
    assert all("f:metadata" not in e["fieldsV1"] for e in answer.json["metadata"]["managedFields"])


def test_a_policy_may_make_an_invalid_object_valid(client: Client) -> None:
    fix = 'Object{spec: Object.spec{restartPolicy: "Never"}}'
    enforce(client, mutating_policy(applied(fix), rules=[rule("pods")]), mutating_binding())
    body = pod()
    body["spec"]["restartPolicy"] = "Sometimes"
    assert client.post(PODS, body).json["spec"]["restartPolicy"] == "Never"


def test_what_a_policy_makes_is_validated(client: Client) -> None:
    wrong = 'Object{spec: Object.spec{restartPolicy: "Sometimes"}}'
    enforce(client, mutating_policy(applied(wrong), rules=[rule("pods")]), mutating_binding())
    answer = client.post(PODS, pod())
    assert answer.status == 422
    assert "spec.restartPolicy: Unsupported value" in answer.message


def test_mutations_see_those_before(client: Client) -> None:
    second = """Object{metadata: Object.metadata{annotations: {
        "seen": object.metadata.labels["team"]}}}"""
    enforce(client, mutating_policy(applied(LABEL), applied(second)), mutating_binding())
    made = client.post(CONFIG_MAPS, config_map()).json
    assert made["metadata"]["annotations"] == {"seen": "a"}


@pytest.mark.parametrize(("reinvocation", "count"), [("Never", "1"), ("IfNeeded", "2")])
def test_a_policy_runs_again_if_needed(client: Client, reinvocation: str, count: str) -> None:
    counting = """Object{data: {"count": string(has(object.data.count) ?
        int(object.data.count) + 1 : 1)}}"""
    counting = counting.replace("data: {", "data: Object.data{").replace('"count":', "count:")
    first = mutating_policy(applied(counting), name="a", reinvocationPolicy=reinvocation)
    last = mutating_policy(applied(LABEL), name="z")
    enforce(client, first, mutating_binding("a", of="a"), last, mutating_binding("z", of="z"))
    assert client.post(CONFIG_MAPS, config_map()).json["data"]["count"] == count


# --- what fails -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mutation", "message"),
    [
        (
            applied("Object{metadata: Object.metadata{labels: object.data.x}}"),
            (
                "expression 'Object{metadata: Object.metadata{labels: object.data.x}}' resulted in "
                "error: no such key: x"
            ),
        ),
        (
            applied("Object{metadata: Object.spec{}}"),
            (
                'type mismatch: unexpected type name "Object.spec", expected "Object.metadata", '
                "which matches field name path from root Object type"
            ),
        ),
        (
            applied("Object{nope: 1}"),
            (
                "error applying patch: failed to convert patch object to typed object: .nope: "
                "field not declared in schema"
            ),
        ),
        (
            applied('Object{metadata: Object.metadata{ownerReferences: [{"uid": "x"}]}}'),
            (
                "error applying patch: invalid ApplyConfiguration: may not mutate atomic arrays, "
                "maps or structs: .metadata.ownerReferences[0]"
            ),
        ),
        (
            patched('[JSONPatch{op: "remove", path: "/data/zz"}]'),
            (
                "JSON Patch: error in remove for path: '/data/zz': Unable to remove nonexistent "
                "key: zz: missing value"
            ),
        ),
    ],
)
def test_faults(client: Client, mutation: dict[str, Any], message: str) -> None:
    enforce(client, mutating_policy(mutation), mutating_binding())
    answer = client.post(CONFIG_MAPS, config_map())
    text = f"policy 'p' with binding 'b' denied request: {message}"
    assert (answer.status, answer.json["reason"]) == (403, "Invalid")
    assert answer.message == text
    assert answer.json["details"]["causes"] == [{"message": text}]


def test_atomic_lists_cannot_be_applied(client: Client) -> None:
    expression = """Object{spec: Object.spec{containers: [
        Object.spec.containers{name: "c", args: ["a"]}]}}"""
    policy = mutating_policy(applied(expression), rules=[rule("pods")])
    enforce(client, policy, mutating_binding())
    assert client.post(PODS, pod()).message.endswith(
        "error applying patch: invalid ApplyConfiguration: may not mutate atomic arrays, maps or "
        "structs: .spec.containers[0].args"
    )


def test_a_faulty_policy_may_be_ignored(client: Client) -> None:
    faulty = applied("Object{metadata: Object.metadata{labels: object.data.x}}")
    enforce(client, mutating_policy(faulty, failurePolicy="Ignore"), mutating_binding())
    assert client.post(CONFIG_MAPS, config_map()).status == 201


def test_older_versions_are_served_if_they_are_switched_on(tmp_path: Path) -> None:
    versions = (f"admissionregistration.k8s.io/{each}=true" for each in ("v1beta1", "v1alpha1"))
    client = Client(tmp_path / "store", runtime=read_runtime_config(",".join(versions)))
    url = "/apis/admissionregistration.k8s.io/v1alpha1/mutatingadmissionpolicybindings"
    body = mutating_binding(paramRef={"name": "x"})
    body["apiVersion"] = "admissionregistration.k8s.io/v1alpha1"
    assert client.post(url, body).json["spec"]["paramRef"]["parameterNotFoundAction"] == "Deny"
    beta = client.get(f"{url}/b".replace("v1alpha1", "v1beta1")).json
    assert beta["apiVersion"] == "admissionregistration.k8s.io/v1beta1"
    client.close()
