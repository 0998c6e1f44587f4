"""What the agent asks of whoever gives devices to pods: DRA drivers, and device plugins."""

from __future__ import annotations

from typing import Protocol

from msgspec import Struct, field

from mooring.api.cdi import ContainerEdits
from mooring.api.core import Pod

FAILED_PREPARE = "FailedPrepareDynamicResources"
PREPARING = "prepare dynamic resources"
FAILED_SANDBOX = "FailedCreatePodSandBox"


def failed_prepare(fact: object) -> str:
    """Return the message of the event for a pod that cannot have its devices now."""
    return f"Failed to prepare dynamic resources: {fact}"


def failed_sandbox(fact: object) -> str:
    """Return the message of the event for a pod that has no sandbox to run in."""
    return f"Failed to create pod sandbox: {fact}"


class DevicesRefusedError(Exception):
    """A pod cannot have its devices now; the text says why, and it is tried again later."""


class PodRefusedError(DevicesRefusedError):
    """A pod cannot have its devices and never will: it fails; `reason` is one word."""

    def __init__(self, reason: str, text: str) -> None:
        super().__init__(text)
        self.reason = reason


class Given(Struct, frozen=True):
    """What a container gets for its devices."""

    cdi_ids: tuple[str, ...] = ()  # looked up in the specs, or given to the runtime
    edits: ContainerEdits = ContainerEdits()  # what needs no looking up
    annotations: dict[str, str] = field(default_factory=dict)

    def __add__(self, other: Given) -> Given:
        """Return both together."""
        ids = (*self.cdi_ids, *(each for each in other.cdi_ids if each not in self.cdi_ids))
        annotations = {**self.annotations, **other.annotations}
        return Given(ids, self.edits + other.edits, annotations)


class DeviceManager(Protocol):
    """Gives devices to pods, and takes them back. All of it can be asked again."""

    async def prepare(self, pod: Pod) -> None:
        """Have a pod's devices ready before its first container; else DevicesRefusedError."""

    def given(self, pod: Pod, container: str) -> Given:
        """Return what a container of a prepared pod gets."""

    async def before_start(self, pod: Pod, container: str) -> None:
        """Have a container's devices as new before each of its starts; else DevicesRefusedError."""

    async def unprepare(self, pod: Pod) -> None:
        """Take the devices back when all containers have ended; else DevicesRefusedError."""
