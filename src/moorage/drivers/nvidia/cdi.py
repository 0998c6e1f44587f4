"""The CDI edits for a GPU: from NVIDIA's own tool if it is installed, else our own.

    /dev/nvidia0, /dev/nvidiactl, /dev/nvidia-uvm …        device files
    /dev/nvidia-caps/nvidia-cap66                          and those of a partition
    CUDA_VISIBLE_DEVICES, NVIDIA_VISIBLE_DEVICES           the GPUs for a program

`nvidia-ctk` also mounts the libraries of the driver. Processes have those anyway.
"""

from __future__ import annotations

import logging
import shutil
import subprocess
from collections.abc import Callable
from typing import Protocol

import msgspec

from moorage.api.cdi import CdiSpec, ContainerEdits, DeviceNode
from moorage.drivers.host import Host, read_text
from moorage.drivers.nvidia.gpus import FoundGpu, Partition

LOG = logging.getLogger(__name__)

TOOL = "nvidia-ctk"
TOOL_TIMEOUT_S = 60
OUTPUT_BYTES_MAX = 16 << 20
COMMON = ("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools", "/dev/nvidia-modeset")

Exists = Callable[[str], bool]
Run = Callable[[list[str]], bytes]


class Edits(Protocol):
    """Returns the edits for a device; None if they are unknown."""

    def of(self, gpu: FoundGpu, partition: Partition | None) -> ContainerEdits | None:
        """Return the edits for a GPU, or for a partition of it."""


class OwnEdits:
    """The device files of the kernel driver."""

    def __init__(self, host: Host, exists: Exists) -> None:
        self._host = host
        self._exists = exists

    def of(self, gpu: FoundGpu, partition: Partition | None) -> ContainerEdits:
        """Return the existing device files."""
        paths = [f"/dev/nvidia{gpu.minor}", *COMMON]
        if partition is not None:
            paths += self._capabilities(gpu.minor, partition)
        nodes = tuple(DeviceNode(path=path) for path in paths if self._exists(path))
        return ContainerEdits(device_nodes=nodes)

    def _capabilities(self, minor: int, partition: Partition) -> list[str]:
        """Return the files that allow the use of a partition.

        line = "gpu0/gi7/access" minor | "gpu0/gi7/ci0/access" minor
        """
        gpu = f"gpu{minor}/gi{partition.gpu_instance}"
        wanted = (f"{gpu}/access", f"{gpu}/ci{partition.compute_instance}/access")
        lines = (read_text(self._host.proc, "driver/nvidia-caps/mig-minors") or "").splitlines()
        rows = (line.split() for line in lines)
        return [
            f"/dev/nvidia-caps/nvidia-cap{row[1]}"
            for row in rows
            if len(row) == 2 and row[0] in wanted and row[1].isdigit()
        ]


class ToolEdits:
    """The edits from NVIDIA's tool, which runs again for a device that it did not list."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._spec: CdiSpec | None = None

    def of(self, gpu: FoundGpu, partition: Partition | None) -> ContainerEdits | None:
        """Return the edits of a device, with those for all devices."""
        uuid = gpu.uuid if partition is None else partition.uuid
        found = self._find(uuid)
        if found is None:
            self._spec = self._generated()
            found = self._find(uuid)
        return found

    def _find(self, uuid: str) -> ContainerEdits | None:
        spec = self._spec
        for device in spec.devices if spec is not None else ():
            if spec is not None and device.name == uuid:
                return spec.container_edits + device.container_edits
        return None

    def _generated(self) -> CdiSpec | None:
        command = [TOOL, "cdi", "generate", "--format=json", "--device-name-strategy=uuid"]
        try:
            return msgspec.json.decode(self._run(command), type=CdiSpec)
        except (OSError, subprocess.SubprocessError, msgspec.MsgspecError) as error:
            LOG.warning("%s: %s", TOOL, error)
            return None


def tool_edits() -> ToolEdits | None:
    """Return the edits of NVIDIA's tool; None if it is not installed."""
    path = shutil.which(TOOL)
    if path is None:
        return None

    def run(command: list[str]) -> bytes:
        done = subprocess.run(  # noqa: S603  # the program that the path names
            [path, *command[1:]], capture_output=True, timeout=TOOL_TIMEOUT_S, check=True
        )
        return done.stdout[:OUTPUT_BYTES_MAX]

    return ToolEdits(run)
