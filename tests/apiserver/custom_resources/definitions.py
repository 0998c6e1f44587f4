"""Definitions of custom resources for tests."""

from __future__ import annotations

from typing import Any

from tests.apiserver.client import Client

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
GROUP = "example.com"
WIDGETS = f"/apis/{GROUP}/v1/namespaces/default/widgets"

SPEC: dict[str, Any] = {
    "type": "object",
    "required": ["size"],
    "properties": {
        "size": {"type": "integer", "minimum": 1, "maximum": 10},
        "color": {"type": "string", "default": "red", "enum": ["red", "green"]},
        "tags": {
            "type": "array",
            "items": {"type": "string"},
            "x-kubernetes-list-type": "set",
        },
        "ports": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
            "items": {
                "type": "object",
                "required": ["name"],
                "properties": {"name": {"type": "string"}, "number": {"type": "integer"}},
            },
        },
    },
}


def schema(spec: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
    status = {"type": "object", "properties": {"size": {"type": "integer"}}}
    properties = {"spec": SPEC if spec is None else spec, "status": status}
    return {"type": "object", "properties": properties, **fields}


def version(name: str = "v1", *, storage: bool = True, **fields: Any) -> dict[str, Any]:
    return {
        "name": name,
        "served": True,
        "storage": storage,
        "schema": {"openAPIV3Schema": schema()},
        **fields,
    }


def definition(
    *versions: dict[str, Any],
    plural: str = "widgets",
    kind: str = "Widget",
    scope: str = "Namespaced",
    **spec: Any,
) -> dict[str, Any]:
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "names": {"plural": plural, "kind": kind},
            "scope": scope,
            "versions": list(versions) or [version()],
            **spec,
        },
    }


def widget(name: str = "w", *, api_version: str = "v1", **fields: Any) -> dict[str, Any]:
    return {
        "apiVersion": f"{GROUP}/{api_version}",
        "kind": "Widget",
        "metadata": {"name": name},
        "spec": {"size": 1},
        **fields,
    }


def condition(found: dict[str, Any], kind: str) -> str:
    """Return the status of a condition; empty if there is none."""
    conditions = found["status"].get("conditions") or []
    return next((str(each["status"]) for each in conditions if each["type"] == kind), "")


def define(client: Client, body: dict[str, Any]) -> dict[str, Any]:
    """Create a definition, and return it once it is established and served."""
    made = client.post(CRDS, body)
    assert made.status == 201, made.body
    return established(client, body)


def established(client: Client, body: dict[str, Any]) -> dict[str, Any]:
    """Return a definition once all its versions are served."""
    spec, name = body["spec"], body["metadata"]["name"]

    def found() -> dict[str, Any] | None:
        now: dict[str, Any] = client.get(f"{CRDS}/{name}").json
        served = [each["name"] for each in spec["versions"] if each["served"]]
        paths = [f"/apis/{GROUP}/{each}/{spec['names']['plural']}" for each in served]
        is_served = all(client.get(path).status != 404 for path in paths)
        return now if condition(now, "Established") == "True" and is_served else None

    return client.until(found)
