"""A whole cluster within the process."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from moorage.api.codec import decode_tree
from moorage.api.core import Node, Pod
from moorage.api.gates import Gates
from moorage.api.resource.v1 import (
    DeviceClass,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceSlice,
)
from moorage.client.writes import Create, Delete, Patch, Target
from moorage.cluster.embedded import EmbeddedCluster, embedded
from moorage.cluster.programs import ProgramContext
from moorage.scheduler.features import Features
from tests.client.servers import until

DRIVER = "gpu.example.com"


async def create(cluster: EmbeddedCluster, struct: type[Any], name: str, **fields: Any) -> Any:
    namespaced = struct in (Pod, ResourceClaimTemplate)
    metadata = {"name": name, **({"namespace": "default"} if namespaced else {})}
    value = decode_tree({"metadata": metadata, **fields}, struct).value
    return await cluster.admin.write(Create(value))


async def furnish(cluster: EmbeddedCluster) -> None:
    """Make a node with one device, its class, and a template that asks for it."""
    node = await create(cluster, Node, "node-1")
    room = {"cpu": "8", "memory": "16Gi", "pods": "110"}
    status = {"allocatable": room, "capacity": room}
    await cluster.admin.write(Patch(Target.of(node), {"status": status}, "status"))
    selector = {"cel": {"expression": f'device.driver == "{DRIVER}"'}}
    await create(cluster, DeviceClass, "gpu", spec={"selectors": [selector]})
    pool = {"name": "node-1", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": DRIVER, "nodeName": "node-1", "pool": pool, "devices": [{"name": "gpu-0"}]}
    await create(cluster, ResourceSlice, "slice-1", spec=spec)
    requests = [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]
    await create(
        cluster,
        ResourceClaimTemplate,
        "one-gpu",
        spec={"spec": {"devices": {"requests": requests}}},
    )


async def pod(cluster: EmbeddedCluster, name: str) -> None:
    container = {"name": "c", "image": "i", "resources": {"claims": [{"name": "gpu"}]}}
    claims = [{"name": "gpu", "resourceClaimTemplateName": "one-gpu"}]
    spec = {
        "containers": [container],
        "resourceClaims": claims,
        "terminationGracePeriodSeconds": 0,
    }
    await create(cluster, Pod, name, spec=spec)


def test_a_pod_gets_its_device_by_itself_and_the_next_one_when_it_is_gone(tmp_path: Path) -> None:
    async def run() -> None:
        async with asyncio.timeout(60), embedded(tmp_path, ProgramContext()) as cluster:
            objects = cluster.controlling.informers.objects

            def node_of(name: str) -> str:
                found = objects.get(Pod, "default", name)
                return "" if found is None else found.spec.node_name

            await furnish(cluster)
            await pod(cluster, "first")
            await until(lambda: node_of("first"))
            await pod(cluster, "second")
            await until(lambda: objects.count(ResourceClaim) == 2)
            assert node_of("second") == ""
            await cluster.admin.write(Delete(Target(Pod, "default", "first")))
            await until(lambda: node_of("second") and objects.count(ResourceClaim) == 1)
            (claim,) = objects.list(ResourceClaim)
            assert claim.status.allocation is not None
            (result,) = claim.status.allocation.devices.results
            assert (result.driver, result.device) == (DRIVER, "gpu-0")

    asyncio.run(run())


def test_the_scheduler_has_the_features_that_the_gates_switch_on(tmp_path: Path) -> None:
    async def run() -> None:
        off = ("DRANodeAllocatableResources", "DRASchedulerFilterTimeout")
        gates = Gates.parse(",".join(f"{gate}=false" for gate in off))
        async with asyncio.timeout(60), embedded(tmp_path, ProgramContext(gates)) as cluster:
            features = cluster.scheduling.scheduler.cache.cluster.features
            assert features == Features.of(gates)
            assert not features.node_allocatable
            assert not cluster.scheduling.config.profiles[0].filter_timeout_s

    asyncio.run(run())


@pytest.mark.parametrize("gate", ["DRADeviceTaintRules", "GenericWorkload"])
def test_a_kind_that_the_scheduler_may_not_read_is_not_waited_for(
    gate: str, tmp_path: Path
) -> None:
    """Its role has rules and groups only where the feature is on."""

    async def run() -> None:
        gates = Gates.parse(f"{gate}=false")
        async with asyncio.timeout(60), embedded(tmp_path, ProgramContext(gates)) as cluster:
            objects = cluster.controlling.informers.objects
            await furnish(cluster)
            await pod(cluster, "first")
            await until(
                lambda: (found := objects.get(Pod, "default", "first")) and found.spec.node_name
            )

    asyncio.run(run())
