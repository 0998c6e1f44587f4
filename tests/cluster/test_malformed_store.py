"""A cluster whose store has objects that no server accepts serves, schedules and runs the others.

They are there from the start, as after an upgrade: server, scheduler and controllers read them all.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import pytest

from moorage.api.apps import DaemonSet, Deployment
from moorage.api.batch import Job
from moorage.api.catalogue import SERVED
from moorage.api.codec import decode_tree
from moorage.api.core import Namespace, Node, Pod, ResourceQuota
from moorage.api.meta import ObjectMeta
from moorage.api.resource.v1 import (
    DeviceClass,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceSlice,
)
from moorage.client.contract import Request
from moorage.client.errors import NotFoundError
from moorage.client.writes import Create, Delete, Target
from moorage.cluster.embedded import EmbeddedCluster, embedded
from moorage.cluster.programs import ProgramContext
from moorage.kit.bulkhead import Fault
from moorage.store.contract import Store
from moorage.store.memory import open_memory
from soak._malformed import SAMPLES, malformed

NUMBER = 12
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
FORMS = ("application/json", TABLE, "application/yaml", "application/vnd.kubernetes.protobuf")
# A rule whose selector is lost taints all devices, as it says: that is no fault.
MEANT = ("DeviceTaintRule",)
HUBS = [kind for kind in SERVED if kind.hub_version == kind.api_version]
KINDS = {kind.name: kind for kind in HUBS if kind.name in SAMPLES and kind.name not in MEANT}
SOON_S = 20


async def damage(store: Store, server: Any, seed: int) -> None:
    """Write malformed objects of all kinds straight into the store."""
    random = Random(seed)
    for name, kind in KINDS.items():
        resource = server.resources.of(kind.group, kind.plural)
        for index in range(NUMBER):
            own = {"name": f"bad-{index}", "uid": f"uid-{name}-{index}"}
            if kind.namespaced:
                own["namespace"] = "bad"
            sample = {**SAMPLES[name], "apiVersion": kind.hub_version}
            tree = malformed(random, {**sample, "metadata": {**own, **sample.get("metadata", {})}})
            key = resource.key(own.get("namespace", ""), own["name"])
            await store.create(key, json.dumps(tree, separators=(",", ":")).encode())


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(SOON_S):
        while not await condition():
            await asyncio.sleep(0.01)


def workloads(name: str) -> dict[str, tuple[Any, int]]:
    """Return workloads of a user by label, each with the number of its pods."""

    def template(app: str) -> dict[str, Any]:
        spec = {
            "containers": [{"name": "c", "image": "i"}],
            "nodeSelector": {"good": "yes"},
            "restartPolicy": "Never" if app.endswith("job") else "Always",
            "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "gpu"}],
        }
        return {"metadata": {"labels": {"app": app}}, "spec": spec}

    def made(struct: type[Any], app: str, **spec: Any) -> Any:
        selector = {} if struct is Job else {"selector": {"matchLabels": {"app": app}}}
        metadata = {"name": app, "namespace": "good"}
        whole = {**selector, "template": template(app), **spec}
        return decode_tree({"metadata": metadata, "spec": whole}, struct).value

    deployment, daemons, job = f"{name}-deployment", f"{name}-daemons", f"{name}-job"
    return {
        deployment: (made(Deployment, deployment, replicas=2), 2),
        daemons: (made(DaemonSet, daemons), 1),
        job: (made(Job, job, parallelism=2, completions=2), 2),
    }


def quota() -> ResourceQuota:
    metadata = {"name": "quota", "namespace": "good"}
    tree = {"metadata": metadata, "spec": {"hard": {"pods": "50"}}}
    return decode_tree(tree, ResourceQuota).value


def claim_template() -> ResourceClaimTemplate:
    requests = [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]
    metadata = {"name": "gpu", "namespace": "good"}
    tree = {"metadata": metadata, "spec": {"spec": {"devices": {"requests": requests}}}}
    return decode_tree(tree, ResourceClaimTemplate).value


def devices() -> list[Any]:
    spec = {
        "driver": "gpu.example.com",
        "nodeName": "good",
        "pool": {"name": "good", "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": f"gpu-{index}"} for index in range(16)],
    }
    slice_ = decode_tree({"metadata": {"name": "good"}, "spec": spec}, ResourceSlice).value
    return [slice_, DeviceClass(metadata=ObjectMeta(name="gpu"))]


def node() -> Node:
    amounts = {"cpu": "64", "memory": "64Gi", "pods": "100"}
    status = {"allocatable": amounts, "capacity": amounts}
    metadata = {"name": "good", "labels": {"good": "yes"}}
    return decode_tree({"metadata": metadata, "status": status}, Node).value


async def check_serves(cluster: EmbeddedCluster) -> None:
    """See that every list is answered, in every form; one of claims is complete, or an error."""
    for kind in KINDS.values():
        base = f"/apis/{kind.api_version}" if kind.group else "/api/v1"
        for form in FORMS:
            wire = cluster.transport_of(headers={"accept": form})
            answer = await wire.send(Request("GET", f"{base}/{kind.plural}"))
            is_refused = kind.name == "ResourceClaim" and form in FORMS[2:]
            assert answer.status == (500 if is_refused else 200), (kind.name, form, answer.body)
            if kind.namespaced:
                path = f"{base}/namespaces/good/{kind.plural}"
                answer = await wire.send(Request("GET", path))
                assert answer.status == 200, (kind.name, form, answer.body[:300])
                assert answer.warnings == ()


async def check_works(cluster: EmbeddedCluster, name: str) -> None:
    """See that workloads get their pods, and the pods their claims and their node."""
    admin = cluster.admin
    for app, (workload, number) in workloads(name).items():
        await admin.write(Create(workload))

        async def bound(app: str = app, number: int = number) -> bool:
            page = await admin.list(Pod, "good", labels=f"app={app}")
            return [pod.spec.node_name for pod in page.values] == ["good"] * number

        await until(bound)


async def check_ends(cluster: EmbeddedCluster) -> None:
    """See that the namespace of others can be deleted."""
    admin = cluster.admin
    await admin.write(Delete(Target(Namespace, "", "good")))

    async def gone() -> bool:
        for pod in (await admin.list(Pod, "good")).values:
            with suppress(NotFoundError):  # controllers delete them, too
                await admin.write(Delete(Target.of(pod), grace_s=0))
        return await admin.get(Namespace, "", "good") is None

    await until(gone)


def gpus(count: int) -> ResourceSlice:
    spec = {
        "driver": "gpu.example.com",
        "nodeName": "good",
        "pool": {"name": "good", "generation": count, "resourceSliceCount": 1},
        "devices": [{"name": f"gpu-{index}"} for index in range(count)],
    }
    return decode_tree({"metadata": {"name": f"good-{count}"}, "spec": spec}, ResourceSlice).value


def pod_with_gpu(name: str) -> Pod:
    spec = {
        "containers": [{"name": "c", "image": "i"}],
        "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "gpu"}],
    }
    return decode_tree({"metadata": {"name": name, "namespace": "good"}, "spec": spec}, Pod).value


@pytest.mark.parametrize(
    "damages",
    [
        {"spec": "x"},
        {"status.allocation.nodeSelector": "x"},
        {"status.allocation.devices.results.0.request": 3},
        {"status.allocation.devices.config": "x", "status.reservedFor": {}},
    ],
)
def test_a_scheduler_that_starts_gives_no_device_of_an_unreadable_claim_away(
    tmp_path: Path, damages: dict[str, Any], faults: list[Fault]
) -> None:
    async def claims(cluster: EmbeddedCluster) -> dict[str, str]:
        """Return the devices of claims that can be read, by pod."""
        found = (await cluster.admin.list(ResourceClaim, "good")).values
        return {
            each.metadata.owner_references[0].name: each.status.allocation.devices.results[0].device
            for each in found
            if each.status.allocation is not None
        }

    async def run() -> None:
        async with open_memory() as store:
            async with embedded(tmp_path, ProgramContext(), store=store) as cluster:
                admin = cluster.admin
                await admin.write(Create(Namespace(metadata=ObjectMeta(name="good"))))
                for value in (node(), gpus(1), devices()[1], claim_template()):
                    await admin.write(Create(value))
                await admin.write(Create(pod_with_gpu("first")))

                async def has_gpu() -> bool:
                    return await claims(cluster) == {"first": "gpu-0"}

                await until(has_gpu)
                (claim,) = (await admin.list(ResourceClaim, "good")).values
                resource = cluster.server.context.resources.of("resource.k8s.io", "resourceclaims")
            key = resource.key("good", claim.metadata.name)
            entry = await store.get(key)
            assert entry is not None
            tree = json.loads(entry.value)
            for path, value in damages.items():
                *above, last = path.split(".")
                here = tree
                for part in above:
                    here = here[int(part)] if part.isdigit() else here[part]
                here[last] = value
            text = json.dumps(tree, separators=(",", ":")).encode()
            await store.update(key, text, expected=entry.revision)
            async with embedded(tmp_path, ProgramContext(), store=store) as cluster:
                admin = cluster.admin
                await admin.write(Create(pod_with_gpu("second")))

                async def is_refused() -> bool:
                    pod = await admin.get(Pod, "good", "second")
                    found = () if pod is None else pod.status.conditions
                    return any(each.status == "False" for each in found)

                await until(is_refused)
                await admin.write(Create(gpus(2)))

                async def has_the_other() -> bool:
                    return await claims(cluster) == {"second": "gpu-1"}

                await until(has_the_other)

    asyncio.run(run())
    assert {each.place for each in faults} >= {"watching ResourceClaim"}


@pytest.mark.parametrize("seed", range(2))
def test_a_cluster_works_beside_malformed_objects(
    tmp_path: Path, seed: int, faults: list[Fault], caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> None:
        async with open_memory() as store:
            async with embedded(tmp_path, ProgramContext(), store=store) as cluster:
                for name in ("good", "bad"):
                    await cluster.admin.write(Create(Namespace(metadata=ObjectMeta(name=name))))
                await damage(store, cluster.server.context, seed)
                for value in (node(), *devices(), claim_template(), quota()):
                    await cluster.admin.write(Create(value))
                await check_works(cluster, "first")
            async with embedded(tmp_path, ProgramContext(), store=store) as cluster:
                await check_serves(cluster)
                await check_works(cluster, "second")
                await check_ends(cluster)

    asyncio.run(run())
    assert faults
    assert not [each for each in faults if "good" in each.subject]
    assert "Traceback" not in caplog.text
