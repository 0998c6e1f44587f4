"""A node with a cluster of one kind: pods, kept in memory, and a time that tests move."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from moorage.api.codec import decode_tree, to_tree
from moorage.api.core import Node, Pod
from moorage.api.runtime_class import RuntimeClass
from moorage.api.timestamp import Timestamp
from moorage.client.errors import ConflictError, NotFoundError
from moorage.client.writes import Delete, Patch, RecordEvent
from moorage.kit.clock import ManualClock, settle
from moorage.node.pods.container_environment import NodeContext, SourceCache
from moorage.node.pods.pod_context import PodContext
from moorage.node.pods.pod_workers import PodWorkers
from moorage.node.runtime.contract import ContainerId, ContainerState
from tests.node.memoryruntime import MemoryDevices, MemoryRuntime

SLOTS = 8
NOW = Timestamp.parse("2026-11-15T12:00:00Z")


def container(name: str = "c", *command: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "image": "i", "command": list(command), **more}


def make_pod(*containers: dict[str, Any], name: str = "p", **spec: Any) -> Pod:
    metadata = spec.pop("metadata", {})
    status = spec.pop("status", {"qosClass": "BestEffort"})
    tree = {
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": f"uid-{name}",
            "resourceVersion": "1",
            "generation": 1,
            **metadata,
        },
        "spec": {"nodeName": "n", "containers": list(containers or [container()]), **spec},
        "status": status,
    }
    found: Pod = decode_tree(tree, Pod).value
    return found


def make_node(**allocatable: str) -> Node:
    context = {"cpu": "8", "memory": "16Gi", "pods": "110", **allocatable}
    tree = {
        "metadata": {"name": "n", "labels": {"kubernetes.io/os": "linux", "zone": "a"}},
        "status": {"capacity": context, "allocatable": context},
    }
    found: Node = decode_tree(tree, Node).value
    return found


class MemoryCluster:
    """A client of a cluster that has pods and takes what is told of them."""

    def __init__(self) -> None:
        self.pods: dict[str, Pod] = {}
        self.runtime_classes: dict[str, RuntimeClass] = {}
        self.writes: list[Patch | Delete] = []
        self.version = 1
        self.faults: list[Exception] = []  # raised by the next writes
        self.watchers: list[Callable[[Pod | None, Pod | None], None]] = []

    def put(self, pod: Pod) -> Pod:
        self.version += 1
        pod = replace(pod, metadata=replace(pod.metadata, resource_version=str(self.version)))
        old = self.pods.get(pod.metadata.name)
        self.pods[pod.metadata.name] = pod
        self._write_status(old, pod)
        return pod

    def remove(self, name: str) -> None:
        self._write_status(self.pods.pop(name), None)

    def delete(self, name: str, grace_s: int = 30) -> None:
        pod = self.pods[name]
        metadata = replace(
            pod.metadata, deletion_timestamp=NOW, deletion_grace_period_seconds=grace_s
        )
        self.put(replace(pod, metadata=metadata))

    def _write_status(self, old: Pod | None, new: Pod | None) -> None:
        for watcher in self.watchers:
            watcher(old, new)

    async def get(self, struct: type[Any], namespace: str, name: str) -> Any:
        if struct is RuntimeClass:
            return self.runtime_classes.get(name)
        return self.pods.get(name)

    async def write(self, write: Any) -> Any:
        await asyncio.sleep(0)
        if self.faults:
            raise self.faults.pop(0)
        self.writes.append(write)
        pod = self.pods.get(write.target.name)
        if pod is None or pod.metadata.uid != write.target.uid:
            raise NotFoundError("gone")
        if isinstance(write, Delete):
            assert write.grace_s == 0
            self.remove(pod.metadata.name)
            return None
        if write.body["metadata"]["resourceVersion"] != pod.metadata.resource_version:
            raise ConflictError("another version")
        status = {**to_tree(pod.status), **write.body["status"]}
        kept = {key: value for key, value in status.items() if value is not None}
        told = decode_tree({**to_tree(pod), "status": kept}, Pod).value
        return self.put(told)


class World:
    """A node, its runtime and its cluster."""

    def __init__(self, folder: Path, node: Node | None = None) -> None:
        self.clock = ManualClock()
        self.runtime = MemoryRuntime(self.clock)
        self.devices = MemoryDevices(self.runtime)
        self.cluster = MemoryCluster()
        self.told: list[RecordEvent] = []
        self.asides: list[str] = []  # what would be done in a thread
        self.node = node or make_node()
        node_context = NodeContext("n", "10.0.0.1", "10.0.0.1", self.node.status.allocatable)
        self.context = PodContext(
            client=self.cluster,
            runtime=self.runtime,
            devices=self.devices,
            clock=self.clock,
            folder=folder,
            record_event=self.told.append,
            node_context=lambda: node_context,
            slots=asyncio.Semaphore(SLOTS),
            sources=SourceCache(self.cluster, self.clock),
            in_thread=self._aside,
        )
        self.pod_workers = PodWorkers(self.context, lambda: self.node)
        self.cluster.watchers.append(lambda old, new: self.pod_workers.changed(old, new))

    async def _aside(self, work: Callable[..., Any], *arguments: Any) -> Any:
        self.asides.append(work.__name__)
        return work(*arguments)

    async def listen(self) -> None:
        async for state in self.runtime.changes():
            self.pod_workers.note(state)

    def pod(self, name: str = "p") -> Pod:
        return self.cluster.pods[name]

    def phase(self, name: str = "p") -> str:
        found = self.cluster.pods.get(name)
        return "gone" if found is None else found.status.phase

    def id(self, name: str, attempt: int = 0, pod: str = "p") -> ContainerId:
        return ContainerId(f"uid-{pod}", name, attempt)

    def events(self) -> list[str]:
        return [each.reason for each in self.told]

    async def restart(self) -> None:
        """Have another agent take over."""
        await self.pod_workers.close()
        self.pod_workers = PodWorkers(self.context, lambda: self.node)
        states: list[ContainerState] = list(await self.runtime.containers())
        self.pod_workers.take_over(states, self.cluster.pods.values())
        await settle()
        self.devices.reconcile(self.pod_workers.active)


def play(
    folder: Path, story: Callable[[World], Coroutine[Any, Any, None]], node: Node | None = None
) -> World:
    """Tell a story on a node."""

    async def run() -> World:
        world = World(folder, node)
        task = asyncio.create_task(world.listen())
        try:
            await settle()
            await story(world)
            await settle()
            assert world.runtime.violations == []
            return world
        finally:
            await world.pod_workers.close()
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    return asyncio.run(run())
