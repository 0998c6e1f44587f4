"""Policies decide about subresources whose bodies are not stored."""

from __future__ import annotations

from typing import Any

import pytest

from tests.apiserver.client import PODS, Client, pod
from tests.apiserver.policies import binding, enforce, policy, rule

DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
TOLD = "request.kind.kind + ' ' + request.subResource + ' ' + request.operation"

BINDING = {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n"}}
EVICTION = {"metadata": {"name": "p"}}
SCALE = {"metadata": {"name": "d"}, "spec": {"replicas": 3}}


@pytest.mark.parametrize(
    ("part", "method", "body", "told"),
    [
        ("pods/binding", "POST", BINDING, "Binding binding CREATE"),
        ("pods/eviction", "POST", EVICTION, "Eviction eviction CREATE"),
        ("deployments/scale", "PUT", SCALE, "Scale scale UPDATE"),
        ("pods/exec", "GET", None, "PodExecOptions exec CONNECT"),
        ("pods/attach", "GET", None, "PodAttachOptions attach CONNECT"),
    ],
)
def test_bodies_that_are_not_stored(
    client: Client, part: str, method: str, body: Any, told: str
) -> None:
    client.post(PODS, pod())
    template = {"metadata": {"labels": {"a": "b"}}, "spec": pod()["spec"]}
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    client.post(DEPLOYMENTS, {"metadata": {"name": "d"}, "spec": spec})
    plural, _, subresource = part.partition("/")
    url = f"{PODS}/p" if plural == "pods" else f"{DEPLOYMENTS}/d"
    denying = policy({"expression": "false", "messageExpression": TOLD}, rules=[rule(part)])
    enforce(client, denying, binding())
    answer = client.ask(method, f"{url}/{subresource}", body)
    assert answer.message.endswith(f"denied request: {told}")
