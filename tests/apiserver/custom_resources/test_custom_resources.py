"""Custom resources from their definition to their end, over HTTP."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from moorage.kit.bulkhead import Fault
from tests.apiserver.client import (
    APPLY_PATCH,
    CONFIG_MAPS,
    JSON_PATCH,
    MERGE_PATCH,
    STRATEGIC_PATCH,
    Client,
    config_map,
)
from tests.apiserver.custom_resources.definitions import (
    CRDS,
    GROUP,
    WIDGETS,
    condition,
    define,
    definition,
    established,
    schema,
    version,
    widget,
)


def test_a_definition_is_established(client: Client) -> None:
    made = client.post(CRDS, definition()).json
    assert made["spec"]["names"] == {
        "plural": "widgets",
        "singular": "widget",
        "kind": "Widget",
        "listKind": "WidgetList",
    }
    assert made["spec"]["conversion"] == {"strategy": "None"}
    assert made["status"]["storedVersions"] == ["v1"]
    found = established(client, definition())
    assert condition(found, "NamesAccepted") == "True"
    assert found["status"]["acceptedNames"] == made["spec"]["names"]


def test_objects_are_created_read_listed_and_deleted(client: Client) -> None:
    define(client, definition())
    made = client.post(WIDGETS, widget())
    assert made.status == 201
    assert made.json["spec"] == {"size": 1, "color": "red"}
    assert made.json["metadata"]["generation"] == 1
    found = client.get(f"{WIDGETS}/w").json
    assert found == made.json
    listed = client.get(f"/apis/{GROUP}/v1/widgets").json
    assert listed["kind"] == "WidgetList"
    (item,) = listed["items"]
    assert (item["apiVersion"], item["kind"]) == (f"{GROUP}/v1", "Widget")
    assert item == found
    assert client.delete(f"{WIDGETS}/w").json["status"] == "Success"
    assert client.get(f"{WIDGETS}/w").status == 404


def test_objects_are_watched(client: Client) -> None:
    define(client, definition())
    watch = client.watch(f"{WIDGETS}?watch=true")
    client.post(WIDGETS, widget())
    client.patch(f"{WIDGETS}/w", {"spec": {"size": 2}}, MERGE_PATCH)
    client.delete(f"{WIDGETS}/w")
    assert watch.seen(3) == [("ADDED", "w"), ("MODIFIED", "w"), ("DELETED", "w")]


def test_invalid_objects_are_refused_with_all_errors(client: Client) -> None:
    define(client, definition())
    refused = client.post(WIDGETS, widget(spec={"size": 11, "color": "blue", "tags": ["a", "a"]}))
    assert refused.status == 422
    assert refused.message == (
        'Widget.example.com "w" is invalid: '
        "[spec.size: Invalid value: 11: spec.size in body should be less than or equal to 10, "
        'spec.color: Unsupported value: "blue": supported values: "red", "green", '
        'spec.tags[1]: Duplicate value: "a"]'
    )
    missing = client.post(WIDGETS, widget(spec={}))
    assert missing.message == 'Widget.example.com "w" is invalid: spec.size: Required value'


def test_unknown_fields_are_pruned_and_reported(client: Client) -> None:
    define(client, definition())
    body = widget(spec={"size": 1, "ports": [{"name": "a", "x": 1}]}, other=1)
    made = client.post(WIDGETS, body)
    assert made.json["spec"] == {"size": 1, "ports": [{"name": "a"}], "color": "red"}
    assert "other" not in made.json
    assert made.warnings == [
        '299 - "unknown field \\"other\\""',
        '299 - "unknown field \\"spec.ports[0].x\\""',
    ]
    refused = client.post(f"{WIDGETS}?fieldValidation=Strict", body)
    assert refused.status == 400
    assert refused.message == (
        'Widget in version "v1" cannot be handled as a Widget: strict decoding error: '
        'unknown field "other", unknown field "spec.ports[0].x"'
    )


def test_unknown_fields_of_embedded_metadata_are_pruned_and_reported(client: Client) -> None:
    embedded = {
        "type": "object",
        "x-kubernetes-embedded-resource": True,
        "x-kubernetes-preserve-unknown-fields": True,
    }
    spec = {"type": "object", "properties": {"pods": {"type": "array", "items": embedded}}}
    define(client, definition(version(schema={"openAPIV3Schema": schema(spec)})))
    owner = {"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u", "blok": True}
    metadata = {"name": "p", "lables": {"a": "b"}, "ownerReferences": [owner]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "extra": 1}
    made = client.post(WIDGETS, widget(spec={"pods": [pod]}))
    assert made.warnings == [
        '299 - "unknown field \\"spec.pods[0].metadata.lables\\""',
        '299 - "unknown field \\"spec.pods[0].metadata.ownerReferences[0].blok\\""',
    ]
    del owner["blok"]
    kept = {"name": "p", "ownerReferences": [owner]}
    assert made.json["spec"]["pods"] == [{**pod, "metadata": kept}]
    strict = client.post(f"{WIDGETS}?fieldValidation=Strict", widget("b", spec={"pods": [pod]}))
    assert strict.status == 400


def test_the_status_has_a_subresource(client: Client) -> None:
    define(client, definition(version(subresources={"status": {}})))
    made = client.post(WIDGETS, widget(status={"size": 3})).json
    assert "status" not in made
    body = {**made, "spec": {"size": 5}, "status": {"size": 4}}
    changed = client.put(f"{WIDGETS}/w/status", body).json
    assert changed["status"] == {"size": 4}
    assert changed["spec"]["size"] == 1
    assert changed["metadata"]["generation"] == 1
    spec = client.patch(f"{WIDGETS}/w", {"spec": {"size": 2}, "status": None}, MERGE_PATCH).json
    assert spec["status"] == {"size": 4}
    assert spec["metadata"]["generation"] == 2
    refused = client.patch(f"{WIDGETS}/w/status", {"status": {"size": "x"}}, MERGE_PATCH)
    assert refused.message == (
        'Widget.example.com "w" is invalid: status.size: Invalid value: "string": '
        'size in body must be of type integer: "string"'
    )


def test_without_a_subresource_the_status_is_a_field(client: Client) -> None:
    define(client, definition())
    made = client.post(WIDGETS, widget(status={"size": 3})).json
    assert made["status"] == {"size": 3}
    assert client.get(f"{WIDGETS}/w/status").status == 404
    changed = client.patch(f"{WIDGETS}/w", {"status": {"size": 4}}, MERGE_PATCH).json
    assert changed["metadata"]["generation"] == 2


def test_patches(client: Client) -> None:
    define(client, definition())
    client.post(WIDGETS, widget())
    operations = [{"op": "replace", "path": "/spec/size", "value": 3}]
    assert client.patch(f"{WIDGETS}/w", operations, JSON_PATCH).json["spec"]["size"] == 3
    assert client.patch(f"{WIDGETS}/w", {"spec": {"size": 4}}, STRATEGIC_PATCH).status == 415
    refused = client.patch(f"{WIDGETS}/w", {"spec": {"size": None}}, MERGE_PATCH)
    assert refused.message == 'Widget.example.com "w" is invalid: spec.size: Required value'


def test_server_side_apply_merges_by_the_schema(client: Client) -> None:
    define(client, definition())

    def apply(manager: str, spec: object) -> Any:
        url = f"{WIDGETS}/w?fieldManager={manager}"
        return client.patch(url, widget(spec=spec), APPLY_PATCH).json

    apply("a", {"size": 1, "ports": [{"name": "x", "number": 1}], "tags": ["one"]})
    both = apply("b", {"ports": [{"name": "y", "number": 2}], "tags": ["two"]})
    assert both["spec"]["ports"] == [
        {"name": "x", "number": 1},
        {"name": "y", "number": 2},
    ]
    assert both["spec"]["tags"] == ["one", "two"]
    left = apply("a", {"size": 1})
    assert left["spec"]["ports"] == [{"name": "y", "number": 2}]
    url = f"{WIDGETS}/w?fieldManager=b"
    conflict = client.patch(url, widget(spec={"size": 2}), APPLY_PATCH)
    assert conflict.status == 409
    assert conflict.message == 'Apply failed with 1 conflict: conflict with "a": .spec.size'


def test_discovery_names_them(client: Client) -> None:
    names = {
        "plural": "widgets",
        "kind": "Widget",
        "shortNames": ["wd"],
        "categories": ["all"],
    }
    define(client, definition(version(subresources={"status": {}}), names=names))
    whole, status = client.get(f"/apis/{GROUP}/v1").json["resources"]
    assert whole["name"] == "widgets"
    assert whole["shortNames"] == ["wd"]
    assert whole["categories"] == ["all"]
    assert status["name"] == "widgets/status"
    groups = [group["name"] for group in client.get("/apis").json["groups"]]
    assert GROUP in groups
    accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    items = client.get("/apis", accept=accept).json["items"]
    (mine,) = [item for item in items if item["metadata"]["name"] == GROUP]
    assert mine["versions"][0]["resources"][0]["resource"] == "widgets"


def test_openapi_describes_them(client: Client) -> None:
    define(client, definition())
    index = client.get("/openapi/v3").json["paths"]
    found = client.get(index[f"apis/{GROUP}/v1"]["serverRelativeURL"]).json
    component = found["components"]["schemas"]["com.example.v1.Widget"]
    assert component["properties"]["spec"]["properties"]["size"]["type"] == "integer"
    assert component["x-kubernetes-group-version-kind"] == [
        {"group": GROUP, "kind": "Widget", "version": "v1"}
    ]
    assert f"/apis/{GROUP}/v1/namespaces/{{namespace}}/widgets" in found["paths"]


def test_versions_are_converted_by_name_only(client: Client) -> None:
    define(client, definition(version(), version("v2", storage=False)))
    client.post(WIDGETS, widget())
    other = WIDGETS.replace("/v1/", "/v2/")
    found = client.get(f"{other}/w").json
    assert found["apiVersion"] == f"{GROUP}/v2"
    assert found["spec"] == {"size": 1, "color": "red"}
    changed = client.patch(f"{other}/w", {"spec": {"size": 7}}, MERGE_PATCH).json
    assert changed["apiVersion"] == f"{GROUP}/v2"
    assert client.get(f"{WIDGETS}/w").json["spec"]["size"] == 7


def test_a_deleted_definition_takes_its_objects_along(client: Client) -> None:
    define(client, definition())
    client.post(WIDGETS, widget())
    held = {**widget("held"), "metadata": {"name": "held", "finalizers": ["example.com/wait"]}}
    client.post(WIDGETS, held)
    gone = client.delete(f"{CRDS}/widgets.{GROUP}").json
    assert gone["metadata"]["finalizers"] == ["customresourcecleanup.apiextensions.k8s.io"]
    assert condition(gone, "Terminating") == "True"
    client.until(lambda: client.get(f"{WIDGETS}/w").status == 404)
    client.until(lambda: client.post(WIDGETS, widget("new")).status == 405)
    refused = client.post(WIDGETS, widget("new"))
    assert refused.message == "create not allowed while custom resource definition is terminating"
    client.patch(f"{WIDGETS}/held", {"metadata": {"finalizers": None}}, MERGE_PATCH)
    client.until(lambda: client.get(f"{CRDS}/widgets.{GROUP}").status == 404)
    client.until(lambda: client.get(WIDGETS).status == 404)
    assert GROUP not in [group["name"] for group in client.get("/apis").json["groups"]]


def owned_by(owner: dict[str, Any], **fields: Any) -> list[dict[str, Any]]:
    metadata = owner["metadata"]
    reference = {key: metadata[key] for key in ("name", "uid")}
    return [{**reference, "apiVersion": owner["apiVersion"], "kind": owner["kind"], **fields}]


def test_dependents_of_a_custom_resource_go_with_it(client: Client) -> None:
    define(client, definition())
    owner = client.post(WIDGETS, widget()).json
    client.post(CONFIG_MAPS, config_map("mine", ownerReferences=owned_by(owner)))
    inner = widget("inner")
    inner["metadata"]["ownerReferences"] = owned_by(owner)
    client.post(WIDGETS, inner)
    client.delete(f"{WIDGETS}/w")
    client.until(lambda: client.get(f"{CONFIG_MAPS}/mine").status == 404)
    client.until(lambda: client.get(f"{WIDGETS}/inner").status == 404)


def test_a_custom_resource_goes_with_its_owner(client: Client) -> None:
    define(client, definition())
    owner = {"apiVersion": "v1", **client.post(CONFIG_MAPS, config_map("owner")).json}
    mine = widget()
    mine["metadata"]["ownerReferences"] = owned_by(owner)
    client.post(WIDGETS, mine)
    client.delete(f"{CONFIG_MAPS}/owner")
    client.until(lambda: client.get(f"{WIDGETS}/w").status == 404)


def test_deletion_in_the_foreground_waits_for_dependents(client: Client) -> None:
    define(client, definition())
    owner = client.post(WIDGETS, widget()).json
    held = config_map("held", ownerReferences=owned_by(owner, blockOwnerDeletion=True))
    held["metadata"]["finalizers"] = ["example.com/wait"]
    client.post(CONFIG_MAPS, held)
    client.delete(f"{WIDGETS}/w?propagationPolicy=Foreground")
    marked = client.until(
        lambda: client.get(f"{CONFIG_MAPS}/held").json["metadata"].get("deletionTimestamp")
    )
    assert marked
    assert client.get(f"{WIDGETS}/w").status == 200
    client.patch(f"{CONFIG_MAPS}/held", {"metadata": {"finalizers": None}}, MERGE_PATCH)
    client.until(lambda: client.get(f"{WIDGETS}/w").status == 404)


def test_orphans_stay(client: Client) -> None:
    define(client, definition())
    owner = client.post(WIDGETS, widget()).json
    client.post(CONFIG_MAPS, config_map("mine", ownerReferences=owned_by(owner)))
    client.delete(f"{WIDGETS}/w?propagationPolicy=Orphan")
    client.until(lambda: client.get(f"{WIDGETS}/w").status == 404)
    assert "ownerReferences" not in client.get(f"{CONFIG_MAPS}/mine").json["metadata"]


def _is_going(client: Client, url: str) -> bool:
    return "deletionTimestamp" in client.get(url).json["metadata"]


def test_collecting_costs_what_goes_not_what_is_there(client: Client) -> None:
    define(client, definition())
    many = range(30)
    owner = client.post(WIDGETS, widget()).json
    for index in many:
        held = config_map(f"held-{index}", ownerReferences=owned_by(owner))
        held["metadata"]["finalizers"] = ["example.com/wait"]
        client.post(CONFIG_MAPS, held)
    client.delete(f"{WIDGETS}/w?propagationPolicy=Foreground")
    for index in many:
        url = f"{CONFIG_MAPS}/held-{index}"
        client.until(partial(_is_going, client, url))
        client.patch(url, {"metadata": {"finalizers": None}}, MERGE_PATCH)
    client.until(lambda: not client.get(CONFIG_MAPS).json["items"])
    client.until(lambda: client.get(f"{WIDGETS}/w").status == 404)
    assert 30 <= client.collector.judged <= 4 * 30


def test_objects_of_built_in_owners_are_not_judged(client: Client) -> None:
    define(client, definition())
    owner = {"apiVersion": "v1", **client.post(CONFIG_MAPS, config_map("owner")).json}
    client.delete(f"{CONFIG_MAPS}/owner")
    for index in range(20):
        client.post(CONFIG_MAPS, config_map(f"left-{index}", ownerReferences=owned_by(owner)))
    mine = widget()
    mine["metadata"]["ownerReferences"] = owned_by(owner)
    client.post(WIDGETS, mine)
    client.until(lambda: client.get(f"{WIDGETS}/w").status == 404)
    assert len(client.get(CONFIG_MAPS).json["items"]) == 20
    assert client.collector.judged <= 2


def test_a_namespace_takes_custom_resources_along(client: Client) -> None:
    define(client, definition())
    client.post("/api/v1/namespaces", {"metadata": {"name": "team"}})
    mine = WIDGETS.replace("/default/", "/team/")
    assert client.post(mine, widget()).status == 201
    client.delete("/api/v1/namespaces/team")
    client.until(lambda: client.get("/api/v1/namespaces/team").status == 404)
    assert client.get(f"{mine}/w").status == 404


def test_quotas_count_custom_resources(client: Client) -> None:
    define(client, definition())
    hard = {"count/widgets.example.com": "1"}
    quotas = "/api/v1/namespaces/default/resourcequotas"
    client.post(quotas, {"metadata": {"name": "q"}, "spec": {"hard": hard}})
    client.until(lambda: client.get(f"{quotas}/q").json["status"].get("used"))
    assert client.post(WIDGETS, widget("one")).status == 201
    refused = client.post(WIDGETS, widget("two"))
    assert refused.status == 403
    assert refused.message == (
        'widgets.example.com "two" is forbidden: exceeded quota: q, requested: '
        "count/widgets.example.com=1, used: count/widgets.example.com=1, limited: "
        "count/widgets.example.com=1"
    )


def test_tables_have_the_columns_of_the_definition(client: Client) -> None:
    columns = [
        {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
        {"name": "Color", "type": "string", "jsonPath": ".spec.color", "priority": 1},
        {"name": "Port", "type": "string", "jsonPath": '.spec.ports[?(@.name=="b")].number'},
        {"name": "Gone", "type": "string", "jsonPath": ".spec.nothing"},
        {"name": "Spec", "type": "string", "jsonPath": ".spec.ports"},
        {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
    ]
    define(client, definition(version(additionalPrinterColumns=columns)))
    ports = [{"name": "a", "number": 1}, {"name": "b", "number": 2}]
    client.post(WIDGETS, widget(spec={"size": 3, "ports": ports}))
    client.later(120)
    table = client.get(WIDGETS, accept="application/json;as=Table;v=v1;g=meta.k8s.io").json
    names = [column["name"] for column in table["columnDefinitions"]]
    assert names == ["Name", "Size", "Color", "Port", "Gone", "Spec", "Age"]
    shown = '[{"name":"a","number":1},{"name":"b","number":2}]'
    assert table["rows"][0]["cells"] == ["w", 3, "red", "2", None, shown, "2m"]


def test_a_table_of_definitions_says_what_they_serve(client: Client) -> None:
    define(client, definition(version("v2"), version("v1", storage=False)))
    table = client.get(CRDS, accept="application/json;as=Table;v=v1;g=meta.k8s.io").json
    names = [column["name"] for column in table["columnDefinitions"]]
    assert names == [
        *("Name", "Scope", "Versions", "Created At"),
        *("Group", "Kind", "ShortNames", "Established"),
    ]
    (cells,) = (each["cells"] for each in table["rows"])
    assert cells[:3] == [f"widgets.{GROUP}", "Namespaced", "v1,v2(storage)"]
    assert cells[4:] == [GROUP, "Widget", "", True]


def test_a_rule_that_an_unchanged_value_breaks_is_a_warning(client: Client) -> None:
    define(client, definition())
    client.post(WIDGETS, widget())
    now = client.get(f"{CRDS}/widgets.{GROUP}").json
    spec = now["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    spec["x-kubernetes-validations"] = [{"rule": "self.size > 5", "message": "too small"}]
    assert client.put(f"{CRDS}/widgets.{GROUP}", now).status == 200
    client.until(lambda: client.post(f"{WIDGETS}?dryRun=All", widget("x")).status == 422)
    kept = client.patch(f"{WIDGETS}/w", {"metadata": {"labels": {"a": "b"}}}, MERGE_PATCH)
    assert (kept.status, kept.warnings) == (200, ['299 - "spec: Invalid value: too small"'])


def test_field_selectors_use_selectable_fields(client: Client) -> None:
    define(client, definition(version(selectableFields=[{"jsonPath": ".spec.color"}])))
    client.post(WIDGETS, widget("a"))
    client.post(WIDGETS, widget("b", spec={"size": 1, "color": "green"}))
    found = client.get(f"{WIDGETS}?fieldSelector=spec.color%3Dgreen").json
    assert [item["metadata"]["name"] for item in found["items"]] == ["b"]
    refused = client.get(f"{WIDGETS}?fieldSelector=spec.size%3D1")
    assert refused.message == "field label not supported: spec.size"


def test_scale(client: Client) -> None:
    scale = {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"}
    define(client, definition(version(subresources={"status": {}, "scale": scale})))
    client.post(WIDGETS, widget())
    found = client.get(f"{WIDGETS}/w/scale").json
    assert found["kind"] == "Scale"
    assert found["spec"] == {"replicas": 1}
    changed = client.patch(f"{WIDGETS}/w/scale", {"spec": {"replicas": 4}}, MERGE_PATCH)
    assert changed.json["spec"] == {"replicas": 4}
    assert client.get(f"{WIDGETS}/w").json["spec"]["size"] == 4
    refused = client.patch(f"{WIDGETS}/w/scale", {"spec": {"replicas": 40}}, MERGE_PATCH)
    assert refused.message == (
        'Widget.example.com "w" is invalid: spec.size: Invalid value: 40: '
        "spec.size in body should be less than or equal to 10"
    )


def test_a_write_of_the_scale_may_set_the_first_number(client: Client) -> None:
    scale = {"specReplicasPath": ".spec.number", "statusReplicasPath": ".status.size"}
    numbered = schema({"type": "object", "properties": {"number": {"type": "integer"}}})
    served = version(subresources={"scale": scale}, schema={"openAPIV3Schema": numbered})
    define(client, definition(served))
    client.post(WIDGETS, widget(spec={}))
    assert client.get(f"{WIDGETS}/w/scale").status == 500
    changed = client.patch(f"{WIDGETS}/w/scale", {"spec": {"replicas": 4}}, MERGE_PATCH)
    assert changed.json["spec"] == {"replicas": 4}
    assert client.get(f"{WIDGETS}/w").json["spec"] == {"number": 4}


def test_a_changed_schema_applies_to_stored_objects(client: Client) -> None:
    define(client, definition())
    client.post(WIDGETS, widget(spec={"size": 1, "tags": ["a"]}))
    now = client.get(f"{CRDS}/widgets.{GROUP}").json
    spec = now["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    del spec["properties"]["tags"]
    spec["properties"]["shape"] = {"type": "string", "default": "round"}
    assert client.put(f"{CRDS}/widgets.{GROUP}", now).status == 200
    found = client.until(
        lambda: (seen := client.get(f"{WIDGETS}/w").json["spec"]).get("shape") and seen
    )
    assert found == {"size": 1, "color": "red", "shape": "round"}


def test_a_schema_of_wrong_types_is_refused_however_it_is_sent(client: Client) -> None:
    faulty = definition()
    whole = faulty["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    whole["properties"]["extra"] = {"type": "array", "items": {"$ref": True}}
    path = f"{CRDS}/{faulty['metadata']['name']}"
    applied = client.patch(f"{path}?fieldManager=me", faulty, APPLY_PATCH)
    posted = client.post(CRDS, faulty)
    assert (applied.status, posted.status) == (400, 400)
    for refused in (applied, posted):
        assert "cannot unmarshal bool into Go struct field" in refused.json["message"]


def test_names_in_use_are_not_accepted(client: Client) -> None:
    define(client, definition())
    other = definition(plural="gadgets", kind="Widget")
    client.post(CRDS, other)

    def refused() -> Any:
        now = client.get(f"{CRDS}/gadgets.{GROUP}").json
        return now if condition(now, "NamesAccepted") == "False" else None

    found = client.until(refused)
    (accepted, established) = found["status"]["conditions"]
    assert accepted["reason"] == "ListKindConflict"
    assert accepted["message"] == '"WidgetList" is already in use'
    assert established["reason"] == "NotAccepted"
    assert client.get(f"/apis/{GROUP}/v1/gadgets").status == 404
    client.delete(f"{CRDS}/widgets.{GROUP}")
    client.until(lambda: client.get(f"/apis/{GROUP}/v1/gadgets").status == 200)


def test_a_deprecated_version_warns(client: Client) -> None:
    define(client, definition(version(deprecated=True)))
    assert client.get(WIDGETS).warnings == ['299 - "example.com/v1 Widget is deprecated"']


def test_conversion_webhooks_are_not_called(client: Client) -> None:
    webhook = {
        "clientConfig": {"url": "https://example.com/convert"},
        "conversionReviewVersions": ["v1"],
    }
    conversion = {"strategy": "Webhook", "webhook": webhook}
    body = definition(version(), version("v2", storage=False), conversion=conversion)
    made = client.post(CRDS, body)
    (warning,) = made.warnings
    assert warning == (
        '299 - "spec.conversion: this server calls no conversion webhooks; objects can be read and '
        'written in version v1 only"'
    )
    client.until(lambda: client.get(WIDGETS).status == 200)
    refused = client.get(WIDGETS.replace("/v1/", "/v2/"))
    assert refused.status == 500
    assert refused.message == (
        "Internal error occurred: conversion webhook for example.com/v2, Kind=Widget failed: "
        "this server calls no conversion webhooks; use version v1"
    )


def test_they_are_served_again_after_a_restart(tmp_path: Path) -> None:
    first = Client(tmp_path / "store")
    define(first, definition())
    first.post(WIDGETS, widget())
    first.close()
    again = Client(tmp_path / "store")
    assert again.get(f"{WIDGETS}/w").json["spec"] == {"size": 1, "color": "red"}
    again.close()


def test_managers_of_several_versions(client: Client) -> None:
    define(client, definition(version(), version("v2", storage=False)))
    body = {"size": 1, "tags": ["one"]}
    client.patch(f"{WIDGETS}/w?fieldManager=a", widget(spec=body), APPLY_PATCH)
    other = WIDGETS.replace("/v1/", "/v2/")
    applied = widget(api_version="v2", spec={"tags": ["two"]})
    both = client.patch(f"{other}/w?fieldManager=b", applied, APPLY_PATCH).json
    assert both["spec"]["tags"] == ["one", "two"]
    owners = {each["manager"]: each["apiVersion"] for each in both["metadata"]["managedFields"]}
    assert owners == {"a": f"{GROUP}/v1", "b": f"{GROUP}/v2"}
    taken = widget(api_version="v2", spec={"size": 2, "tags": ["two"]})
    refused = client.patch(f"{other}/w?fieldManager=b", taken, APPLY_PATCH)
    assert refused.message == ('Apply failed with 1 conflict: conflict with "a": .spec.size')
    left = client.patch(f"{WIDGETS}/w?fieldManager=a", widget(spec={"size": 1}), APPLY_PATCH).json
    assert left["spec"]["tags"] == ["two"]


def test_a_kind_may_be_called_like_one_of_kubernetes(client: Client) -> None:
    define(client, definition(plural="pods", kind="Pod"))
    pods = WIDGETS.replace("widgets", "pods")
    made = client.post(pods, {**widget(), "kind": "Pod"})
    assert made.status == 201
    assert made.json["spec"] == {"size": 1, "color": "red"}
    table = client.get(pods, accept="application/json;as=Table;v=v1;g=meta.k8s.io").json
    assert [column["name"] for column in table["columnDefinitions"]] == ["Name", "Age"]
    assert client.get(f"{pods}/w/log").status == 404
    assert client.delete(f"{pods}/w").json["status"] == "Success"


def test_cluster_scoped_resources_have_no_namespace(client: Client) -> None:
    define(client, definition(scope="Cluster"))
    everywhere = f"/apis/{GROUP}/v1/widgets"
    assert client.post(everywhere, widget()).status == 201
    assert client.get(f"{everywhere}/w").status == 200
    assert client.get(f"{WIDGETS}/w").status == 404


def test_defaults_that_are_too_large_affect_their_object_only(
    client: Client, faults: list[Fault]
) -> None:
    item = {"type": "object", "properties": {"text": {"type": "string"}}}
    spec = {"type": "object", "properties": {"items": {"type": "array", "items": item}}}
    made = definition(version(schema={"openAPIV3Schema": schema(spec)}))
    define(client, made)
    many: dict[str, Any] = {"items": [{}] * 100}
    assert client.post(WIDGETS, widget("many", spec=many)).status == 201
    assert client.post(WIDGETS, widget("few", spec={"items": []})).status == 201
    place = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/items/items"
    change = {"op": "add", "path": f"{place}/properties/text/default", "value": "x" * 50_000}
    assert client.patch(f"{CRDS}/widgets.{GROUP}", [change], JSON_PATCH).status == 200
    client.until(lambda: client.get(f"{WIDGETS}/many").status == 500 or None)
    assert "the defaults of its schema are more" in client.get(f"{WIDGETS}/many").message
    listed = client.get(WIDGETS)
    assert [each["metadata"]["name"] for each in listed.json["items"]] == ["few"]
    refused = client.post(WIDGETS, widget("more", spec=many))
    assert (refused.status, refused.reason) == (400, "BadRequest")
    shorter = change | {"op": "replace", "value": "x"}
    assert client.patch(f"{CRDS}/widgets.{GROUP}", [shorter], JSON_PATCH).status == 200
    client.until(lambda: client.get(f"{WIDGETS}/many").status == 200 or None)
    assert {each.place for each in faults} == {"reading the store"}
