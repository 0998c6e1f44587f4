"""Subresources and reviews: binding, eviction, who am I, may I; and events."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from moorage.api import protobuf
from tests.apiserver.client import MERGE_PATCH, PODS, TOKEN, Client, pod

EVENTS = "/api/v1/namespaces/default/events"


def binding(node: str) -> dict[str, object]:
    return {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": "p"},
        "target": {"kind": "Node", "name": node},
    }


def test_binding(client: Client) -> None:
    client.post(PODS, pod())
    reply = client.post(f"{PODS}/p/binding", binding("n"))
    assert (reply.status, reply.json["status"]) == (201, "Success")
    bound = client.get(f"{PODS}/p").json
    assert bound["spec"]["nodeName"] == "n"
    conditions = [(c["type"], c["status"]) for c in bound["status"]["conditions"]]
    assert conditions == [("PodScheduled", "True")]
    again = client.post(f"{PODS}/p/binding", binding("other"))
    assert again.status == 409
    assert 'already assigned to node "n"' in again.message


def test_a_binding_is_no_new_generation_and_ends_a_nomination(client: Client) -> None:
    client.post(PODS, pod())
    ready = {"type": "Ready", "status": "False"}
    waiting = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    status = {"nominatedNodeName": "m", "conditions": [waiting, ready]}
    client.patch(f"{PODS}/p/status", {"status": status}, MERGE_PATCH)
    client.post(f"{PODS}/p/binding", binding("n"))
    bound = client.get(f"{PODS}/p").json
    assert bound["metadata"]["generation"] == 1
    assert "nominatedNodeName" not in bound["status"]
    assert [each["type"] for each in bound["status"]["conditions"]] == ["PodScheduled", "Ready"]


def test_a_pod_with_a_gate_is_not_bound(client: Client) -> None:
    gated = pod()
    gated["spec"]["schedulingGates"] = [{"name": "example.com/wait"}]
    client.post(PODS, gated)
    reply = client.post(f"{PODS}/p/binding", binding("n"))
    assert reply.status == 409
    assert "pod p has non-empty .spec.schedulingGates" in reply.message


def test_binding_the_other_way(client: Client) -> None:
    client.post(PODS, pod())
    assert client.post("/api/v1/namespaces/default/bindings", binding("n")).status == 201
    assert client.get(f"{PODS}/p").json["spec"]["nodeName"] == "n"


def test_bindings_that_are_refused(client: Client) -> None:
    client.post(PODS, pod())
    assert client.post(f"{PODS}/p/binding", binding("")).status == 400
    assert client.post(f"{PODS}/q/binding", binding("n")).status == 400
    wrong = {**binding("n"), "metadata": {"name": "p", "uid": "other"}}
    assert client.post(f"{PODS}/p/binding", wrong).status == 409
    assert client.get(f"{PODS}/p/binding").status == 405


def test_eviction(client: Client) -> None:
    client.post(PODS, pod(node="n"))
    body = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": "p"},
        "deleteOptions": {"gracePeriodSeconds": 5},
    }
    reply = client.post(f"{PODS}/p/eviction", body)
    assert (reply.status, reply.json["status"]) == (201, "Success")
    assert client.get(f"{PODS}/p").json["metadata"]["deletionGracePeriodSeconds"] == 5
    nope = {**body, "metadata": {"name": "nope"}}
    assert client.post(f"{PODS}/nope/eviction", nope).status == 404


@pytest.mark.parametrize(
    "metadata", [None, {}, {"name": "other"}, {"name": "p", "namespace": "kube-system"}, "p"]
)
def test_an_eviction_names_the_pod_of_its_url(client: Client, metadata: object) -> None:
    for name in ("p", "other"):
        client.post(PODS, pod(name, node="n"))
    reply = client.post(f"{PODS}/p/eviction", {"metadata": metadata})
    assert (reply.status, "does not match" in reply.message) == (400, True)
    for name in ("p", "other"):
        assert "deletionTimestamp" not in client.get(f"{PODS}/{name}").json["metadata"]


def test_parts_that_there_are_not(client: Client) -> None:
    client.post(PODS, pod())
    assert client.get(f"{PODS}/p/proxy").status == 404
    assert client.delete(f"{PODS}/p/status").status == 405


def test_events_of_both_groups_are_the_same(client: Client) -> None:
    body = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "e"},
        "involvedObject": {"kind": "Pod", "name": "p", "namespace": "default"},
        "reason": "Scheduled",
        "message": "it was",
    }
    client.post(EVENTS, body)
    url = "/apis/events.k8s.io/v1/namespaces/default/events"
    assert client.get(f"{url}/e").json["note"] == "it was"
    found = client.get(f"{EVENTS}?fieldSelector=involvedObject.name=p").json["items"]
    assert [event["reason"] for event in found] == ["Scheduled"]


def test_who_am_i(client: Client) -> None:
    url = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    reply = client.post(url, body)
    assert reply.status == 201
    assert reply.json["status"]["userInfo"]["username"] == "kubernetes-admin"


def test_may_i_in_protobuf(client: Client) -> None:
    url = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    body = protobuf.encode(
        {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}},
        }
    )
    reply = client.post(url, body, content_type=protobuf.CONTENT_TYPE, accept=protobuf.CONTENT_TYPE)
    assert json.loads(protobuf.decode(reply.body).json)["status"]["allowed"] is True


def test_who_has_no_token_may_look_at_health_only(tmp_path: Path) -> None:
    client = Client(tmp_path / "guarded", guarded=True)
    assert client.get("/healthz").status == 200
    nobody = client.get(PODS)
    assert nobody.status == 403
    assert nobody.message == (
        'pods is forbidden: User "system:anonymous" cannot list resource "pods" in API group "" '
        'in the namespace "default"'
    )
    assert client.get("/metrics").status == 403
    wrong = client.get(PODS, authorization="Bearer wrong")
    assert (wrong.status, wrong.reason) == (401, "Unauthorized")
    assert client.get(PODS, authorization=f"Bearer {TOKEN}").status == 200
    client.close()
