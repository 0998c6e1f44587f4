"""Subresources that change a part of a pod: ephemeralcontainers and resize."""

from __future__ import annotations

from typing import Any

import pytest

from tests.apiserver.client import MERGE_PATCH, PODS, STRATEGIC_PATCH, Client, pod

DEBUGGER = {"name": "debugger", "image": "busybox"}
SMALL = "node didn't have enough allocatable resources"
QUOTAS = "/api/v1/namespaces/default/resourcequotas"


def sized(cpu: str, limit: str = "2", **container: Any) -> dict[str, Any]:
    made = pod()
    resources = {"requests": {"cpu": cpu}, "limits": {"cpu": limit}}
    made["spec"]["containers"] = [{"name": "c", "image": "i", "resources": resources, **container}]
    return made


def causes(reply: Any) -> list[tuple[str, str]]:
    found = reply.json["details"]["causes"]
    return [(each["field"], each["message"].partition(": ")[2].strip()) for each in found]


def resize(client: Client, spec: dict[str, Any]) -> Any:
    return client.patch(f"{PODS}/p/resize", {"spec": spec}, STRATEGIC_PATCH)


def requests(cpu: str, **others: str) -> dict[str, Any]:
    return {"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu, **others}}}]}


def test_a_container_is_added_and_stays(client: Client) -> None:
    client.post(PODS, pod())
    path = f"{PODS}/p/ephemeralcontainers"
    added = client.patch(path, {"spec": {"ephemeralContainers": [DEBUGGER]}}, STRATEGIC_PATCH)
    assert (added.status, added.json["metadata"]["generation"]) == (200, 2)
    (made,) = added.json["spec"]["ephemeralContainers"]
    assert (made["name"], made["terminationMessagePolicy"]) == ("debugger", "File")
    assert client.get(path).json["spec"]["ephemeralContainers"] == [made]
    body = added.json
    for containers, why in (
        ([], 'existing ephemeral containers "debugger" may not be removed'),
        ([{**made, "image": "other"}], 'existing ephemeral containers "debugger" may not be'),
    ):
        refused = client.put(path, {**body, "spec": {"ephemeralContainers": containers}})
        ((field, message),) = causes(refused)
        assert (field, message.startswith(why)) == ("spec.ephemeralContainers", True)


def test_other_changes_beside_ephemeral_containers_are_dropped(client: Client) -> None:
    made = client.post(PODS, pod()).json
    body = {**made, "metadata": {**made["metadata"], "labels": {"a": "b"}}}
    body["spec"] = {"nodeName": "other", "ephemeralContainers": [DEBUGGER]}
    reply = client.put(f"{PODS}/p/ephemeralcontainers", body)
    assert reply.status == 200
    assert "nodeName" not in reply.json["spec"]
    assert "labels" not in reply.json["metadata"]


@pytest.mark.parametrize(
    ("container", "field"),
    [
        ({"name": "c", "image": "i"}, "name"),
        ({"name": "d"}, "image"),
        ({**DEBUGGER, "ports": [{"containerPort": 80}]}, "ports"),
        ({**DEBUGGER, "resources": {"limits": {"cpu": "1"}}}, "resources"),
        ({**DEBUGGER, "targetContainerName": "nobody"}, "targetContainerName"),
    ],
)
def test_ephemeral_containers_that_are_refused(
    client: Client, container: dict[str, Any], field: str
) -> None:
    client.post(PODS, pod())
    body = {"spec": {"ephemeralContainers": [container]}}
    reply = client.patch(f"{PODS}/p/ephemeralcontainers", body, MERGE_PATCH)
    assert reply.status == 422
    assert [each[0] for each in causes(reply)] == [f"spec.ephemeralContainers[0].{field}"]


def test_a_pod_is_resized(client: Client) -> None:
    client.post(PODS, sized("1"))
    reply = resize(client, requests("1500m"))
    assert (reply.status, reply.json["metadata"]["generation"]) == (200, 2)
    assert reply.json["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "1500m"}
    assert resize(client, requests("1500m")).json["metadata"]["generation"] == 2


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (
            requests("2"),
            [("spec", "Pod QOS Class may not change as a result of resizing")],
        ),
        (
            requests("1", **{"ephemeral-storage": "1"}),
            [("spec", "only cpu and memory resources are mutable")],
        ),
        (
            {"containers": [{"name": "c", "resources": {"requests": {"cpu": None}}}]},
            [("spec.containers[0].resources.requests", "resource requests cannot be removed")],
        ),
        (
            {"containers": [{"name": "d", "image": "i"}]},
            [("spec.containers", "containers may not be added or removed on resize")],
        ),
    ],
)
def test_sizes_that_are_refused(
    client: Client, spec: dict[str, Any], expected: list[tuple[str, str]]
) -> None:
    made = sized("1")
    made["spec"]["containers"][0]["resources"]["limits"] |= {"memory": "1Gi"}
    made["spec"]["containers"][0]["resources"]["requests"] |= {"memory": "1Gi"}
    if expected[0][1].startswith("resource requests"):
        del made["spec"]["containers"][0]["resources"]["limits"]
    client.post(PODS, made)
    found = causes(resize(client, spec))
    assert [(field, message.split(": ")[-1]) for field, message in found] == expected


