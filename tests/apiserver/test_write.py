"""Create, update, patch and apply."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from moorage.api import protobuf
from moorage.api.gates import Gates
from moorage.store.keys import VALUE_BYTES_MAX
from moorage.validation.registry import STRATEGIES
from tests.apiserver.client import (
    APPLY_PATCH,
    CLAIMS,
    CLASSES,
    CONFIG_MAPS,
    JSON_PATCH,
    MERGE_PATCH,
    NAMESPACES,
    PODS,
    SLICES,
    STRATEGIC_PATCH,
    Client,
    claim,
    config_map,
    device_class,
    pod,
    resource_slice,
)


def managers(tree: Any) -> list[tuple[str, str]]:
    entries = tree["metadata"]["managedFields"]
    return [(entry["manager"], entry["operation"]) for entry in entries]


def large(size: int) -> list[dict[str, str]]:
    """Return environment variables that take so many bytes."""
    return [{"name": f"V{number}", "value": "x" * 1000} for number in range(size // 1000)]


def test_what_the_store_does_not_take_is_refused_before_it_is_validated(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    validated: list[str] = []
    strategy = STRATEGIES["Pod"]
    for step in ("validate", "validate_update"):
        method = getattr(strategy, step)

        def count(*args: Any, step: str = step, method: Any = method) -> Any:
            validated.append(step)
            return method(*args)

        monkeypatch.setattr(strategy, step, count)
    too_large = pod()
    too_large["spec"]["containers"][0]["env"] = large(VALUE_BYTES_MAX)
    refused = client.post(PODS, too_large)
    assert (refused.status, refused.reason) == (400, "BadRequest")
    assert re.fullmatch(r"\S+/pods/default/p: \d+ bytes are more than 1500000", refused.message)
    assert validated == []
    # A status is not stored with a new object.
    told = {**pod(), "status": {"message": "x" * VALUE_BYTES_MAX}}
    assert (client.post(PODS, told).status, validated) == (201, ["validate"])
    env = {"spec": {"containers": [{"name": "c", "env": large(VALUE_BYTES_MAX)}]}}
    again = client.patch(f"{PODS}/p", env, STRATEGIC_PATCH)
    assert (again.status, validated) == (400, ["validate"])
    assert "bytes are more than 1500000" in again.message


# --- create ---------------------------------------------------------------------------------------


def test_create_answers_with_the_object(client: Client) -> None:
    reply = client.post(f"{CLASSES}?fieldManager=me", device_class())
    assert reply.status == 201
    assert managers(reply.json) == [("me", "Update")]
    assert client.get(f"{CLASSES}/gpu").json == reply.json


def test_create_from_yaml_and_protobuf(client: Client) -> None:
    text = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: y}\ndata: {a: b}\n"
    assert client.post(CONFIG_MAPS, text, content_type="application/yaml").status == 201
    body = protobuf.encode(config_map("p"))
    made = client.post(CONFIG_MAPS, body, content_type=protobuf.CONTENT_TYPE)
    assert made.json["data"] == {"a": "b"}


def test_what_the_server_sets_is_not_taken_from_clients(client: Client) -> None:
    lies = {"uid": "x", "resourceVersion": "", "creationTimestamp": "2000-01-01T00:00:00Z"}
    made = client.post(CLASSES, device_class("gpu", **lies)).json
    assert made["metadata"]["uid"] != "x"
    assert made["metadata"]["creationTimestamp"] == "2026-11-15T12:00:00Z"


def test_names_are_made_up(client: Client) -> None:
    body = claim("x")
    body["metadata"] = {"generateName": "job-"}
    first, second = client.post(CLAIMS, body).json, client.post(CLAIMS, body).json
    names = {first["metadata"]["name"], second["metadata"]["name"]}
    assert len(names) == 2
    assert all(name.startswith("job-") and len(name) == 9 for name in names)


def test_a_refusal_has_the_name_that_was_made_up(client: Client) -> None:
    body = claim("x")
    body["metadata"] = {"generateName": "job-"}
    body["spec"]["devices"]["requests"][0]["name"] = "-"
    reply = client.post(CLAIMS, body)
    assert (reply.status, reply.reason) == (422, "Invalid")
    assert re.match(r'ResourceClaim.resource.k8s.io "job-[a-z0-9]{5}" is invalid', reply.message)


def test_a_patch_of_the_node_of_a_slice_makes_no_pool(client: Client) -> None:
    client.post(SLICES, resource_slice("s"))
    reply = client.patch(f"{SLICES}/s", {"spec": {"nodeName": "other"}}, MERGE_PATCH)
    assert [each["field"] for each in reply.json["details"]["causes"]] == ["spec.nodeName"]


def test_create_twice(client: Client) -> None:
    client.post(CLASSES, device_class())
    reply = client.post(CLASSES, device_class())
    assert (reply.status, reply.reason) == (409, "AlreadyExists")


@pytest.mark.parametrize("query", ["", "?dryRun=All"])
def test_create_what_is_being_deleted(client: Client, query: str) -> None:
    body = claim("c")
    body["metadata"]["finalizers"] = ["example.com/slow"]
    client.post(CLAIMS, body)
    client.delete(f"{CLAIMS}/c")
    reply = client.post(f"{CLAIMS}{query}", claim("c"))
    assert (reply.status, reply.reason) == (409, "AlreadyExists")
    known = 'resourceclaims.resource.k8s.io "c" already exists'
    assert reply.message == f"object is being deleted: {known}"


def test_dry_run_stores_nothing(client: Client) -> None:
    reply = client.post(f"{CLASSES}?dryRun=All", device_class())
    assert reply.status == 201
    assert client.get(f"{CLASSES}/gpu").status == 404
    assert client.post(f"{CLASSES}?dryRun=Some", device_class()).status == 422


def test_rules_are_told_with_their_places(client: Client) -> None:
    body = device_class()
    body["spec"]["selectors"] = [{"cel": {"expression": "not cel at all"}}]
    reply = client.post(CLASSES, body)
    assert (reply.status, reply.reason) == (422, "Invalid")
    causes = reply.json["details"]["causes"]
    assert causes[0]["field"] == "spec.selectors[0].cel.expression"
    assert causes[0]["reason"] == "FieldValueInvalid"


def test_a_hyphen_in_an_expression_is_explained(client: Client) -> None:
    body = device_class()
    expression = 'device.attributes["a.example.com"].supported-models == "a"'
    body["spec"]["selectors"] = [{"cel": {"expression": expression}}]
    reply = client.post(CLASSES, body)
    assert reply.status == 422
    assert 'write ["supported-models"]' in reply.message


def test_unknown_fields(client: Client) -> None:
    body = device_class()
    body["spec"]["colour"] = "blue"
    strict = client.post(f"{CLASSES}?fieldValidation=Strict", body)
    assert strict.status == 400
    assert 'unknown field "spec.colour"' in strict.message
    warned = client.post(f"{CLASSES}?fieldValidation=Warn&dryRun=All", body)
    assert warned.warnings == ['299 - "unknown field \\"spec.colour\\""']
    ignored = client.post(f"{CLASSES}?fieldValidation=Ignore&dryRun=All", body)
    assert (ignored.status, ignored.warnings) == (201, [])
    assert client.post(f"{CLASSES}?fieldValidation=Never", body).status == 422


UNKNOWN = '299 - "unknown field \\"spec.colour\\""'


def test_who_is_refused_is_warned_all_the_same(client: Client) -> None:
    coloured = device_class()
    coloured["spec"]["colour"] = "blue"
    wrong = {**coloured, "spec": {**coloured["spec"], "selectors": [{}]}}
    assert client.post(CLASSES, coloured).status == 201
    for reply, status in (
        (client.post(CLASSES, coloured), 409),
        (client.post(CLASSES, wrong), 422),
        (client.put(f"{CLASSES}/gpu", wrong), 422),
        (client.put(f"{CLASSES}/other", coloured), 400),
        (client.put(f"{CLASSES}/gpu?dryRun=All", wrong), 422),
        (client.patch(f"{CLASSES}/gpu", {"spec": wrong["spec"]}, MERGE_PATCH), 422),
    ):
        assert (reply.status, reply.warnings) == (status, [UNKNOWN])
    ignored = client.post(f"{CLASSES}?fieldValidation=Ignore", wrong)
    assert (ignored.status, ignored.warnings) == (422, [])
    newer = {**coloured, "metadata": {**coloured["metadata"], "resourceVersion": "1"}}
    conflict = client.put(f"{CLASSES}/gpu", newer)
    assert (conflict.status, conflict.warnings) == (409, [UNKNOWN])


def test_the_form_of_a_seed_is_told_of_in_a_refusal_too(client: Client) -> None:
    seed = claim()
    seed["spec"] = {"requests": [{**seed["spec"]["devices"]["requests"][0], "name": "NO"}]}
    made = client.post(CLAIMS, seed)
    assert (made.status, len(made.warnings)) == (422, 1)
    assert "moved under devices" in made.warnings[0]
    applied = client.patch(f"{CLAIMS}/one?fieldManager=me", seed, APPLY_PATCH)
    assert (applied.status, applied.warnings) == (422, made.warnings)
    strict = client.post(f"{CLAIMS}?fieldValidation=Strict", {**seed, "colour": "blue"})
    assert (strict.status, strict.warnings) == (400, made.warnings)


def test_dropped_fields_are_told_of_in_answers_and_refusals(tmp_path: Path) -> None:
    off = Gates.parse("DRAExtendedResource=false", emulated_version="1.36")
    client = Client(tmp_path, gates=off)
    body = device_class()
    body["spec"]["extendedResourceName"] = "example.com/gpu"
    text = '299 - "fields of DRAExtendedResource are dropped, because its feature gate is off"'
    made = client.post(CLASSES, body)
    assert (made.status, made.warnings) == (201, [text])
    assert "extendedResourceName" not in made.json["spec"]
    again = client.post(CLASSES, body)
    assert (again.status, again.warnings) == (409, [text])
    client.close()


@pytest.mark.parametrize(
    ("body", "content_type", "status", "word"),
    [
        (b"{", "application/json", 400, "unexpected end of JSON input"),
        (b"[]", "application/json", 400, "unrecognized"),
        (b"\xff\xfe", "application/json", 400, "unrecognized"),
        (b"a=b", "application/x-www-form-urlencoded", 415, "unknown format"),
        (b"k8s\x00\xff\xff", protobuf.CONTENT_TYPE, 400, ""),
        (b"nope", protobuf.CONTENT_TYPE, 400, ""),
        (b'{"apiVersion":"v1","kind":"Pod"}', "application/json", 400, "unknown conversion"),
        (b'{"apiVersion":"resource.k8s.io/v1beta1","kind":"DeviceClass"}', "", 400, "API version"),
        (b'{"apiVersion":"resource.k8s.io/v1","kind":"DeviceClass"}', "", 422, "name"),
        (b"{" * 5000, "application/json", 400, ""),
    ],
)
def test_bodies_that_are_refused(
    client: Client, body: bytes, content_type: str, status: int, word: str
) -> None:
    reply = client.post(CLASSES, body, content_type=content_type)
    assert reply.status == status
    assert word in reply.message


def test_namespaces_must_be_there(client: Client) -> None:
    reply = client.post(CLAIMS.replace("default", "nope"), claim())
    assert (reply.status, reply.message) == (404, 'namespaces "nope" not found')
    other = client.post(CLAIMS, claim(namespace="kube-system"))
    assert other.status == 400


def test_a_new_namespace(client: Client) -> None:
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}}
    made = client.post(NAMESPACES, body).json
    assert made["status"] == {"phase": "Active"}
    assert made["spec"] == {"finalizers": ["kubernetes"]}
    assert made["metadata"]["labels"] == {"kubernetes.io/metadata.name": "team"}


def test_a_new_pod(client: Client) -> None:
    spec = client.post(PODS, pod()).json["spec"]
    assert spec["serviceAccountName"] == "default"
    assert spec["priority"] == 0
    assert [toleration["tolerationSeconds"] for toleration in spec["tolerations"]] == [300, 300]


def test_a_secret_keeps_texts_as_bytes(client: Client) -> None:
    body = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "s"},
        "stringData": {"a": "b"},
    }
    made = client.post("/api/v1/namespaces/default/secrets", body).json
    assert (made["data"], made["type"]) == ({"a": "Yg=="}, "Opaque")
    assert "stringData" not in made


# --- update ---------------------------------------------------------------------------------------


def test_update_counts_generations(client: Client) -> None:
    made = client.post(CLASSES, device_class()).json
    made["spec"]["selectors"] = []
    changed = client.put(f"{CLASSES}/gpu", made).json
    assert changed["metadata"]["generation"] == 2
    assert int(changed["metadata"]["resourceVersion"]) > int(made["metadata"]["resourceVersion"])


def test_update_of_what_was_changed_meanwhile(client: Client) -> None:
    made = client.post(CLASSES, device_class()).json
    made["metadata"]["labels"] = {"a": "b"}
    client.put(f"{CLASSES}/gpu", made)
    reply = client.put(f"{CLASSES}/gpu", made)
    assert (reply.status, reply.reason) == (409, "Conflict")
    assert "the object has been modified" in reply.message


def test_update_that_changes_nothing_writes_nothing(client: Client) -> None:
    made = client.post(f"{CLASSES}?fieldManager=me", device_class()).json
    client.later(60)
    again = client.put(f"{CLASSES}/gpu?fieldManager=me", made).json
    assert again == made


def test_update_that_changes_the_order_of_keys_writes_nothing(client: Client) -> None:
    url = "/api/v1/namespaces/default/pods"
    volume = {"name": "v", "configMap": {"name": "m", "optional": True}}
    spec = {"containers": [{"name": "c", "image": "i"}], "volumes": [volume]}
    made = client.post(url, {"kind": "Pod", "metadata": {"name": "p"}, "spec": spec}).json
    turned = {
        **made,
        "spec": {**made["spec"], "volumes": list(map(_turned, made["spec"]["volumes"]))},
    }
    assert client.put(f"{url}/p", turned).json["metadata"] == made["metadata"]


def _turned(tree: Any) -> Any:
    if isinstance(tree, dict):
        return {key: _turned(tree[key]) for key in reversed(tree)}
    return [_turned(each) for each in tree] if isinstance(tree, list) else tree


def test_update_under_another_name(client: Client) -> None:
    client.post(CLASSES, device_class())
    assert client.put(f"{CLASSES}/gpu", device_class("other")).status == 400
    assert client.put(f"{CLASSES}/nope", device_class("nope")).status == 404
    assert client.put(CLASSES, device_class()).status == 405


def test_a_lease_is_made_by_an_update(client: Client) -> None:
    url = "/apis/coordination.k8s.io/v1/namespaces/default/leases/l"
    body = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "l"}}
    made = client.put(url, body)
    assert made.status == 201
    assert client.put(url, made.json).status == 200
    again = client.put(url, body)
    assert (again.status, again.json["details"]["causes"][0]["field"]) == (
        422,
        "metadata.resourceVersion",
    )


def test_a_spec_and_its_status_are_written_apart(client: Client) -> None:
    url = "/apis/apps/v1/namespaces/default/deployments"
    selector = {"matchLabels": {"a": "b"}}
    template = {
        "metadata": {"labels": {"a": "b"}},
        "spec": {"containers": [{"name": "c", "image": "i:1"}]},
    }
    body: dict[str, Any] = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "d"},
        "spec": {"selector": selector, "template": template},
        "status": {"replicas": 9},
    }
    made = client.post(url, body).json
    assert "replicas" not in made["status"]
    made["status"] = {"replicas": 3}
    made["spec"]["replicas"] = 7
    reported = client.put(f"{url}/d/status", made).json
    assert reported["status"]["replicas"] == 3
    assert reported["spec"]["replicas"] == 1
    reported["status"], reported["spec"]["replicas"] = {}, 7
    changed = client.put(f"{url}/d", reported).json
    assert changed["status"]["replicas"] == 3
    assert (changed["spec"]["replicas"], changed["metadata"]["generation"]) == (7, 2)


def test_the_status_of_a_claim(client: Client) -> None:
    made = client.post(CLAIMS, claim()).json
    made["spec"]["devices"] = {}
    made["status"] = {"allocation": {}}
    reported = client.put(f"{CLAIMS}/one/status", made)
    assert reported.status == 200
    assert reported.json["status"] == {"allocation": {"devices": {}}}
    assert reported.json["spec"]["devices"]["requests"]


# --- patch ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content_type", "patch"),
    [
        (JSON_PATCH, [{"op": "add", "path": "/metadata/labels", "value": {"a": "b"}}]),
        (MERGE_PATCH, {"metadata": {"labels": {"a": "b"}}}),
        (STRATEGIC_PATCH, {"metadata": {"labels": {"a": "b"}}}),
    ],
)
def test_patches(client: Client, content_type: str, patch: Any) -> None:
    client.post(f"{CLASSES}?fieldManager=me", device_class())
    reply = client.patch(f"{CLASSES}/gpu?fieldManager=you", patch, content_type)
    assert reply.status == 200
    assert reply.json["metadata"]["labels"] == {"a": "b"}
    assert managers(reply.json) == [("me", "Update"), ("you", "Update")]


def test_patches_that_are_refused(client: Client) -> None:
    client.post(CLASSES, device_class())
    url = f"{CLASSES}/gpu"
    assert client.patch(url, {}, "application/json").status == 415
    assert client.patch(url, b"{", MERGE_PATCH).status == 400
    missing = [{"op": "remove", "path": "/metadata/nope"}]
    assert client.patch(url, missing, JSON_PATCH).status == 422
    assert client.patch(f"{CLASSES}/nope", {}, MERGE_PATCH).status == 404
    stale = {"metadata": {"resourceVersion": "1"}}
    assert client.patch(url, stale, MERGE_PATCH).status == 409
    bad = {"spec": {"selectors": [{"cel": {"expression": "1 +"}}]}}
    assert client.patch(url, bad, MERGE_PATCH).status == 422


def test_apply_creates_and_changes(client: Client) -> None:
    url = f"{CLASSES}/gpu?fieldManager=me"
    made = client.patch(url, device_class(), APPLY_PATCH)
    assert made.status == 201
    assert managers(made.json) == [("me", "Apply")]
    again = client.patch(url, device_class(), APPLY_PATCH)
    assert (again.status, again.json) == (200, made.json)


def test_the_form_of_a_seed_is_stored_as_shipped_and_applied_again_changes_nothing(
    client: Client,
) -> None:
    seed = claim()
    seed["spec"] = {"requests": seed["spec"]["devices"]["requests"]}
    made = client.post(CLAIMS, seed)
    assert made.json["spec"]["devices"]["requests"]
    assert "moved under devices" in made.warnings[0]
    again = client.patch(f"{CLAIMS}/one", {"spec": seed["spec"]}, STRATEGIC_PATCH)
    assert (again.status, again.json) == (200, made.json)
    assert "moved under devices" in again.warnings[0]
    url = f"{CLAIMS}/two?fieldManager=me"
    seed["metadata"]["name"] = "two"
    applied = client.patch(url, seed, APPLY_PATCH)
    assert (applied.status, len(applied.warnings)) == (201, 1)
    assert client.patch(url, seed, APPLY_PATCH).json == applied.json


def test_apply_under_another_name(client: Client) -> None:
    url = f"{CLASSES}/other?fieldManager=me"
    assert client.patch(url, device_class(), APPLY_PATCH).status == 400


def test_apply_conflicts_with_other_owners(client: Client) -> None:
    client.patch(f"{CLASSES}/gpu?fieldManager=me", device_class(), APPLY_PATCH)
    other = device_class()
    other["spec"]["selectors"] = [{"cel": {"expression": "true"}}]
    reply = client.patch(f"{CLASSES}/gpu?fieldManager=you", other, APPLY_PATCH)
    assert (reply.status, reply.reason) == (409, "Conflict")
    assert reply.json["details"]["causes"][0]["reason"] == "FieldManagerConflict"
    forced = client.patch(f"{CLASSES}/gpu?fieldManager=you&force=true", other, APPLY_PATCH)
    assert managers(forced.json) == [("you", "Apply")]
    assert client.patch(f"{CLASSES}/gpu", other, APPLY_PATCH).status == 422


# --- fields that there are not ------------------------------------------------------------------


def test_fields_that_a_foreign_kind_does_not_have(client: Client) -> None:
    body = pod("p")
    body["spec"]["containers"][0]["imge"] = "x"
    body["spec"]["nodeSelector"] = {"any": "name"}
    body["spec"]["dnsConfig"] = {"searches": ["a"], "serches": ["b"]}
    strict = client.post(f"{PODS}?fieldValidation=Strict", body)
    assert (strict.status, strict.reason) == (400, "BadRequest")
    assert strict.message.endswith(
        'strict decoding error: unknown field "spec.containers[0].imge", unknown field '
        '"spec.dnsConfig.serches"'
    )
    made = client.post(PODS, body)
    assert [text for text in made.warnings if "unknown field" in text] == [
        '299 - "unknown field \\"spec.containers[0].imge\\""',
        '299 - "unknown field \\"spec.dnsConfig.serches\\""',
    ]
    spec = client.get(f"{PODS}/p").json["spec"]
    assert spec["dnsConfig"] == {"searches": ["a"]}
    assert "imge" not in spec["containers"][0]


def test_a_dry_run_does_not_create_what_is_there(client: Client) -> None:
    client.post(PODS, pod("p"))
    again = client.post(f"{PODS}?dryRun=All", pod("p"))
    assert (again.status, again.reason) == (409, "AlreadyExists")


@pytest.mark.parametrize("media", [JSON_PATCH, MERGE_PATCH])
def test_a_patch_cannot_make_another_kind(client: Client, media: str) -> None:
    client.post(SLICES, resource_slice("a"))
    other = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview"}
    body: Any = other
    if media == JSON_PATCH:
        body = [
            {"op": "replace", "path": f"/{key}", "value": value} for key, value in other.items()
        ]
    reply = client.patch(f"{SLICES}/a", body, media)
    assert (reply.status, reply.json["details"]["causes"][0]["field"]) == (422, "patch")
    assert "cannot be handled as a ResourceSlice" in reply.message


def test_a_strategic_merge_patch_leaves_the_kind_alone(client: Client) -> None:
    client.post(SLICES, resource_slice("a"))
    other = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview"}
    reply = client.patch(f"{SLICES}/a", other, STRATEGIC_PATCH)
    assert (reply.status, reply.json["kind"]) == (200, "ResourceSlice")


@pytest.mark.parametrize("method", ["POST", "DELETE"])
def test_what_cannot_be_answered_is_not_done(client: Client, method: str) -> None:
    client.post(CLASSES, device_class("a"))
    before = client.get(CLASSES).json
    body = device_class("b") if method == "POST" else None
    assert client.ask(method, f"{CLASSES}?includeObject=x", body).status == 400
    assert client.get(CLASSES).json == before


def test_a_patch_in_the_form_of_a_seed_may_hold_any_number(client: Client) -> None:
    client.post(CLAIMS, claim())
    requests = [{"name": "gpu", "exactly": {"deviceClassName": "gpu", "count": 1.5}}]
    reply = client.patch(f"{CLAIMS}/one", {"spec": {"requests": requests}}, MERGE_PATCH)
    assert (reply.status, reply.json["details"]["causes"][0]["field"]) == (422, "patch")
    assert reply.message.endswith("exactly.count of type int64")


@pytest.mark.parametrize("media", [MERGE_PATCH, STRATEGIC_PATCH])
def test_a_patch_is_utf_8(client: Client, media: str) -> None:
    client.post(CLAIMS, claim("one"))
    body = '{"\\ud800": {"name": "x"}}'.encode("utf-16")
    refused = client.patch(f"{CLAIMS}/one", body, media)
    assert (refused.status, refused.reason) == (400, "BadRequest")


@pytest.mark.parametrize("metadata", [{}, {"metadata": None}, {"metadata": {"finalizers": []}}])
def test_applied_metadata_may_be_empty(client: Client, metadata: dict[str, Any]) -> None:
    tree = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", **metadata}
    url = f"{CLASSES}/c?fieldManager=me"
    assert client.patch(url, tree, APPLY_PATCH).status == 201
    again = client.patch(url, tree, APPLY_PATCH)
    assert (again.status, again.json["metadata"]["name"]) == (200, "c")


@pytest.mark.parametrize("field", ["kind", "apiVersion"])
@pytest.mark.parametrize(("value", "named"), [({"a": 1}, "object"), ([1], "array"), (7, "number")])
def test_a_kind_that_is_no_text_is_told_as_in_go(
    client: Client, field: str, value: Any, named: str
) -> None:
    client.post(CLASSES, device_class("c"))
    step = [{"op": "replace", "path": f"/{field}", "value": value}]
    refused = client.patch(f"{CLASSES}/c", step, JSON_PATCH)
    assert refused.status == 422
    assert f"cannot unmarshal {named} into Go struct field .{field} of type string" in (
        refused.message
    )
