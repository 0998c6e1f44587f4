"""A cluster whose store has objects that no server accepts serves, schedules and runs the others.

They are there from the start, as after an upgrade: server, scheduler and controllers read them all.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

from mooring.api.apps import Deployment
from mooring.api.catalogue import SERVED
from mooring.api.codec import decode_tree
from mooring.api.core import Namespace, Node, Pod
from mooring.api.meta import ObjectMeta
from mooring.client.contract import Request
from mooring.client.writes import Create, Delete, Target
from mooring.cluster.embedded import EmbeddedCluster, embedded
from mooring.cluster.programs import ProgramContext
from mooring.kit.bulkhead import Fault
from mooring.store.contract import Store
from mooring.store.memory import open_memory
from soak._malformed import SAMPLES, malformed

NUMBER = 12
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
FORMS = ("application/json", TABLE, "application/yaml", "application/vnd.kubernetes.protobuf")
KINDS = {
    kind.name: kind
    for kind in SERVED
    if kind.name in SAMPLES and kind.hub_version == kind.api_version
}
# Their own programs would harm others by what they say, well formed or not.
WITHOUT = {"Namespace"}
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


def deployment(name: str) -> Deployment:
    template = {
        "metadata": {"labels": {"app": name}},
        "spec": {"containers": [{"name": "c", "image": "i"}], "nodeSelector": {"good": "yes"}},
    }
    spec = {"replicas": 2, "selector": {"matchLabels": {"app": name}}, "template": template}
    metadata = {"name": name, "namespace": "good"}
    return decode_tree({"metadata": metadata, "spec": spec}, Deployment).value


def node() -> Node:
    amounts = {"cpu": "64", "memory": "64Gi", "pods": "100"}
    status = {"allocatable": amounts, "capacity": amounts}
    metadata = {"name": "good", "labels": {"good": "yes"}}
    return decode_tree({"metadata": metadata, "status": status}, Node).value


async def check_serves(cluster: EmbeddedCluster) -> None:
    """See that every list is answered, in every form."""
    for kind in KINDS.values():
        base = f"/apis/{kind.api_version}" if kind.group else "/api/v1"
        for form in FORMS:
            wire = cluster.transport_of(headers={"accept": form})
            answer = await wire.send(Request("GET", f"{base}/{kind.plural}"))
            assert answer.status == 200, (kind.name, form, answer.body[:300])
            if kind.namespaced:
                path = f"{base}/namespaces/good/{kind.plural}"
                answer = await wire.send(Request("GET", path))
                assert answer.status == 200, (kind.name, form, answer.body[:300])
                assert answer.warnings == ()


async def check_works(cluster: EmbeddedCluster, name: str) -> None:
    """See that a workload gets its pods, and the pods their node."""
    admin = cluster.admin
    await admin.write(Create(deployment(name)))

    async def bound() -> bool:
        page = await admin.list(Pod, "good", labels=f"app={name}")
        return [pod.spec.node_name for pod in page.values] == ["good", "good"]

    await until(bound)


async def check_ends(cluster: EmbeddedCluster) -> None:
    """See that the namespace of others can be deleted."""
    admin = cluster.admin
    for pod in (await admin.list(Pod, "good")).values:
        await admin.write(Delete(Target.of(pod), grace_s=0))
    await admin.write(Delete(Target(Namespace, "", "good")))

    async def gone() -> bool:
        for pod in (await admin.list(Pod, "good")).values:
            await admin.write(Delete(Target.of(pod), grace_s=0))
        return await admin.get(Namespace, "", "good") is None

    await until(gone)


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
                await cluster.admin.write(Create(node()))
                await check_works(cluster, "first")
            async with embedded(tmp_path, ProgramContext(), store=store) as cluster:
                await check_serves(cluster)
                await check_works(cluster, "second")
                await check_ends(cluster)

    asyncio.run(run())
    assert faults
    assert not [each for each in faults if "good" in each.subject]
    assert "Traceback" not in caplog.text
