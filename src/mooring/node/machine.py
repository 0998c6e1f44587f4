"""What the machine is that the agent runs on: its size, its software, its addresses."""

from __future__ import annotations

import os
import platform
import socket
from pathlib import Path

from msgspec import Struct

from mooring.api.core.node import NodeSystemInfo
from mooring.api.core.resources import CPU, EPHEMERAL_STORAGE, HUGE_PAGES_PREFIX, MEMORY
from mooring.api.quantity import Quantity
from mooring.api.quantitytext import Format
from mooring.kit.go_platform import go_arch

TEXT_MAX = 256


class Machine(Struct, frozen=True):
    """A machine."""

    capacity: dict[str, Quantity]
    info: NodeSystemInfo
    hostname: str


def read_machine(folder: Path, root: Path = Path("/")) -> Machine:
    """Return what this machine is; `folder` is on the disk that pods use."""
    system = os.uname()
    info = NodeSystemInfo(
        machine_id=_line(root / "etc/machine-id"),
        system_uuid=_line(root / "sys/class/dmi/id/product_uuid") or _line(root / "etc/machine-id"),
        boot_id=_line(root / "proc/sys/kernel/random/boot_id"),
        kernel_version=system.release,
        os_image=_os_image(root / "etc/os-release"),
        operating_system="linux",
        architecture=go_arch(platform.machine()),
    )
    return Machine(_capacity(folder, root), info, socket.gethostname().lower())


def _capacity(folder: Path, root: Path) -> dict[str, Quantity]:
    sizes = _memory_sizes(root / "proc/meminfo")
    disk = os.statvfs(folder)
    return {
        CPU: Quantity.from_int(len(os.sched_getaffinity(0))),
        MEMORY: _bytes(sizes.get("MemTotal", 0)),
        EPHEMERAL_STORAGE: _bytes(disk.f_blocks * disk.f_frsize),
        **_huge_pages(root / "sys/kernel/mm/hugepages"),
    }


def _huge_pages(folder: Path) -> dict[str, Quantity]:
    """Return how much memory is in huge pages, by their size: hugepages-2Mi."""
    found = {}
    for each in sorted(folder.glob("hugepages-*kB")):
        size = each.name.removeprefix("hugepages-").removesuffix("kB")
        count = _line(each / "nr_hugepages")
        if size.isdigit() and count.isdigit():
            size_bytes = int(size) * 1024
            found[f"{HUGE_PAGES_PREFIX}{_bytes(size_bytes)}"] = _bytes(size_bytes * int(count))
    return found


def _memory_sizes(path: Path) -> dict[str, int]:
    sizes = {}
    for line in _text(path).splitlines():
        name, _, rest = line.partition(":")
        words = rest.split()
        if words and words[0].isdigit():
            sizes[name] = int(words[0]) * 1024
    return sizes


def _os_image(path: Path) -> str:
    for line in _text(path).splitlines():
        if line.startswith("PRETTY_NAME="):
            return line.partition("=")[2].strip().strip('"')[:TEXT_MAX]
    return platform.system()


def _bytes(size: int) -> Quantity:
    return Quantity.from_int(size, Format.BINARY_SI)


def _line(path: Path) -> str:
    return _text(path).strip()[:TEXT_MAX]


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace")[:65_536]
    except OSError:
        return ""


def address_towards(host: str, port: int = 443) -> str:
    """Return the address of this machine that another one would see; nothing is sent."""
    try:
        family, _, _, _, place = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, socket.SOCK_DGRAM) as found:
            found.connect(place)
            return str(found.getsockname()[0])
    except OSError:
        return "127.0.0.1"
