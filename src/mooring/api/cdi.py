"""The Container Device Interface: what a container is given with a device.

    vendor.example/gpu=gpu-0        the id of a device: kind, and name within the kind
    /var/run/cdi/*.json             specs: for a kind, what each of its devices brings

Drivers write specs and name ids; whoever starts containers looks the ids up and makes the edits.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from msgspec import field

from mooring.api.structs import Int64, Open, always, named

VERSION = "0.6.0"  # what our specs need; read are all below 2
STATIC_FOLDER, DYNAMIC_FOLDER = "/etc/cdi", "/var/run/cdi"  # the second wins

_VENDOR = re.compile(r"[A-Za-z](?:[A-Za-z0-9_.-]*[A-Za-z0-9])?")
_CLASS = re.compile(r"[A-Za-z](?:[A-Za-z0-9_-]*[A-Za-z0-9])?")
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_.:-]*[A-Za-z0-9])?")


class DeviceNode(Open, frozen=True, gc=False):
    """A device file."""

    path: str = always("")
    host_path: str = ""  # empty: the same
    type: str = ""
    major: Int64 = 0
    minor: Int64 = 0
    file_mode: Int64 | None = None
    permissions: str = ""
    uid: Int64 | None = None
    gid: Int64 | None = None


class Mount(Open, frozen=True, gc=False):
    """A file or folder of the host that the container sees."""

    host_path: str = always("")
    container_path: str = always("")
    options: tuple[str, ...] = ()
    type: str = ""


class Hook(Open, frozen=True, gc=False):
    """A program that a runtime calls on the way."""

    hook_name: str = always("")
    path: str = always("")
    args: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
    timeout: Int64 | None = None


class NetDevice(Open, frozen=True, gc=False):
    """A network interface of the host that is moved into the container."""

    host_interface_name: str = always("")
    name: str = always("")


class ContainerEdits(Open, frozen=True, gc=False):
    """What is done to a container."""

    env: tuple[str, ...] = ()  # NAME=VALUE
    device_nodes: tuple[DeviceNode, ...] = ()
    net_devices: tuple[NetDevice, ...] = ()
    hooks: tuple[Hook, ...] = ()
    mounts: tuple[Mount, ...] = ()
    additional_gids: tuple[Int64, ...] = named("additionalGids", ())

    def __add__(self, other: ContainerEdits) -> ContainerEdits:
        """Return both; what is the same in both is there once."""
        return ContainerEdits(
            env=_joined(self.env, other.env),
            device_nodes=_joined(self.device_nodes, other.device_nodes),
            net_devices=_joined(self.net_devices, other.net_devices),
            hooks=_joined(self.hooks, other.hooks),
            mounts=_joined(self.mounts, other.mounts),
            additional_gids=_joined(self.additional_gids, other.additional_gids),
        )


class CdiDevice(Open, frozen=True, gc=False):
    """What one device brings."""

    name: str = always("")
    annotations: dict[str, str] = field(default_factory=dict)
    container_edits: ContainerEdits = always(ContainerEdits())


class CdiSpec(Open, frozen=True, gc=False):
    """A file of devices of one kind; the edits of the whole are for whoever gets any of them."""

    cdi_version: str = always(VERSION)
    kind: str = always("")
    annotations: dict[str, str] = field(default_factory=dict)
    devices: tuple[CdiDevice, ...] = always(())
    container_edits: ContainerEdits = ContainerEdits()


class CdiId(NamedTuple):
    """The full name of a device."""

    kind: str  # vendor/class
    name: str

    @classmethod
    def parse(cls, text: str) -> CdiId:
        """Read an id, or raise ValueError that says what is wrong."""
        kind, separator, name = text.partition("=")
        vendor, slash, class_ = kind.partition("/")
        if not separator or not slash:
            raise ValueError(f"{text[:256]!r} is not of the form vendor/class=name")
        for what, part, pattern in (
            ("vendor", vendor, _VENDOR),
            ("class", class_, _CLASS),
            ("name", name, _NAME),
        ):
            if not pattern.fullmatch(part):
                raise ValueError(f"{text[:256]!r}: {part[:128]!r} cannot be the {what} of a device")
        return cls(kind, name)

    def __str__(self) -> str:
        return f"{self.kind}={self.name}"


def _joined(first: tuple, second: tuple) -> tuple:  # type: ignore[type-arg]
    return (*first, *(each for each in second if each not in first))