def test_a_node_that_does_not_say_what_containers_have_cannot_resize_them(client: Client) -> None:
    client.post("/api/v1/nodes", with_node())
    client.post(PODS, {**sized("1"), "spec": {**sized("1")["spec"], "nodeName": "n"}})
    running = {"name": "c", "image": "i", "imageID": "", "ready": True, "restartCount": 0}
    running["state"] = {"running": {"startedAt": "2026-11-15T12:00:00Z"}}
    told = {"status": {"containerStatuses": [running]}}
    assert client.patch(f"{PODS}/p/status", told, MERGE_PATCH).status == 200
    expected = [("spec", "Pod running on node without support for resize")]
    assert causes(resize(client, requests("1500m"))) == expected
    running["resources"] = {"requests": {"cpu": "1"}}
    assert client.patch(f"{PODS}/p/status", told, MERGE_PATCH).status == 200
    assert resize(client, requests("1500m")).status == 200


def with_node(name: str = "n", cpu: str = "4", **labels: str) -> dict[str, Any]:
    amounts = {"cpu": cpu, "memory": "8Gi"}
    metadata = {"name": name, "labels": {f"kubernetes.io/{key}": v for key, v in labels.items()}}
    return {"metadata": metadata, "status": {"allocatable": amounts, "capacity": amounts}}


@pytest.mark.parametrize(
    ("node", "cpu", "why", "cause"),
    [
        (None, "1500m", 'node "n" not found', None),
        (
            with_node(os="windows"),
            "1500m",
            'pod resize is only supported on linux nodes, node "n" is "windows"',
            "UnsupportedPlatform",
        ),
        (
            with_node(cpu="1250m"),
            "1500m",
            f"{SMALL}: cpu, requested: 1500, allocatable: 1250",
            "NodeCapacity",
        ),
        (with_node(), "1500m", "", None),
        (None, "1", "", None),  # nothing changes
    ],
)
def test_the_node_of_a_pod_must_be_able_to_have_it(
    client: Client, node: dict[str, Any] | None, cpu: str, why: str, cause: str | None
) -> None:
    if node is not None:
        assert client.post("/api/v1/nodes", node).status == 201
    made = sized("1")
    made["spec"]["nodeName"] = "n"
    client.post(PODS, made)
    reply = resize(client, requests(cpu))
    assert reply.status == (403 if why else 200)
    if why:
        assert reply.message == f'pods "p" is forbidden: {why}'
        causes = reply.json["details"].get("causes", [])
        assert [each["reason"] for each in causes] == ([cause] if cause else [])


def test_a_quota_holds_for_a_pod_that_is_resized(client: Client) -> None:
    quota = {"metadata": {"name": "q"}, "spec": {"hard": {"requests.cpu": "1200m"}}}
    client.post(QUOTAS, quota)
    client.until(lambda: client.get(f"{QUOTAS}/q").json.get("status", {}).get("used"))
    assert client.post(PODS, sized("1")).status == 201
    refused = resize(client, requests("1500m"))
    assert (refused.status, "exceeded quota: q" in refused.message) == (403, True)
    assert resize(client, requests("1100m")).status == 200
