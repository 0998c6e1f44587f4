"""OpenAPI of a real server, as far as we serve the same: everything except descriptions."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pytest

from moorage.apiserver.openapi import openapi_document
from tests.apiserver.everything import everything
from tests.corpus import corpus

RESOURCES = everything(extensions=False)

DOCUMENTS = [
    ("api_v1", "", "v1"),
    ("apis_resource.k8s.io_v1", "resource.k8s.io", "v1"),
    ("apis_resource.k8s.io_v1beta2", "resource.k8s.io", "v1beta2"),
    ("apis_resource.k8s.io_v1beta1", "resource.k8s.io", "v1beta1"),
    ("apis_resource.k8s.io_v1alpha3", "resource.k8s.io", "v1alpha3"),
    ("apis_scheduling.k8s.io_v1beta1", "scheduling.k8s.io", "v1beta1"),
]

# Extensions of ours.
OURS = {
    "DeviceTaintSelector": {"deviceClassName", "selectors"},
}
UNSUPPORTED_PARAMETERS = {"shardSelector", "ignoreStoreReadErrorWithClusterBreakingPotential"}
# What these are is told by other groups, or in more detail than clients need.
UNTOLD = {"DeleteOptions", "ListMeta", "Status", "StatusCause", "StatusDetails", "RawExtension"}
UNTOLD_KEYS = {"x-kubernetes-unions"}
UNTOLD_CHOICES = {"SIGABRT", "BlockDevice"}  # signals, and what a path of the host may be


def _documents(name: str, group: str, version: str) -> tuple[Any, Any]:
    mine = json.loads(openapi_document(group, version, RESOURCES))
    return mine, json.loads(corpus("http", "live", f"openapi-v3-{name}.json").read_text())


@pytest.mark.parametrize(("name", "group", "version"), DOCUMENTS)
def test_schemas(name: str, group: str, version: str) -> None:
    mine, live = (
        document["components"]["schemas"] for document in _documents(name, group, version)
    )
    compared = 0
    for component, schema in mine.items():
        struct = component.rpartition(".")[2]
        if component not in live:
            assert struct in ("CELDeviceSelector", "DeviceSelector")  # of the extensions
        elif struct not in UNTOLD:
            wanted, found = _bare(live[component]), _bare(schema)
            for field in OURS.get(struct, ()):
                del found["properties"][field]
            assert found == wanted, component
            compared += 1
    assert compared > 20


def _bare(tree: Any) -> Any:
    """Return a schema without words and defaults; a reference alone stands for itself."""
    if isinstance(tree, list):
        return sorted((_bare(item) for item in tree), key=str)
    if not isinstance(tree, dict):
        return tree
    kept = {
        key: _bare(value)
        for key, value in tree.items()
        if not (key == "description" and isinstance(value, str))
        and not (key == "default" and not isinstance(value, dict))
        and not (key == "default" and "type" not in value)
        and not (key == "enum" and UNTOLD_CHOICES & set(value))
        and key not in UNTOLD_KEYS
    }
    return kept["allOf"][0] if set(kept) == {"allOf"} else kept


@pytest.mark.parametrize(("name", "group", "version"), DOCUMENTS)
def test_paths(name: str, group: str, version: str) -> None:
    mine, live = (document["paths"] for document in _documents(name, group, version))
    assert mine
    for path, operations in mine.items():
        wanted = live[path]
        shared = _names(operations.pop("parameters")), _names(wanted.pop("parameters"))
        assert operations.keys() == wanted.keys(), path
        for method, operation in operations.items():
            _assert_same_operation(operation, wanted[method], f"{method} {path}", *shared)


def _names(parameters: Iterable[Any]) -> set[str]:
    return {parameter["name"] for parameter in parameters}


def _assert_same_operation(
    mine: Any, live: Any, place: str, shared: set[str], live_shared: set[str]
) -> None:
    for key in ("operationId", "x-kubernetes-action", "x-kubernetes-group-version-kind"):
        assert mine[key] == live[key], place
    wanted = (_names(live.get("parameters", ())) | live_shared) - UNSUPPORTED_PARAMETERS
    assert _names(mine["parameters"]) | shared == wanted, place
    assert ("requestBody" in mine) == ("requestBody" in live), place


def test_every_served_path_of_kubernetes_is_told_of() -> None:
    mine, live = _documents("apis_resource.k8s.io_v1", "resource.k8s.io", "v1")
    wanted = {p for p in live["paths"] if "/watch/" not in p and not p.endswith("/v1/")}
    assert mine["paths"].keys() == wanted
