"""Kinds that others act on: defaults, refusals and warnings."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.api.protobuf import CONTENT_TYPE, encode
from tests.apiserver.client import Client

NETWORKING = "/apis/networking.k8s.io/v1"
INGRESSES = f"{NETWORKING}/namespaces/default/ingresses"
POLICIES = f"{NETWORKING}/namespaces/default/networkpolicies"
CONTROLLERS = "/api/v1/namespaces/default/replicationcontrollers"
SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"
DRIVERS = "/apis/storage.k8s.io/v1/csidrivers"
BUNDLES = "/apis/certificates.k8s.io/v1/clustertrustbundles"


def ingress(**path: Any) -> dict[str, Any]:
    backend = {"service": {"name": "web", "port": {"number": 80}}}
    rule = {"http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": backend, **path}]}}
    return {"metadata": {"name": "web"}, "spec": {"rules": [rule]}}


def test_what_nothing_enforces_says_so(client: Client) -> None:
    made = client.post(POLICIES, {"metadata": {"name": "p"}, "spec": {"podSelector": {}}})
    assert made.status == 201
    assert made.json["spec"]["policyTypes"] == ["Ingress"]
    (warning,) = made.warnings
    assert "NetworkPolicy is stored, but has no effect: Nothing enforces it." in warning
    (warning,) = client.post(INGRESSES, ingress()).warnings
    assert "unless you run an ingress controller" in warning


def test_a_refused_object_has_no_such_warning(client: Client) -> None:
    refused = client.post(INGRESSES, ingress(pathType="Any"))
    assert refused.status == 422
    assert refused.warnings == []


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ({"pathType": None}, "pathType: Required value: pathType must be specified"),
        ({"path": "x"}, 'path: Invalid value: "x": must be an absolute path'),
        ({"path": "/a//b"}, "path: Invalid value: \"/a//b\": must not contain '//'"),
        ({"backend": {}}, 'backend: Invalid value: "": resource or service backend is required'),
        (
            {"backend": {"service": {"name": "web"}}},
            "backend: Required value: port name or number is required",
        ),
    ],
)
def test_paths_of_an_ingress_are_checked(
    client: Client, path: dict[str, Any], message: str
) -> None:
    refused = client.post(INGRESSES, ingress(**path)).json["message"]
    assert f"spec.rules[0].http.paths[0].{message}" in refused


@pytest.mark.parametrize(
    ("peer", "message"),
    [
        ({}, "from[0]: Required value: must specify a peer"),
        (
            {"ipBlock": {"cidr": "10.0.0.0/8"}, "podSelector": {}},
            "from[0]: Forbidden: may not specify both ipBlock and another peer",
        ),
        (
            {"ipBlock": {"cidr": "10.0.0.1/8"}},
            'cidr: Invalid value: "10.0.0.1/8": must not have bits set beyond the prefix length',
        ),
        (
            {"ipBlock": {"cidr": "10.0.0.0/8", "except": ["11.0.0.0/16"]}},
            'except[0]: Invalid value: "11.0.0.0/16": must be a strict subset of `cidr`',
        ),
    ],
)
def test_peers_of_a_policy_are_checked(client: Client, peer: dict[str, Any], message: str) -> None:
    spec = {"podSelector": {}, "ingress": [{"from": [peer]}]}
    refused = client.post(POLICIES, {"metadata": {"name": "p"}, "spec": spec}).json["message"]
    assert message in refused


def test_a_replication_controller_gets_its_selector_from_the_template(client: Client) -> None:
    template = {
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }
    made = client.post(CONTROLLERS, {"metadata": {"name": "c"}, "spec": {"template": template}})
    assert made.json["spec"]["selector"] == {"app": "web"}
    assert made.json["spec"]["replicas"] == 1
    assert made.json["metadata"]["labels"] == {"app": "web"}


def test_the_service_of_another_api_server_is_refused(client: Client) -> None:
    body: dict[str, Any] = {
        "metadata": {"name": "v1beta1.metrics.k8s.io"},
        "spec": {
            "group": "metrics.k8s.io",
            "version": "v1beta1",
            "groupPriorityMinimum": 100,
            "versionPriority": 100,
            "service": {"name": "metrics-server", "namespace": "kube-system"},
        },
    }
    refused = client.post(SERVICES, body)
    assert "requests are not passed on to other API servers" in refused.json["message"]
    del body["spec"]["service"]
    assert client.post(SERVICES, body).status == 201


def test_csi_drivers_have_the_defaults_of_kubernetes(client: Client) -> None:
    made = client.post(DRIVERS, {"metadata": {"name": "d.example.com"}, "spec": {}}).json
    assert made["spec"]["attachRequired"] is True
    assert made["spec"]["fsGroupPolicy"] == "ReadWriteOnceWithFSType"
    assert made["spec"]["volumeLifecycleModes"] == ["Persistent"]


def test_bundles_are_found_by_their_signer_and_named_after_it(client: Client) -> None:
    spec = {"signerName": "a.example.com/b", "trustBundle": "-----BEGIN CERTIFICATE-----\n"}
    refused = client.post(BUNDLES, {"metadata": {"name": "x"}, "spec": spec}).json["message"]
    assert "must be named with prefix a.example.com:b:" in refused
    assert client.post(BUNDLES, {"metadata": {"name": "a.example.com:b:x"}, "spec": spec})
    found = client.get(f"{BUNDLES}?fieldSelector=spec.signerName%3Da.example.com%2Fb").json
    assert [each["metadata"]["name"] for each in found["items"]] == ["a.example.com:b:x"]
    assert client.get(f"{BUNDLES}?fieldSelector=spec.signerName%3Dother").json["items"] == []


def test_json_within_protobuf_is_read(client: Client) -> None:
    tree = {
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": {"name": "r"},
        "data": {"spec": {"template": [1, "x"]}},
        "revision": 3,
    }
    revisions = "/apis/apps/v1/namespaces/default/controllerrevisions"
    sent = client.post(revisions, encode(tree), content_type=CONTENT_TYPE)
    assert sent.status == 201, sent.body
    assert client.get(f"{revisions}/r").json["data"] == {"spec": {"template": [1, "x"]}}
