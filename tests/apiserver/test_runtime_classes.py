"""Runtime classes: fields set in pods that name one, and rejections."""

from __future__ import annotations

from typing import Any

import pytest

from tests.apiserver.client import PODS, Client, pod

CLASSES = "/apis/node.k8s.io/v1/runtimeclasses"
PREFIX = 'pods "p" is forbidden: '


def runtime_class(name: str = "kata", **fields: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "handler": "kata", **fields}


def of_class(name: str = "kata", **fields: Any) -> dict[str, Any]:
    body = pod()
    body["spec"] |= {"runtimeClassName": name, **fields}
    return body


def test_a_class_that_does_not_exist_is_refused(client: Client) -> None:
    refused = client.post(PODS, of_class("gone")).json
    assert refused["code"] == 403
    assert refused["message"] == f'{PREFIX}pod rejected: RuntimeClass "gone" not found'
    # It is refused before the rules are looked at.
    broken = of_class("gone", volumes=[{"name": "/"}])
    assert client.post(PODS, broken).json["reason"] == "Forbidden"


def test_a_class_adds_overhead_nodes_and_tolerations(client: Client) -> None:
    toleration = {"key": "kata", "operator": "Exists", "effect": "NoSchedule"}
    scheduling = {"nodeSelector": {"runtime": "kata"}, "tolerations": [toleration]}
    overhead = {"podFixed": {"cpu": "250m"}}
    client.post(CLASSES, runtime_class(overhead=overhead, scheduling=scheduling))
    own = {"key": "kata", "operator": "Equal", "value": "", "effect": "NoSchedule"}
    spec = client.post(PODS, of_class(nodeSelector={"a": "b"}, tolerations=[own])).json["spec"]
    assert spec["overhead"] == {"cpu": "250m"}
    assert spec["nodeSelector"] == {"a": "b", "runtime": "kata"}
    # The pod's own is covered by the one of the class.
    assert [t for t in spec["tolerations"] if t["effect"] == "NoSchedule"] == [toleration]


@pytest.mark.parametrize(
    ("of_runtime", "of_pod", "why"),
    [
        (
            {"overhead": {"podFixed": {"cpu": "1"}}},
            {"overhead": {"cpu": "2"}},
            "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead",
        ),
        (
            {},
            {"overhead": {"cpu": "2"}},
            "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead",
        ),
        (
            {"scheduling": {"nodeSelector": {"a": "b"}}},
            {"nodeSelector": {"a": "c"}},
            "conflict: runtimeClass.scheduling.nodeSelector[a] = b; pod.spec.nodeSelector[a] = c",
        ),
    ],
)
def test_what_a_class_says_may_not_be_contradicted(
    client: Client, of_runtime: dict[str, Any], of_pod: dict[str, Any], why: str
) -> None:
    client.post(CLASSES, runtime_class(**of_runtime))
    refused = client.post(PODS, of_class(**of_pod)).json
    assert refused["message"] == f"{PREFIX}{why}"


def test_classes_are_checked_and_keep_their_handler(client: Client) -> None:
    refused = client.post(CLASSES, runtime_class(handler="../runc")).json
    assert refused["code"] == 422
    assert [cause["field"] for cause in refused["details"]["causes"]] == ["handler"]
    made = client.post(CLASSES, runtime_class()).json
    made["handler"] = "other"
    refused = client.put(f"{CLASSES}/kata", made).json
    assert refused["details"]["causes"][0]["field"] == "handler"


def test_classes_are_found_and_shown(client: Client) -> None:
    client.post(CLASSES, runtime_class())
    (found,) = client.get("/apis/node.k8s.io/v1").json["resources"]
    assert (found["name"], found["kind"], found["namespaced"]) == (
        "runtimeclasses",
        "RuntimeClass",
        False,
    )
    table = client.get(CLASSES, accept="application/json;as=Table;v=v1;g=meta.k8s.io").json
    assert [column["name"] for column in table["columnDefinitions"]] == ["Name", "Handler", "Age"]
    assert table["rows"][0]["cells"][:2] == ["kata", "kata"]
