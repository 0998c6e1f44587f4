"""--runtime-config selects the served versions; stored objects stay."""

from __future__ import annotations

from pathlib import Path

import pytest

from moorage.api.gates import Gates
from moorage.apiserver.errors import RuntimeConfigError
from moorage.apiserver.resources import Resources
from moorage.apiserver.runtime_config import RuntimeConfig, read_runtime_config
from tests.apiserver.client import CLASSES, Client, device_class

RESOURCE = "resource.k8s.io"


def served(
    text: str, *, preset: str = "moorage", group: str = RESOURCE, gates: str = ""
) -> set[str]:
    """Return the versions of a group that are served."""
    config, on = read_runtime_config(text), Gates.parse(gates, preset=preset)
    resources = Resources(serves=lambda kind: config.serves(kind, on))
    return set(resources.versions(group))


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
    ("text", "versions"),
    [
        ("", {"v1"}),
        ("api/beta=true", {"v1", "v1beta2", "v1beta1"}),
        ("api/all=true", {"v1", "v1beta2", "v1beta1", "v1alpha3"}),
        ("resource.k8s.io/v1alpha3=true", {"v1", "v1alpha3"}),
        ("resource.k8s.io/v1=false", set()),
    ],
)
def test_the_preset_of_kubernetes_serves_stable_versions_unless_told(
    text: str, versions: set[str]
) -> None:
    assert served(text, preset="kubernetes-1.37") == versions


def test_the_preset_of_kubernetes_serves_every_group_in_its_stable_version() -> None:
    kubernetes = Gates.parse(preset="kubernetes-1.37")
    found = {
        kind.api_version
        for resource in Resources(serves=lambda kind: RuntimeConfig().serves(kind, kubernetes))
        for kind in resource.kinds.values()
    }
    assert found == {
        "v1",
        "admissionregistration.k8s.io/v1",
        "apiextensions.k8s.io/v1",
        "apiregistration.k8s.io/v1",
        "apps/v1",
        "autoscaling/v1",
        "autoscaling/v2",
        "batch/v1",
        "certificates.k8s.io/v1",
        "coordination.k8s.io/v1",
        "discovery.k8s.io/v1",
        "events.k8s.io/v1",
        "flowcontrol.apiserver.k8s.io/v1",
        "networking.k8s.io/v1",
        "node.k8s.io/v1",
        "policy/v1",
        "rbac.authorization.k8s.io/v1",
        "resource.k8s.io/v1",
        "scheduling.k8s.io/v1",
        "storage.k8s.io/v1",
        "storagemigration.k8s.io/v1",
    }


@pytest.mark.parametrize(
    ("preset", "gates", "text", "versions"),
    [
        ("moorage", "", "", {"v1", "v1beta1", "v1alpha3", "v1alpha2"}),
        ("moorage", "GenericWorkload=false", "", {"v1"}),
        ("moorage", "GenericWorkload=false", "api/all=true", {"v1"}),
        (
            "moorage",
            "GenericWorkload=false",
            "scheduling.k8s.io/v1beta1/podgroups=true,scheduling.k8s.io/v1alpha3=true",
            {"v1"},
        ),
        ("kubernetes-1.37", "GenericWorkload=true", "", {"v1"}),
        (
            "kubernetes-1.37",
            "GenericWorkload=true",
            "scheduling.k8s.io/v1beta1=true",
            {"v1", "v1beta1"},
        ),
        ("kubernetes-1.37", "", "scheduling.k8s.io/v1beta1=true", {"v1"}),
    ],
)
def test_workloads_are_served_only_while_their_feature_is_on(
    preset: str, gates: str, text: str, versions: set[str]
) -> None:
    found = served(text, preset=preset, group="scheduling.k8s.io", gates=gates)
    assert found == versions


def test_a_feature_that_is_off_has_no_kinds(tmp_path: Path) -> None:
    everything = read_runtime_config("api/all=true")
    client = Client(tmp_path, runtime=everything, gates=Gates.parse("GenericWorkload=false"))
    for version in ("v1beta1", "v1alpha3", "v1alpha2"):
        for plural in ("podgroups", "workloads", "compositepodgroups"):
            path = f"/apis/scheduling.k8s.io/{version}/namespaces/default/{plural}"
            assert client.get(path).status == 404
            assert client.post(path, {"metadata": {"name": "a"}}).status == 404
        assert f"apis/scheduling.k8s.io/{version}" not in client.get("/openapi/v3").json["paths"]
    found = client.get("/apis/scheduling.k8s.io").json["versions"]
    assert [version["version"] for version in found] == ["v1"]
    definitions = client.get("/openapi/v2").json["definitions"]
    kinds = (".PodGroup", ".Workload", ".CompositePodGroup")
    assert not [name for name in definitions if name.endswith(kinds)]
    client.close()


def test_what_is_asked_for_in_vain_is_noted() -> None:
    config = read_runtime_config("scheduling.k8s.io/v1beta1=true,api/all=true")
    assert list(config.notes(Gates.parse("GenericWorkload=false"))) == [
        "podgroups.scheduling.k8s.io is not served because feature gate GenericWorkload is off",
        "workloads.scheduling.k8s.io is not served because feature gate GenericWorkload is off",
    ]
    assert list(config.notes(Gates.parse())) == []


def test_composite_groups_have_a_gate_of_their_own(tmp_path: Path) -> None:
    client = Client(tmp_path, gates=Gates.parse("CompositePodGroup=false"))
    resources = client.get("/apis/scheduling.k8s.io/v1alpha3").json["resources"]
    assert {each["name"] for each in resources} == {"podgroups", "podgroups/status", "workloads"}
    client.close()


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
