"""KEP-5004 live: what a Deployment gets, quotas, and the seven scenarios of upgrade and downgrade.

The scenarios are played with the explicit and with the implicit name of the class, on one folder of
data: a cluster is stopped and starts again with other gates or as another version.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from moorage.api.core import Node, Pod, ResourceQuota
from moorage.api.gates import Gates
from moorage.api.resource.v1 import DeviceClass, ResourceClaim
from moorage.client.writes import Patch, Target
from tests.client.servers import until
from tests.stories.stage import Stage, given_by, placed, play, reserved, trees_of
from tests.stories.tellers import SEEDS, STORIES

FOLDER = STORIES / "extended-resource"
DRA_NODE = "gke-drabeta-n1-standard-4-2xt4-346fe653-zrw2"
PLUGIN_NODE = "gke-drabeta-n1-standard-4-2xt4-346fe653-xyz8"
RESOURCE = "example.com/gpu"
IMPLICIT = "deviceclass.resource.kubernetes.io/gpu.example.com"
NAMES = pytest.mark.parametrize("resource", [RESOURCE, IMPLICIT], ids=["explicit", "implicit"])

ON = Gates.parse()
OFF = Gates.parse("DRAExtendedResource=false", emulated_version="1.36")  # 1.37 has it locked
BEFORE = Gates.parse(emulated_version="1.36")  # version n-1, with the feature on


def seed(start: str) -> Path:
    (path,) = SEEDS.glob(f"{start}-*.yaml")
    return path


async def furnish(stage: Stage, resource: str = RESOURCE, *, plugin: bool = False) -> None:
    """Make the class, the slice and the node of the seed, and that with the device plugin."""
    (device_class,) = trees_of(seed("004-34"))
    if resource == IMPLICIT:
        del device_class["spec"]["extendedResourceName"]
    more = ("004-35", "004-36", *(("004-37",) if plugin else ()))
    await stage.furnish([device_class, *(tree for each in more for tree in trees_of(seed(each)))])


def pod_tree(name: str, resource: str, amount: int = 1) -> dict[str, Any]:
    resources = {"limits": {resource: amount}}
    container = {"name": "main", "image": "registry.example.com/app", "resources": resources}
    spec = {"containers": [container]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


async def create(stage: Stage, name: str, resource: str, amount: int = 1) -> Pod:
    """Make a pod that asks for the resource, and return it once it is decided on."""
    await stage.play(placed(pod_tree(name, resource, amount), "default"))
    return await stage.pod_that_comes(name)


def devices(stage: Stage, pod: Pod) -> list[str]:
    return [each.device for each in stage.given(pod)]


def mapped(pod: Pod) -> list[tuple[str, str, str]]:
    status = pod.status.extended_resource_claim_status
    mappings = status.request_mappings if status is not None else ()
    return [(each.container_name, each.resource_name, each.request_name) for each in mappings]


# --- the story ----------------------------------------------------------------------------------


def test_the_deployments_pod_owns_the_claim_and_its_status_says_so(tmp_path: Path) -> None:
    async def act(stage: Stage) -> None:
        await furnish(stage)
        await stage.apply(seed("004-33"))
        (pod,) = stage.pods_of("demo-")
        (claim,) = stage.claims_of(pod)
        assert claim.metadata.name.startswith(f"{pod.metadata.name}-extended-resources-")
        assert claim.metadata.annotations == {
            "resource.kubernetes.io/extended-resource-claim": "true"
        }
        assert [each.uid for each in claim.metadata.owner_references] == [pod.metadata.uid]
        assert claim.metadata.finalizers == ("resource.kubernetes.io/delete-protection",)
        assert reserved(claim) == [("pods", pod.metadata.name)]
        assert mapped(pod) == [("demo", RESOURCE, "container-0-request-0")]
        await stage.events("Scheduled")

    play(tmp_path, act)


def test_when_the_pod_goes_the_next_one_gets_its_devices(tmp_path: Path) -> None:
    async def act(stage: Stage) -> None:
        await furnish(stage)
        await create(stage, "all", RESOURCE, 8)
        late = await create(stage, "late", RESOURCE)
        assert not late.spec.node_name
        assert "cannot allocate all claims" in stage.message("late")
        await stage.delete(Pod, "all")
        late = await stage.bound("late")
        assert devices(stage, late) == ["gpu-0"]
        await until(lambda: stage.objects.count(ResourceClaim) == 1)

    play(tmp_path, act)


@pytest.mark.parametrize("quota", ["004-39-quota-before", "004-41-quota-after"])
def test_usage_of_the_quota_comes_out_as_5_4_4(quota: str, tmp_path: Path) -> None:
    async def act(stage: Stage) -> None:
        given = (seed("004-40"), seed(quota[:6]), STORIES / "quota" / "cluster.yaml")
        await stage.furnish(tree for path in given for tree in trees_of(path))
        await stage.apply(STORIES / "quota" / "pods.yaml")

        def used() -> dict[str, str]:
            found = stage.objects.get(ResourceQuota, "default", "gpu")
            status = found.status.used if found is not None else {}
            return {str(key): str(value) for key, value in (status or {}).items()}

        wanted = {
            "requests.example.com/gpu": "5",
            "requests.deviceclass.resource.kubernetes.io/mygpuclass": "4",
            "mygpuclass.deviceclass.resource.k8s.io/devices": "4",
        }
        await until(lambda: used() == wanted)

    play(tmp_path, act)


# --- 1 to 7 -------------------------------------------------------------------------------------


@NAMES
def test_1_basic_enablement(resource: str, tmp_path: Path) -> None:
    async def act(stage: Stage) -> None:
        await furnish(stage, resource)
        pod = await create(stage, "user", resource)
        assert (pod.spec.node_name, devices(stage, pod)) == (DRA_NODE, ["gpu-0"])
        assert mapped(pod) == [("main", resource, "container-0-request-0")]

    play(tmp_path, act)


@NAMES
def test_2_from_off_to_on(resource: str, tmp_path: Path) -> None:
    async def before(stage: Stage) -> str:
        await furnish(stage, resource, plugin=True)
        plugged = await create(stage, "plugged", RESOURCE)
        assert (plugged.spec.node_name, mapped(plugged)) == (PLUGIN_NODE, [])
        return plugged.metadata.uid

    async def after(stage: Stage) -> None:
        plugged = await stage.pod_that_comes("plugged")
        assert plugged.metadata.uid == uid
        assert not mapped(plugged)
        await stage.delete(DeviceClass, "gpu.example.com")
        await furnish(stage, resource)  # the class was stored without the name of its resource
        pod = await create(stage, "user", resource, 2)
        assert (pod.spec.node_name, devices(stage, pod)) == (DRA_NODE, ["gpu-0", "gpu-1"])

    uid = play(tmp_path, before, gates=OFF)
    play(tmp_path, after, gates=ON)


@NAMES
def test_3_versions_up_and_down_with_the_feature_on(resource: str, tmp_path: Path) -> None:
    async def old(stage: Stage) -> None:
        await furnish(stage, resource)
        first = await create(stage, "first", resource)
        assert devices(stage, first) == ["gpu-0"]

    async def new(stage: Stage) -> None:
        second = await create(stage, "second", resource)
        assert devices(stage, second) == ["gpu-1"]
        assert devices(stage, await stage.pod_that_comes("first")) == ["gpu-0"]

    async def old_again(stage: Stage) -> None:
        assert devices(stage, await stage.pod_that_comes("second")) == ["gpu-1"]
        assert mapped(await stage.pod_that_comes("second"))
        await stage.delete(Pod, "second")
        await until(lambda: stage.objects.count(ResourceClaim) == 1)
        third = await create(stage, "third", resource)
        assert devices(stage, third) == ["gpu-1"]

    play(tmp_path, old, gates=BEFORE)
    play(tmp_path, new, gates=ON)
    play(tmp_path, old_again, gates=BEFORE)


@NAMES
def test_4_fields_persist_through_versions(resource: str, tmp_path: Path) -> None:
    async def old(stage: Stage) -> None:
        await furnish(stage, resource)
        await create(stage, "user", resource)

    async def fields(stage: Stage) -> tuple[Any, Any]:
        found = await stage.cluster.admin.get(DeviceClass, "", "gpu.example.com")
        pod = await stage.pod_that_comes("user")
        assert found is not None
        return found.spec.extended_resource_name, pod.status.extended_resource_claim_status

    play(tmp_path, old, gates=BEFORE)
    told = [play(tmp_path, fields, gates=gates) for gates in (BEFORE, ON, BEFORE, OFF)]
    assert told[0][0] == (None if resource == IMPLICIT else RESOURCE)
    assert told[0][1] is not None
    assert told == [told[0]] * 4


@NAMES
def test_5_from_on_to_off(resource: str, tmp_path: Path) -> None:
    async def on(stage: Stage) -> None:
        await furnish(stage, resource, plugin=True)
        await create(stage, "user", resource, 8)

    async def off(stage: Stage) -> None:
        user = await stage.pod_that_comes("user")
        assert (user.spec.node_name, len(devices(stage, user))) == (DRA_NODE, 8)
        pods = [await create(stage, f"new-{number}", resource) for number in range(3)]
        nodes = [pod.spec.node_name for pod in pods]
        expected = [PLUGIN_NODE, PLUGIN_NODE, ""] if resource == RESOURCE else ["", "", ""]
        assert nodes == expected
        assert f"Insufficient {resource}" in stage.message("new-2")
        assert stage.objects.count(ResourceClaim) == 1
        kept = await stage.cluster.admin.get(DeviceClass, "", "gpu.example.com")
        assert kept is not None
        assert kept.spec.extended_resource_name == (None if resource == IMPLICIT else RESOURCE)

    play(tmp_path, on, gates=ON)
    play(tmp_path, off, gates=OFF)


@NAMES
def test_6_on_off_on(resource: str, tmp_path: Path) -> None:
    async def on(stage: Stage) -> None:
        await furnish(stage, resource)
        await create(stage, "user", resource, 8)

    async def off(stage: Stage) -> None:
        await stage.delete(Pod, "user")
        await until(lambda: stage.objects.count(ResourceClaim) == 0)

    async def on_again(stage: Stage) -> None:
        user = await create(stage, "again", resource, 8)
        assert len(devices(stage, user)) == 8

    play(tmp_path, on, gates=ON)
    play(tmp_path, off, gates=OFF)
    play(tmp_path, on_again, gates=ON)


@NAMES
def test_7_a_node_goes_from_the_device_plugin_to_dra(resource: str, tmp_path: Path) -> None:
    async def act(stage: Stage) -> None:
        await furnish(stage, resource, plugin=True)
        for number in range(10 if resource == RESOURCE else 8):
            assert (await create(stage, f"pod-{number}", resource)).spec.node_name
        waiting = await create(stage, "waiting", resource)
        assert not waiting.spec.node_name
        nothing = {"capacity": {RESOURCE: "0"}, "allocatable": {RESOURCE: "0"}}
        node = Target(Node, "", PLUGIN_NODE)
        for pod in list(stage.pods_of("pod-")):
            if pod.spec.node_name == PLUGIN_NODE:
                await stage.delete(Pod, pod.metadata.name)
        await stage.cluster.admin.write(Patch(node, {"status": nothing}, "status"))
        (tree,) = trees_of(seed("004-35"))
        tree["metadata"]["name"] = "migrated"
        tree["spec"]["nodeName"] = PLUGIN_NODE
        await stage.furnish([tree])
        waiting = await stage.bound("waiting")
        assert waiting.spec.node_name == PLUGIN_NODE or resource == RESOURCE
        late = [await create(stage, f"late-{number}", resource) for number in range(7)]
        assert all(pod.spec.node_name for pod in late)
        served = [pod for pod in (waiting, *late) if pod.spec.node_name == PLUGIN_NODE]
        assert served
        assert {each.pool for pod in served for each in stage.given(pod)} <= {PLUGIN_NODE}

    play(tmp_path, act)


def test_every_device_has_one_owner(tmp_path: Path) -> None:
    async def act(stage: Stage) -> None:
        await furnish(stage)
        await stage.apply(FOLDER / "many.yaml")
        given = [
            each.device for claim in stage.objects.list(ResourceClaim) for each in given_by(claim)
        ]
        assert sorted(given) == [f"gpu-{number}" for number in range(8)]

    play(tmp_path, act)
