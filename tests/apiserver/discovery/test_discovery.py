"""The forms of discovery, and who gets which."""

from __future__ import annotations

import json

import pytest

from moorage.apiserver.discovery import Discovery, DiscoveryForm, preferred_form, version_order
from tests.apiserver.everything import everything

V2 = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
V2BETA1 = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList"

DISCOVERY = Discovery(everything())


@pytest.mark.parametrize(
    ("accept", "form"),
    [
        ("", DiscoveryForm.LEGACY),
        ("*/*", DiscoveryForm.LEGACY),
        ("application/json", DiscoveryForm.LEGACY),
        (f"{V2},application/json", DiscoveryForm.V2),
        (f"{V2BETA1},application/json", DiscoveryForm.V2BETA1),
        (f"{V2},{V2BETA1},application/json", DiscoveryForm.V2),
        (f"application/json,{V2}", DiscoveryForm.LEGACY),
        (f"application/json;q=0.5,{V2}", DiscoveryForm.V2),
        ("application/json;as=APIGroupDiscoveryList;v=v3;g=apidiscovery.k8s.io", None),
        ("application/json;as=Table;v=v1;g=meta.k8s.io,application/json", DiscoveryForm.LEGACY),
        ("application/vnd.kubernetes.protobuf,application/json", DiscoveryForm.LEGACY),
        ("application/vnd.kubernetes.protobuf", None),
        ("application/json;q=0", None),
        ("application/json;q=much", None),
    ],
)
def test_the_first_form_that_there_is_is_given(accept: str, form: DiscoveryForm | None) -> None:
    assert preferred_form(accept) == form


def test_aggregated_discovery_may_be_kept() -> None:
    document = DISCOVERY.find("/apis", V2)
    assert document is not None
    assert document.headers["Content-Type"] == V2
    assert document.headers["Cache-Control"] == "public"
    assert document.is_known(document.etag)
    assert document.is_known(f'"x", {document.etag}')
    assert not document.is_known('"x"')
    other = DISCOVERY.find("/apis", V2BETA1)
    assert other is not None
    assert json.loads(other.body)["apiVersion"] == "apidiscovery.k8s.io/v2beta1"
    assert other.etag != document.etag


def test_legacy_discovery_has_no_tag() -> None:
    document = DISCOVERY.find("/apis")
    assert document is not None
    assert not document.is_known("*")
    assert "ETag" not in document.headers


def test_paths_that_are_not_served_have_no_document() -> None:
    assert DISCOVERY.find("/apis/nothing") is None
    assert "/apis/nothing" not in DISCOVERY
    assert "/apis/" in DISCOVERY
    assert DISCOVERY.find("/api/v1/") is not None


def test_what_kubernetes_no_longer_has_is_listed_too() -> None:
    document = DISCOVERY.find("/apis/scheduling.k8s.io")
    assert document is not None
    versions = [version["version"] for version in json.loads(document.body)["versions"]]
    assert versions == ["v1", "v1beta1", "v1alpha3", "v1alpha2"]


def test_stable_versions_come_first_and_new_ones_before_old_ones() -> None:
    versions = ["v1alpha3", "v1beta1", "v2", "v1beta2", "v1", "v2alpha1", "v1beta10"]
    assert sorted(versions, key=version_order) == [
        "v2",
        "v1",
        "v1beta10",
        "v1beta2",
        "v1beta1",
        "v2alpha1",
        "v1alpha3",
    ]
