"""Policies, bindings and webhooks for tests, put into force on a server."""

from __future__ import annotations

from functools import partial
from typing import Any

from tests.apiserver.client import Client

GROUP = "/apis/admissionregistration.k8s.io/v1"
VERSION = "admissionregistration.k8s.io/v1"
PLURALS = {
    "ValidatingAdmissionPolicy": "validatingadmissionpolicies",
    "ValidatingAdmissionPolicyBinding": "validatingadmissionpolicybindings",
    "MutatingAdmissionPolicy": "mutatingadmissionpolicies",
    "MutatingAdmissionPolicyBinding": "mutatingadmissionpolicybindings",
    "ValidatingWebhookConfiguration": "validatingwebhookconfigurations",
    "MutatingWebhookConfiguration": "mutatingwebhookconfigurations",
}


def rule(*resources: str, operations: tuple[str, ...] = ("*",), **more: Any) -> dict[str, Any]:
    return {
        "apiGroups": ["*"],
        "apiVersions": ["*"],
        "operations": list(operations),
        "resources": list(resources or ("configmaps",)),
        **more,
    }


def policy(
    *expressions: str | dict[str, Any],
    name: str = "p",
    rules: list[Any] | None = None,
    match: dict[str, Any] | None = None,
    **spec: Any,
) -> dict[str, Any]:
    """Return a validating policy, whose validations are expressions or whole validations."""
    validations = [{"expression": e} if isinstance(e, str) else e for e in expressions]
    constraints = {"resourceRules": [rule()] if rules is None else rules, **(match or {})}
    body = {"matchConstraints": constraints, "validations": validations, **spec}
    return {
        "apiVersion": VERSION,
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": name},
        "spec": body,
    }


def binding(name: str = "b", *, of: str = "p", **spec: Any) -> dict[str, Any]:
    body = {"policyName": of, "validationActions": ["Deny"], **spec}
    return {
        "apiVersion": VERSION,
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": name},
        "spec": body,
    }


def mutating_policy(
    *mutations: dict[str, Any], name: str = "p", rules: list[Any] | None = None, **spec: Any
) -> dict[str, Any]:
    body = {
        "matchConstraints": {"resourceRules": rules or [rule(operations=("CREATE", "UPDATE"))]},
        "mutations": list(mutations),
        "reinvocationPolicy": "Never",
        **spec,
    }
    return {
        "apiVersion": VERSION,
        "kind": "MutatingAdmissionPolicy",
        "metadata": {"name": name},
        "spec": body,
    }


def mutating_binding(name: str = "b", *, of: str = "p", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": VERSION,
        "kind": "MutatingAdmissionPolicyBinding",
        "metadata": {"name": name},
        "spec": {"policyName": of, **spec},
    }


def applied(expression: str) -> dict[str, Any]:
    configuration = {"expression": expression}
    return {"patchType": "ApplyConfiguration", "applyConfiguration": configuration}


def patched(expression: str) -> dict[str, Any]:
    return {"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}


def enforce(client: Client, *objects: dict[str, Any]) -> None:
    """Create policies, bindings and webhooks, and wait until the server knows them."""
    for each in objects:
        answer = client.post(f"{GROUP}/{PLURALS[each['kind']]}", each)
        assert answer.status == 201, answer.body
        version = answer.json["metadata"]["resourceVersion"]
        client.until(partial(_knows, client, each, version))


def _knows(client: Client, wanted: dict[str, Any], version: str) -> bool:
    dynamic = client.service.dynamic
    assert dynamic is not None
    name = wanted["metadata"]["name"]
    return any(
        kind.__name__ == wanted["kind"]
        and name in objects
        and objects[name].metadata.resource_version == version
        for kind, objects in dynamic.source.objects.items()
    )
