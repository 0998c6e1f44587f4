"""Discovery of a real server, as far as we serve the same."""

from __future__ import annotations

import json
from typing import Any

import pytest

from moorage.apiserver.discovery import Discovery, version_document
from tests.apiserver.everything import everything
from tests.corpus import corpus

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

DISCOVERY = Discovery(everything(extensions=False))
SERVED_NAMES = {(r.group, r.plural) for r in everything()} | {
    ("authentication.k8s.io", "selfsubjectreviews"),
    ("authentication.k8s.io", "tokenreviews"),
    ("authorization.k8s.io", "localsubjectaccessreviews"),
    ("authorization.k8s.io", "selfsubjectaccessreviews"),
    ("authorization.k8s.io", "selfsubjectrulesreviews"),
    ("authorization.k8s.io", "subjectaccessreviews"),
}
# Parts of objects that need a node or a controller behind them.
NOT_SERVED = {
    "attach",
    "ephemeralcontainers",
    "exec",
    "log",
    "portforward",
    "proxy",
    "resize",
    "scale",
}


def _live(name: str) -> Any:
    return json.loads(corpus("http", "live", name).read_text())


def _mine(path: str, accept: str = "application/json") -> Any:
    document = DISCOVERY.find(path, accept, address="127.0.0.1:16443")
    assert document is not None
    return json.loads(document.body)


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("api-v1.json", "/api/v1"),
        ("apis-resource.k8s.io-v1.json", "/apis/resource.k8s.io/v1"),
        ("apis-resource.k8s.io-v1beta2.json", "/apis/resource.k8s.io/v1beta2"),
        ("apis-resource.k8s.io-v1beta1.json", "/apis/resource.k8s.io/v1beta1"),
        ("apis-resource.k8s.io-v1alpha3.json", "/apis/resource.k8s.io/v1alpha3"),
        ("apis-scheduling.k8s.io-v1.json", "/apis/scheduling.k8s.io/v1"),
        ("apis-scheduling.k8s.io-v1beta1.json", "/apis/scheduling.k8s.io/v1beta1"),
        ("apis-scheduling.k8s.io-v1alpha3.json", "/apis/scheduling.k8s.io/v1alpha3"),
    ],
)
def test_lists_of_resources(name: str, path: str) -> None:
    wanted, mine = _live(name), _mine(path)
    group = wanted["groupVersion"].rpartition("/")[0]
    wanted["resources"] = [r for r in wanted["resources"] if _is_served(group, r["name"])]
    assert _without_hashes(wanted) == _without_hashes(mine)
    assert list(wanted) == list(mine)


def _without_hashes(tree: dict[str, Any]) -> dict[str, Any]:
    """Return a list with the hashes emptied: we store in versions of our own choice."""
    resources = [
        {**r, "storageVersionHash": ""} if "storageVersionHash" in r else r
        for r in tree["resources"]
    ]
    return {**tree, "resources": resources}


def _is_served(group: str, name: str) -> bool:
    plural, _, part = name.partition("/")
    return (group, plural) in SERVED_NAMES and part not in NOT_SERVED


def test_group() -> None:
    assert _mine("/apis/resource.k8s.io") == _live("apis-resource.k8s.io.json")


def test_groups() -> None:
    wanted, mine = _live("apis.legacy.json"), _mine("/apis")
    groups = {group for group, _ in SERVED_NAMES}
    wanted["groups"] = [group for group in wanted["groups"] if group["name"] in groups]
    assert mine == wanted


def test_core_versions() -> None:
    assert _mine("/api") == _live("api.legacy.json")


@pytest.mark.parametrize("path", ["api", "apis"])
def test_aggregated(path: str) -> None:
    wanted, mine = _live(f"{path}.aggregated.json"), _mine(f"/{path}", AGGREGATED)
    groups = {group for group, _ in SERVED_NAMES}
    wanted["items"] = [i for i in wanted["items"] if i["metadata"].get("name", "") in groups]
    for item in wanted["items"]:
        group = item["metadata"].get("name", "")
        for version in item["versions"]:
            version["resources"] = [
                _without_unserved(r)
                for r in version["resources"]
                if (group, r["resource"]) in SERVED_NAMES
            ]
    assert mine == wanted


def _without_unserved(resource: dict[str, Any]) -> dict[str, Any]:
    parts = [p for p in resource.pop("subresources", []) if p["subresource"] not in NOT_SERVED]
    return {**resource, "subresources": parts} if parts else resource


def test_version_has_the_fields_of_kubernetes() -> None:
    document = version_document(python_version="3.11", platform="linux/amd64")
    mine, wanted = json.loads(document.body), _live("version.json")
    assert list(mine) == list(wanted)
    for field in ("major", "minor", "emulationMinor", "minCompatibilityMinor"):
        assert mine[field] == wanted[field]
    assert mine["gitVersion"].startswith("v1.37.")
