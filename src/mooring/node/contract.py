"""What the agent asks of whoever gives devices to pods: DRA drivers, and device plugins."""

from __future__ import annotations

from functools import reduce
from typing import Protocol

from msgspec import Struct, field

from mooring.api.cdi import ContainerEdits
from mooring.api.core import Pod
from mooring.node.errors import DevicesRefusedError as DevicesRefusedError
from mooring.node.errors import PodRefusedError as PodRefusedError

FAILED_PREPARE = "FailedPrepareDynamicResources"
PREPARING = "prepare dynamic resources"
FAILED_SANDBOX = "FailedCreatePodSandBox"


def failed_prepare(fact: object) -> str:
    """Return the message of the event for a pod that cannot have its devices now."""
    return f"Failed to prepare dynamic resources: {fact}"


def failed_sandbox(fact: object) -> str:
    """Return the message of the event for a pod that has no sandbox to run in."""
    return f"Failed to create pod sandbox: {fact}"


class DeviceRunOptions(Struct, frozen=True):
    """What a container gets for its devices."""

    cdi_ids: tuple[str, ...] = ()  # looked up in the specs, or given to the runtime
    edits: ContainerEdits = ContainerEdits()  # what needs no looking up
    annotations: dict[str, str] = field(default_factory=dict)

    def __add__(self, other: DeviceRunOptions) -> DeviceRunOptions:
        """Return both together."""
        ids = (*self.cdi_ids, *(each for each in other.cdi_ids if each not in self.cdi_ids))
        annotations = {**self.annotations, **other.annotations}
        return DeviceRunOptions(ids, self.edits + other.edits, annotations)


class DeviceManager(Protocol):
    """Gives devices to pods, and takes them back. All of it can be asked again."""

    async def prepare(self, pod: Pod) -> None:
        """Have a pod's devices ready before its first container; else DevicesRefusedError."""

    def given(self, pod: Pod, container: str) -> DeviceRunOptions:
        """Return what a container of a prepared pod gets."""

    async def before_start(self, pod: Pod, container: str) -> None:
        """Have a container's devices as new before each of its starts; else DevicesRefusedError."""

    async def unprepare(self, pod: Pod) -> None:
        """Take the devices back when all containers have ended; else DevicesRefusedError."""


# ---- from mooring.node.managers: Those who give devices, as one.


class DeviceManagers:
    """Asks all who give devices: to prepare in their order, to take back in reverse."""

    def __init__(self, *managers: DeviceManager) -> None:
        self._managers = managers

    async def prepare(self, pod: Pod) -> None:
        """Have all devices of a pod ready; the first that refuses ends it."""
        for manager in self._managers:
            await manager.prepare(pod)

    def given(self, pod: Pod, container: str) -> DeviceRunOptions:
        """Return all that a container gets."""
        found = (manager.given(pod, container) for manager in self._managers)
        return reduce(lambda one, other: one + other, found, DeviceRunOptions())

    async def before_start(self, pod: Pod, container: str) -> None:
        """Have all devices of a container as new."""
        for manager in self._managers:
            await manager.before_start(pod, container)

    async def unprepare(self, pod: Pod) -> None:
        """Take all devices of a pod back."""
        for manager in reversed(self._managers):
            await manager.unprepare(pod)
