"""The contract of device managers: DRA drivers, and device plugins."""

from __future__ import annotations

from functools import reduce
from typing import Protocol

from msgspec import Struct, field

from moorage.api.cdi import ContainerEdits
from moorage.api.core import Pod
from moorage.node.errors import DevicesRefusedError as DevicesRefusedError
from moorage.node.errors import PodRefusedError as PodRefusedError

FAILED_PREPARE = "FailedPrepareDynamicResources"
PREPARING = "prepare dynamic resources"
FAILED_SANDBOX = "FailedCreatePodSandBox"


def failed_prepare(fact: object) -> str:
    """Return the event message for a pod that cannot have its devices now."""
    return f"Failed to prepare dynamic resources: {fact}"


def failed_sandbox(fact: object) -> str:
    """Return the event message for a pod without a sandbox."""
    return f"Failed to create pod sandbox: {fact}"


class DeviceRunOptions(Struct, frozen=True):
    """The options of a container for its devices, as the kubelet's RunContainerOptions."""

    cdi_ids: tuple[str, ...] = ()  # resolved by the agent or the runtime
    edits: ContainerEdits = ContainerEdits()  # that need no CDI spec
    annotations: dict[str, str] = field(default_factory=dict)

    def __add__(self, other: DeviceRunOptions) -> DeviceRunOptions:
        ids = (*self.cdi_ids, *(each for each in other.cdi_ids if each not in self.cdi_ids))
        annotations = {**self.annotations, **other.annotations}
        return DeviceRunOptions(ids, self.edits + other.edits, annotations)


class DeviceManager(Protocol):
    """Gives devices to pods, and takes them back. Every call can be repeated."""

    async def prepare(self, pod: Pod) -> None:
        """Prepare a pod's devices before its first container; else DevicesRefusedError."""

    def run_options(self, pod: Pod, container: str) -> DeviceRunOptions:
        """Return the run options of a container of a prepared pod."""

    async def before_start(self, pod: Pod, container: str) -> None:
        """Reset a container's devices before each start; else DevicesRefusedError."""

    async def unprepare(self, pod: Pod) -> None:
        """Take the devices back when all containers have ended; else DevicesRefusedError."""


class DeviceManagers:
    """Several device managers as one: prepares in order, unprepares in reverse."""

    def __init__(self, *managers: DeviceManager) -> None:
        self._managers = managers

    async def prepare(self, pod: Pod) -> None:
        """Prepare all devices of a pod; the first refusal ends it."""
        for manager in self._managers:
            await manager.prepare(pod)

    def run_options(self, pod: Pod, container: str) -> DeviceRunOptions:
        """Return all run options of a container."""
        found = (manager.run_options(pod, container) for manager in self._managers)
        return reduce(lambda one, other: one + other, found, DeviceRunOptions())

    async def before_start(self, pod: Pod, container: str) -> None:
        """Reset all devices of a container."""
        for manager in self._managers:
            await manager.before_start(pod, container)

    async def unprepare(self, pod: Pod) -> None:
        """Take all devices of a pod back."""
        for manager in reversed(self._managers):
            await manager.unprepare(pod)
