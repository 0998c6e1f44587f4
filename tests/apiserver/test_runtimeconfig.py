"""--runtime-config says which versions are served; what is stored stays."""

from __future__ import annotations

from pathlib import Path

import pytest

from mooring.apiserver.runtimeconfig import (
    RuntimeConfig,
    RuntimeConfigError,
    read_runtime_config,
)
from tests.apiserver.client import CLASSES, Client, device_class

RESOURCE = "resource.k8s.io"


def served(text: str) -> set[str]:
    """Return the versions of resource.k8s.io that are served, by a client's discovery."""
    config = read_runtime_config(text)
    from mooring.apiserver.resources import Resources

    return set(Resources(serves=config.serves).versions(RESOURCE))


@pytest.mark.parametrize(
    ("text", "versions"),
    [
        ("", {"v1", "v1beta2", "v1beta1", "v1alpha3"}),
        ("api/alpha=false", {"v1", "v1beta2", "v1beta1"}),
        ("api/beta=false,api/alpha=false", {"v1"}),
        ("api/all=false", set()),
        ("api/all=false,api/ga=true", {"v1"}),
        ("resource.k8s.io/v1beta1=true,api/all=false", {"v1beta1"}),
        ("api/beta=false, resource.k8s.io/v1beta2", {"v1", "v1beta2", "v1alpha3"}),
    ],
)
def test_the_finer_says_more_than_the_coarser(text: str, versions: set[str]) -> None:
    assert served(text) == versions


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("api/all=maybe", "api/all: 'maybe' is neither true nor false"),
        ("example.com/v1=true", "example.com/v1: unknown api group"),
        ("resource.k8s.io/v9=true", "there are resource.k8s.io/v1, resource.k8s.io/v1alpha3"),
        ("resource.k8s.io/v1/pods=false", "no such version or resource"),
    ],
)
def test_what_there_is_not_is_refused(text: str, fault: str) -> None:
    with pytest.raises(RuntimeConfigError) as refused:
        read_runtime_config(text)
    assert fault in str(refused.value)


def with_config(folder: Path, text: str) -> Client:
    return Client(folder, runtime=read_runtime_config(text))


def test_what_is_not_served_is_found_nowhere_and_kept(tmp_path: Path) -> None:
    client = Client(tmp_path)
    client.post(CLASSES, device_class())
    client.close()
    client = with_config(tmp_path, "resource.k8s.io/v1=false")
    assert client.get(CLASSES).status == 404
    groups = {group["name"]: group for group in client.get("/apis").json["groups"]}
    versions = [version["version"] for version in groups[RESOURCE]["versions"]]
    assert versions == ["v1beta2", "v1beta1", "v1alpha3"]
    assert client.get("/apis/resource.k8s.io/v1").status == 404
    assert "/apis/resource.k8s.io/v1" not in client.get("/").json["paths"]
    paths = client.get("/openapi/v3").json["paths"]
    assert "apis/resource.k8s.io/v1beta2" in paths
    assert "apis/resource.k8s.io/v1" not in paths
    older = client.get("/apis/resource.k8s.io/v1beta2/deviceclasses")
    assert [item["metadata"]["name"] for item in older.json["items"]] == ["gpu"]
    client.close()
    client = Client(tmp_path)
    assert client.get(f"{CLASSES}/gpu").status == 200
    client.close()


def test_one_resource_and_one_review_can_be_switched_off(tmp_path: Path) -> None:
    off = "resource.k8s.io/v1/deviceclasses=false,authorization.k8s.io/v1=false"
    client = with_config(tmp_path, off)
    assert client.get(CLASSES).status == 404
    assert client.get("/apis/resource.k8s.io/v1/resourceslices").status == 200
    assert client.post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", {}).status == 404
    client.close()


def test_a_namespace_that_goes_takes_what_is_not_served_with_it(tmp_path: Path) -> None:
    client = Client(tmp_path)
    client.post("/api/v1/namespaces", {"metadata": {"name": "team"}})
    claim = {
        "metadata": {"name": "one"},
        "spec": {"devices": {"requests": [{"name": "a", "exactly": {"deviceClassName": "gpu"}}]}},
    }
    path = "/apis/resource.k8s.io/v1/namespaces/team/resourceclaims"
    assert client.post(path, claim).status == 201
    client.close()
    client = with_config(tmp_path, "resource.k8s.io/v1=false,api/beta=false")
    client.delete("/api/v1/namespaces/team")
    client.until(lambda: client.get("/api/v1/namespaces/team").status == 404)
    client.close()
    client = Client(tmp_path)
    assert client.get("/apis/resource.k8s.io/v1/resourceclaims").json["items"] == []
    client.close()


def test_everything_is_served_by_itself() -> None:
    assert read_runtime_config("") == RuntimeConfig()
