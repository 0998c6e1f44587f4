"""pods/log, pods/exec and pods/attach: answers before any node is contacted."""

from __future__ import annotations

from typing import Any

import pytest

from tests.apiserver.client import PODS, Client, pod

NODES = "/api/v1/nodes"
UPGRADE = {"connection": "Upgrade", "upgrade": "websocket"}


def node(name: str, *addresses: tuple[str, str], **annotations: str) -> dict[str, Any]:
    listed = [{"type": kind, "address": address} for kind, address in addresses]
    metadata = {"name": name, "annotations": annotations}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata,
            "status": {"addresses": listed}}  # fmt: skip


@pytest.fixture
def placed(client: Client) -> Client:
    """Have pods with one container, with two, without a node, and on nodes of all sorts."""
    client.post(NODES, node("n", ("Hostname", "other"), ("InternalIP", "127.0.0.1")))
    client.post(NODES, node("nowhere"))
    client.post(NODES, node("play", **{"moorage.dev/simulated": "true"}))
    client.post(PODS, pod("free"))
    for name, where in (("one", "n"), ("two", "n"), ("far", "nowhere"), ("lost", "gone"),
                        ("played", "play")):  # fmt: skip
        made = pod(name, node=where)
        if name == "two":
            made["spec"]["containers"].append({"name": "d", "image": "i"})
            made["spec"]["initContainers"] = [{"name": "first", "image": "i"}]
        assert client.post(PODS, made).status == 201
    return client


INVALID = 'PodLogOptions "one" is invalid: '
WITHOUT = "nodes are known by certificates, and this server runs without any"
CHOOSE = "a container name must be specified for pod two, choose one of: [first c d]"
PLAYED = (
    'node "play" is simulated: nothing runs on it, so pod "played" says nothing and takes no '
    "commands"
)


@pytest.mark.parametrize(
    ("path", "code", "text"),
    [
        ("one/log?container=x", 400, "container x is not valid for pod one"),
        ("two/log", 400, CHOOSE),
        ("none/log", 404, 'pods "none" not found'),
        ("lost/log", 404, 'nodes "gone" not found'),
        ("far/log", 500, "no preferred addresses found; known addresses: []"),
        ("played/log", 400, PLAYED),
        ("one/log?tailLines=x", 400, 'strconv.ParseInt: parsing "x": invalid syntax'),
        ("one/log", 500, f'Get "https://127.0.0.1:10250/containerLogs/default/one/c": {WITHOUT}'),
        ("one/exec?command=sh", 400, "Upgrade request required"),
        ("free/exec?command=sh", 400, "pod free does not have a host assigned"),
        ("two/attach", 400, CHOOSE),
    ],
)
def test_what_is_answered_without_a_node(placed: Client, path: str, code: int, text: str) -> None:
    answer = placed.get(f"{PODS}/{path}")
    assert (answer.status, answer.message) == (code, text)


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("tailLines=-1", "tailLines: Invalid value: -1: must be greater than or equal to 0"),
        ("limitBytes=0", "limitBytes: Invalid value: 0: must be greater than 0"),
        ("sinceSeconds=0", "sinceSeconds: Invalid value: 0: must be greater than 0"),
        ("stream=x", 'stream: Unsupported value: "x": supported values: "All", "Stderr", "Stdout"'),
    ],
)
def test_options_of_logs_have_bounds(placed: Client, query: str, text: str) -> None:
    answer = placed.get(f"{PODS}/one/log?{query}")
    assert (answer.status, answer.message) == (422, INVALID + text)


def test_both_times_at_once_are_too_many(placed: Client) -> None:
    query = "sinceSeconds=5&sinceTime=2026-01-01T00:00:00Z"
    answer = placed.get(f"{PODS}/one/log?{query}")
    assert answer.status == 422
    assert "at most one of `sinceTime` or `sinceSeconds` may be specified" in answer.message


def test_a_pod_without_a_node_has_said_nothing(placed: Client) -> None:
    answer = placed.get(f"{PODS}/free/log")
    assert (answer.status, answer.body) == (204, b"")


def test_without_certificates_no_node_is_reached(placed: Client) -> None:
    answer = placed.post(f"{PODS}/one/exec?command=sh&stdout=1", None, **UPGRADE)
    assert answer.status == 500
    assert answer.message.startswith("error dialing backend: nodes are known by certificates")


@pytest.mark.parametrize(
    ("method", "part"), [("POST", "log"), ("DELETE", "log"), ("PUT", "exec"), ("PATCH", "attach")]
)
def test_methods_that_mean_nothing_there(placed: Client, method: str, part: str) -> None:
    assert placed.ask(method, f"{PODS}/one/{part}").status == 405


def test_logs_are_for_clients_that_read_text(placed: Client) -> None:
    assert placed.get(f"{PODS}/free/log", accept="text/plain").status == 204
