"""The agent of a node as a program: with a runtime, with drivers, in a folder of its own."""

from __future__ import annotations

import fcntl
import importlib
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import Struct

from mooring.api.core import Pod
from mooring.api.quantity import Quantity
from mooring.client.contract import Client
from mooring.cluster.programs import Surroundings, run_all
from mooring.controllers.metrics import Level, exposition
from mooring.node.agent import NO_HOOKS, Agent, Hooks
from mooring.node.contract import DeviceManager
from mooring.node.machine import address_towards, read_machine
from mooring.node.managers import Managers
from mooring.node.nodeobject import PODS_MAX, Description, kept_free
from mooring.node.runtime.contract import Runtime

AGENT = "kubelet"  # as whom fields are written
LOCK = "agent.lock"

# Where each runtime is: loaded only when it is asked for.
RUNTIMES = {
    "process": ("mooring.node.runtime.process", "ProcessRuntime"),
    "podman": ("mooring.node.runtime.podman", "PodmanRuntime"),
    "sim": ("mooring.node.runtime.sim", "SimRuntime"),
}


class NodeError(Exception):
    """The agent cannot run here; the text says why."""


class NodeSettings(Struct, frozen=True):
    """How a node is to be."""

    name: str
    folder: Path
    runtime: str = "process"
    cdi_folders: tuple[Path, ...] = (Path("/etc/cdi"), Path("/var/run/cdi"))
    address: str = ""  # empty: that by which the server is reached
    pods_max: int = PODS_MAX
    reserved: Mapping[str, Quantity] | None = None  # None: as a kubelet
    labels: Mapping[str, str] = {}
    port: int = 0  # of the agent's own door, if there is one


class Parts(NamedTuple):
    """What an agent works with."""

    runtime: Runtime
    devices: DeviceManager
    hooks: Hooks = NO_HOOKS
    services: Sequence[Any] = ()  # what runs beside it: each with a `run`


def parts_of(settings: NodeSettings) -> Parts:
    """Return the runtime and the managers of devices that settings ask for, or raise NodeError."""
    module, name = RUNTIMES[settings.runtime]
    try:
        make = getattr(importlib.import_module(module), name)
        runtime: Runtime = make(settings.folder, settings.cdi_folders)
    except (ImportError, OSError, RuntimeError) as error:
        raise NodeError(f"--runtime {settings.runtime}: {error}") from None
    return Parts(runtime, Managers())


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Have a folder for one agent alone, or raise NodeError."""
    try:
        folder.mkdir(mode=0o750, parents=True, exist_ok=True)
        file = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise NodeError(f"--root-dir: {error}") from None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise NodeError(f"--root-dir: another agent runs in {folder}") from None
    finally:
        os.close(file)


class NodeProgram:
    """The agent of a node."""

    def __init__(
        self,
        client: Client,
        around: Surroundings,
        settings: NodeSettings,
        parts: Parts,
        *,
        server_host: str = "127.0.0.1",
    ) -> None:
        self._parts = parts
        self.agent = Agent(
            client,
            parts.runtime,
            parts.devices,
            describe(settings, parts.runtime, around, server_host),
            folder=settings.folder,
            random=around.random,
            clock=around.clock,
            hooks=parts.hooks,
        )
        self.informers = self.agent.informers

    async def run(self) -> None:
        """Run pods until cancelled."""
        await run_all(self.agent, *self._parts.services)

    @property
    def metrics_pages(self) -> dict[str, Callable[[], str]]:
        """What the agent counts, by the paths of pages."""
        return {"/metrics": self._metrics_text}

    def _metrics_text(self) -> str:
        pods = self.agent.keeper.pods
        levels = (
            Level(
                "kubelet_active_pods",
                "Pods of this node by phase.",
                ("phase",),
                lambda: _by_phase(pods),
            ),
            Level(
                "kubelet_running_pods",
                "Pods that have a running container.",
                (),
                lambda: {(): sum(self._running(pod) > 0 for pod in pods)},
            ),
            Level(
                "kubelet_running_containers",
                "Containers that run.",
                (),
                lambda: {(): sum(map(self._running, pods))},
            ),
        )
        return exposition(levels)

    def _running(self, pod: Pod) -> int:
        worker = self.agent.keeper.find(pod.metadata.uid)
        states = () if worker is None else worker.record.states.values()
        return sum(state.finished_at is None for state in states)


def describe(
    settings: NodeSettings, runtime: Runtime, around: Surroundings, server_host: str
) -> Description:
    """Return what a node tells of itself."""
    machine = read_machine(settings.folder)
    kept = kept_free(machine.capacity)
    return Description(
        name=settings.name,
        machine=machine,
        address=settings.address or address_towards(server_host),
        runtime=runtime.name,
        gates=around.gates,
        pods_max=settings.pods_max,
        reserved=kept if settings.reserved is None else settings.reserved,
        labels=settings.labels,
        port=settings.port,
    )


def _by_phase(pods: Sequence[Pod]) -> dict[tuple[str, ...], int]:
    return dict(Counter((pod.status.phase or "Pending",) for pod in pods))
