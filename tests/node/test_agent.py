"""The agent of a node, with a whole cluster."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

from moorage.api.codec import decode_tree
from moorage.api.coordination import Lease
from moorage.api.core import Event, Node, Pod
from moorage.api.core.node import NodeSystemInfo
from moorage.api.gates import Gates
from moorage.api.quantity import Quantity
from moorage.apiserver.auth.credentials import ADMIN
from moorage.client.writes import Create, Delete, Target
from moorage.cluster.embedded import EmbeddedCluster, embedded
from moorage.cluster.programs import ProgramContext
from moorage.kit.clock import REAL
from moorage.node.agent import Agent
from moorage.node.node_status import MachineInfo, NodeDescription
from tests.client.servers import until
from tests.node.memoryruntime import MemoryDevices, MemoryRuntime
from tests.node.world import container

MACHINE = MachineInfo(
    {"cpu": Quantity.parse("8"), "memory": Quantity.parse("16Gi")},
    NodeSystemInfo(operating_system="linux", architecture="amd64"),
    "host",
)


class Scene(NamedTuple):
    cluster: EmbeddedCluster
    runtime: MemoryRuntime
    devices: MemoryDevices
    agent: Agent

    def phase(self, name: str) -> str:
        found = self.agent.informers.objects.get(Pod, "default", name)
        return "gone" if found is None else found.status.phase

    async def ready(self) -> str:
        node = await self.cluster.admin.get(Node, "", "n")
        assert node is not None
        return {each.type: each.status for each in node.status.conditions}["Ready"]


@asynccontextmanager
async def scene(folder: Path) -> AsyncIterator[Scene]:
    async with asyncio.timeout(60), embedded(folder, ProgramContext()) as cluster:
        runtime = MemoryRuntime(REAL)
        devices = MemoryDevices(runtime)
        description = NodeDescription("n", MACHINE, "10.0.0.1", runtime.name, Gates.parse())
        # As the user that it is in a real cluster: the node, which may do little.
        headers = {"Impersonate-User": "system:node:n", "Impersonate-Group": "system:nodes"}
        agent = Agent(
            cluster.client_of(ADMIN, headers),
            runtime,
            devices,
            description,
            folder=folder,
            random=random.random,
        )
        task = asyncio.create_task(agent.run())
        try:
            await agent.has_taken_over.wait()
            yield Scene(cluster, runtime, devices, agent)
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def create(cluster: EmbeddedCluster, name: str, *containers: Any, **spec: Any) -> Pod:
    tree = {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": list(containers or [container()]), **spec},
    }
    made: Pod = await cluster.admin.write(Create(decode_tree(tree, Pod).value))
    return made


def test_a_pod_of_a_cluster_runs_here_ends_and_goes(tmp_path: Path) -> None:
    async def run() -> None:
        async with scene(tmp_path) as it:
            node = await it.cluster.admin.get(Node, "", "n")
            assert node is not None
            assert node.metadata.labels["kubernetes.io/hostname"] == "n"
            assert str(node.status.allocatable["pods"]) == "110"
            assert "DRAOptionalNodeOperations" in node.status.declared_features
            assert await it.cluster.admin.get(Lease, "kube-node-lease", "n") is not None

            pod = await create(it.cluster, "p")
            await until(lambda: it.phase("p") == "Running")
            assert it.runtime.running() == ["c"]
            (spec,) = it.runtime.specs.values()
            (mount,) = spec.edits.mounts
            assert mount.container_path == "/var/run/secrets/kubernetes.io/serviceaccount"
            account = Path(mount.host_path)
            assert (account / "token").read_text().count(".") == 2
            assert "BEGIN CERTIFICATE" in (account / "ca.crt").read_text()
            await it.cluster.admin.write(Delete(Target.of(pod)))
            await until(lambda: it.phase("p") == "gone")
            await until(lambda: not it.agent.pod_workers.pods)
            assert it.runtime.running() == []
            assert not it.devices.prepared
            assert not account.exists()

            events = await it.cluster.admin.list(Event, "default")
            own = {each.reason for each in events.values if each.source.component == "kubelet"}
            assert {"Started", "Killing"} <= own

    asyncio.run(run())


def test_a_job_s_pod_succeeds(tmp_path: Path) -> None:
    async def run() -> None:
        async with scene(tmp_path) as it:
            await create(it.cluster, "p", container("c", "exit", "0"), restartPolicy="Never")
            await until(lambda: it.phase("p") == "Succeeded")
            found = it.agent.informers.objects.get(Pod, "default", "p")
            assert found is not None
            assert {each.type: each.status for each in found.status.conditions}[
                "PodScheduled"
            ] == "True"

    asyncio.run(run())


def test_a_node_is_not_ready_while_its_runtime_fails(tmp_path: Path) -> None:
    async def run() -> None:
        async with scene(tmp_path) as it:
            await until(lambda: it.agent.trouble() == "")
            it.runtime.fail(OSError("no context"))
            await until(lambda: _is(it, "False"))
            node = it.agent.heartbeat.node
            assert node is not None
            messages = [each.message for each in node.status.conditions if each.type == "Ready"]
            assert messages == ["container runtime is down: no context"]
            it.runtime.trouble = None
            await until(lambda: _is(it, "True"))

    asyncio.run(run())


def _is(it: Scene, status: str) -> bool:
    node = it.agent.heartbeat.node
    conditions = () if node is None else node.status.conditions
    return any(each.type == "Ready" and each.status == status for each in conditions)
