"""The OpenAPI documents: their paths, content and access."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from moorage.apiserver.http.messages import Document
from moorage.apiserver.openapi import Moved, OpenAPI
from tests.apiserver.everything import everything

OPENAPI = OpenAPI(everything())
CLAIM = "io.k8s.api.resource.v1.ResourceClaim"


def _index() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(OPENAPI.index.body)["paths"]
    return found


def _tree(name: str) -> Any:
    return json.loads(OPENAPI.document(name).body)


def test_the_index_names_every_version_of_every_group() -> None:
    served = {(r.group, version) for r in everything() for version in r.kinds}
    reviews = {("authentication.k8s.io", "v1"), ("authorization.k8s.io", "v1")}
    names = {f"apis/{g}/{v}" if g else f"api/{v}" for g, v in served | reviews}
    assert _index().keys() == names


def test_the_index_leads_to_documents_that_never_change() -> None:
    for name, entry in _index().items():
        path, _, tag = entry["serverRelativeURL"].partition("?hash=")
        document = OPENAPI.find(path, "application/json", tag)
        assert isinstance(document, Document)
        assert document.body == OPENAPI.document(name).body
        assert document.etag == f'"{tag}"'
        assert "immutable" in document.headers["Cache-Control"]


def test_an_old_hash_leads_to_the_new_document() -> None:
    found = OPENAPI.find("/openapi/v3/apis/resource.k8s.io/v1", "", "old")
    assert isinstance(found, Moved)
    assert found.location == _index()["apis/resource.k8s.io/v1"]["serverRelativeURL"]


def test_without_a_hash_a_document_is_asked_for_anew() -> None:
    found = OPENAPI.find("/openapi/v3/api/v1", "*/*")
    assert isinstance(found, Document)
    assert found.headers["Cache-Control"] == "no-cache, private"


@pytest.mark.parametrize(
    ("path", "accept"),
    [
        ("/openapi/v3/apis/nothing/v1", "application/json"),
        ("/openapi/v3/api/v1", "application/com.github.proto-openapi.spec.v3.v1.0+protobuf"),
        ("/openapi/v2", "text/html"),
        ("/openapi", ""),
    ],
)
def test_what_is_not_there_is_not_answered(path: str, accept: str) -> None:
    assert OPENAPI.find(path, accept) is None


def test_making_documents_anew_gives_the_same_bytes() -> None:
    again = OpenAPI(reversed(everything()))
    assert again.index.body == OPENAPI.index.body


@pytest.mark.parametrize("name", list(_index()))
def test_every_reference_leads_somewhere(name: str) -> None:
    tree = _tree(name)
    schemas = tree["components"]["schemas"]
    for reference in _references(tree):
        assert reference.removeprefix("#/components/schemas/") in schemas, reference


def _references(tree: Any) -> list[str]:
    if isinstance(tree, list):
        return [found for item in tree for found in _references(item)]
    if not isinstance(tree, dict):
        return []
    own = [tree["$ref"]] if "$ref" in tree and isinstance(tree["$ref"], str) else []
    return own + [found for item in tree.values() for found in _references(item)]


@pytest.mark.parametrize(
    "name", [name for name in _index() if "resource.k8s.io" in name or "scheduling" in name]
)
def test_every_struct_and_field_of_devices_and_groups_is_described(name: str) -> None:
    for component, schema in _tree(name)["components"]["schemas"].items():
        fields = schema.get("properties", {})
        silent = [field for field, tree in fields.items() if not tree.get("description")]
        assert not silent, component
        assert schema.get("description"), component


def test_kinds_of_every_served_version_can_be_patched_with_validation() -> None:
    # By this kubectl tells whether the server checks fields and knows dry runs.
    for resource in everything():
        for version, kind in resource.kinds.items():
            if kind.name == "Binding":
                continue
            name = f"apis/{resource.group}/{version}" if resource.group else f"api/{version}"
            gvk = {"group": kind.group, "version": version, "kind": kind.name}
            patches = [
                path["patch"]
                for path in _tree(name)["paths"].values()
                if path.get("patch", {}).get("x-kubernetes-group-version-kind") == gvk
            ]
            assert patches
            for patch in patches:
                names = {parameter["name"] for parameter in patch["parameters"]}
                assert {"fieldValidation", "dryRun"} <= names


def test_lists_say_how_they_are_merged() -> None:
    schemas = _tree("apis/resource.k8s.io/v1")["components"]["schemas"]
    status = schemas["io.k8s.api.resource.v1.ResourceClaimStatus"]["properties"]
    assert status["reservedFor"]["x-kubernetes-list-map-keys"] == ["uid"]
    assert status["reservedFor"]["x-kubernetes-patch-strategy"] == "merge"
    assert schemas[CLAIM]["x-kubernetes-group-version-kind"] == [
        {"group": "resource.k8s.io", "version": "v1", "kind": "ResourceClaim"}
    ]


def test_what_jobs_say_of_scheduling_is_described_where_it_belongs() -> None:
    schemas = _tree("apis/batch/v1")["components"]["schemas"]
    assert "io.k8s.api.batch.v1.JobSpec" in schemas
    assert "io.k8s.api.core.v1.PodSpec" in schemas


def test_the_second_version_of_openapi_has_the_same_definitions() -> None:
    plain = OPENAPI.find("/openapi/v2", "application/json")
    assert isinstance(plain, Document)
    definitions = json.loads(plain.body)["definitions"]
    assert OPENAPI.find("/openapi/v2", "application/json") is plain
    referred = set(re.findall(rb'"\$ref":"#/definitions/([^"]+)"', plain.body))
    assert {name.decode() for name in referred} <= definitions.keys()
    assert b"#/components/" not in plain.body
    assert b'"oneOf"' not in plain.body
    claim = definitions["io.k8s.api.resource.v1.ResourceClaim"]
    assert claim["properties"]["spec"]["$ref"] == (
        "#/definitions/io.k8s.api.resource.v1.ResourceClaimSpec"
    )
    assert claim["x-kubernetes-group-version-kind"][0]["kind"] == "ResourceClaim"


def test_the_second_version_in_protobuf_describes_nothing() -> None:
    protobuf = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
    packed = OPENAPI.find("/openapi/v2", protobuf)
    assert isinstance(packed, Document)
    assert packed.content_type == "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
    assert packed.body.startswith(b"\x0a\x032.0")


PODS_STRUCTS = (
    "Container ContainerStatus ContainerPort EnvVar NamespaceSpec NamespaceStatus NodeSpec PodSpec "
    "PodStatus PodResourceClaim PodExtendedResourceClaimStatus Probe ResourceHealth Taint "
    "Toleration TopologySpreadConstraint ResourceQuotaSpec ResourceQuotaStatus Event"
)
UNUSED = {"configSource", "externalID", "podPreemptionPolicy", "volumeHealth", "stopSignal"}


@pytest.mark.parametrize("struct", PODS_STRUCTS.split())
def test_what_users_of_devices_meet_in_core_is_described(struct: str) -> None:
    fields = _tree("api/v1")["components"]["schemas"][f"io.k8s.api.core.v1.{struct}"]["properties"]
    silent = {name for name, tree in fields.items() if not tree.get("description")}
    assert silent <= UNUSED
