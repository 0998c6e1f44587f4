"""The Container Device Interface: what a container gets with a device.

    vendor.example/gpu=gpu-0        the id of a device: kind, and name within the kind
    /var/run/cdi/*.json             specs: for a kind, what each of its devices brings

Drivers write specs and name ids; whoever starts containers looks the ids up and makes the edits.
Runtimes refuse a spec that breaks a rule of CDI, and the pod does not start. So the rules are
checked when Python code makes a value; readers of specs check what they decode themselves.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from msgspec import field
from msgspec.structs import replace

from moorage.api.structs import Checked, Int64, Open, always, named, shortened

VERSION = "0.6.0"  # what our specs need at least; read are all below 2
STATIC_FOLDER, DYNAMIC_FOLDER = "/etc/cdi", "/var/run/cdi"  # the second wins

NODE_TYPES = ("b", "c", "u", "p")
NO_PERMISSIONS = "none"
HOOK_NAMES = (
    "prestart",
    "createRuntime",
    "createContainer",
    "startContainer",
    "poststart",
    "poststop",
)
PATH_MAX = 4095
ID_MAX = 2**32 - 1  # of users and groups
MODE_MAX = 0o7777

_VENDOR = re.compile(r"[A-Za-z](?:[A-Za-z0-9_.-]*[A-Za-z0-9])?")
_CLASS = _VENDOR  # dots since version 0.6.0
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_.:-]*[A-Za-z0-9])?")


# --- rules ----------------------------------------------------------------------------------------


def _env_faults(env: Iterable[str]) -> Iterator[str]:
    for index, each in enumerate(env):
        if each.find("=") < 1 or "\0" in each:
            yield f"env[{index}]: {shortened(repr(each))} must be of the form NAME=VALUE"


def _path_faults(name: str, path: str) -> Iterator[str]:
    if not path:
        yield f"{name}: it is missing"
    elif not path.startswith("/") or "\0" in path or len(path) > PATH_MAX:
        yield f"{name}: {shortened(repr(path))} must be an absolute path"


def _number_faults(name: str, number: int | None, most: int) -> Iterator[str]:
    if number is not None and not 0 <= number <= most:
        shown = oct(most) if name == "file_mode" else str(most)
        yield f"{name}: {number} must be from 0 to {shown}"


def _name_faults(name: str, text: str, pattern: re.Pattern[str]) -> Iterator[str]:
    if not pattern.fullmatch(text):
        yield f"{name}: {text[:128]!r} is not one that CDI allows"


# --- values ---------------------------------------------------------------------------------------


class DeviceNode(Open, frozen=True, gc=False, metaclass=Checked):
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

    def faults(self) -> Iterator[str]:
        """Yield what breaks a rule of CDI."""
        yield from _path_faults("path", self.path)
        if self.host_path:
            yield from _path_faults("host_path", self.host_path)
        if self.type and self.type not in NODE_TYPES:
            yield f"type: {self.type[:32]!r} must be one of {', '.join(NODE_TYPES)}"
        if self.permissions != NO_PERMISSIONS and self.permissions.strip("rwm"):
            yield f"permissions: {self.permissions[:32]!r} must be of the letters r, w and m"
        for name, number in (("major", self.major), ("minor", self.minor)):
            yield from _number_faults(name, number, ID_MAX)
        yield from _number_faults("file_mode", self.file_mode, MODE_MAX)
        for name, id_ in (("uid", self.uid), ("gid", self.gid)):
            yield from _number_faults(name, id_, ID_MAX)

    @staticmethod
    def instead_of(value: object) -> str:
        """Return the code that makes a device file of a value; "" if there is none."""
        return f"DeviceNode(path={shortened(repr(value))})" if isinstance(value, str) else ""


class Mount(Open, frozen=True, gc=False, metaclass=Checked):
    """A file or folder of the host that the container sees."""

    host_path: str = always("")
    container_path: str = always("")
    options: tuple[str, ...] = ()
    type: str = ""

    def faults(self) -> Iterator[str]:
        """Yield what breaks a rule of CDI."""
        if self.type in ("", "bind"):
            yield from _path_faults("host_path", self.host_path)
        elif not self.host_path:
            yield f"host_path: it is missing; for a {self.type[:32]} write its name"
        yield from _path_faults("container_path", self.container_path)

    @staticmethod
    def instead_of(value: object) -> str:
        """Return the code that makes a mount of a value; "" if there is none."""
        if not isinstance(value, str):
            return ""
        host, _, container = value[:128].partition(":")
        return f"Mount(host_path={host!r}, container_path={container or host!r})"


class Hook(Open, frozen=True, gc=False, metaclass=Checked):
    """A program that a runtime calls on the way."""

    hook_name: str = always("")
    path: str = always("")
    args: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
    timeout: Int64 | None = None

    def faults(self) -> Iterator[str]:
        """Yield what breaks a rule of CDI."""
        if self.hook_name not in HOOK_NAMES:
            yield f"hook_name: {self.hook_name[:64]!r} must be one of {', '.join(HOOK_NAMES)}"
        yield from _path_faults("path", self.path)
        yield from _env_faults(self.env)
        if self.timeout is not None and self.timeout <= 0:
            yield f"timeout: {self.timeout} must be more than 0 seconds"


class NetDevice(Open, frozen=True, gc=False, metaclass=Checked):
    """A network interface of the host that is moved into the container."""

    host_interface_name: str = always("")
    name: str = always("")

    def faults(self) -> Iterator[str]:
        """Yield what breaks a rule of CDI."""
        for name in ("host_interface_name", "name"):
            if not getattr(self, name):
                yield f"{name}: it is missing"


class IntelRdt(Open, frozen=True, gc=False, metaclass=Checked):
    """Shares of cache and memory bandwidth, as Intel's Resource Director Technology has them."""

    clos_id: str = named("closID", "")
    l3_cache_schema: str = named("l3CacheSchema", "")
    mem_bw_schema: str = ""
    schemata: tuple[str, ...] = ()
    enable_monitoring: bool = False

    def faults(self) -> Iterator[str]:
        """Yield what breaks a rule of CDI."""
        text = self.clos_id
        is_name = text not in (".", "..") and not {"/", "\n"} & set(text) and len(text) <= PATH_MAX
        if text != "/" and not is_name:
            yield f"clos_id: {text[:64]!r} must be the name of a file, or /"


class ContainerEdits(Open, frozen=True, gc=False, metaclass=Checked):
    """Edits of a container."""

    env: tuple[str, ...] = ()  # NAME=VALUE
    device_nodes: tuple[DeviceNode, ...] = ()
    net_devices: tuple[NetDevice, ...] = ()
    hooks: tuple[Hook, ...] = ()
    mounts: tuple[Mount, ...] = ()
    intel_rdt: IntelRdt | None = None
    additional_gids: tuple[Int64, ...] = named("additionalGids", ())

    def __add__(self, other: ContainerEdits) -> ContainerEdits:
        """Return both, without duplicates."""
        return replace(
            self,
            env=_joined(self.env, other.env),
            device_nodes=_joined(self.device_nodes, other.device_nodes),
            net_devices=_joined(self.net_devices, other.net_devices),
            hooks=_joined(self.hooks, other.hooks),
            mounts=_joined(self.mounts, other.mounts),
            intel_rdt=other.intel_rdt or self.intel_rdt,
            additional_gids=_joined(self.additional_gids, other.additional_gids),
            extra={**self.extra, **other.extra},
        )

    def faults(self) -> Iterator[str]:
        """Yield what breaks a rule of CDI."""
        yield from _env_faults(self.env)
        for index, gid in enumerate(self.additional_gids):
            yield from _number_faults(f"additional_gids[{index}]", gid, ID_MAX)
        for name in ("host_interface_name", "name"):
            names = [getattr(each, name) for each in self.net_devices]
            for twice in dict.fromkeys(each for each in names if names.count(each) > 1):
                yield f"net_devices: two have the {name} {twice[:64]!r}"

    @staticmethod
    def instead_of(value: object) -> str:
        """Return the code that makes edits of a value; "" if there is none."""
        match value:
            case dict():
                return "ContainerEdits(env=…, device_nodes=…, mounts=…)"
            case DeviceNode():
                return "ContainerEdits(device_nodes=(DeviceNode(…),))"
            case Mount():
                return "ContainerEdits(mounts=(Mount(…),))"
            case str():
                return f"ContainerEdits(env=({shortened(repr(value))},))"
        return ""


NO_EDITS = ContainerEdits()


class CdiDevice(Open, frozen=True, gc=False, metaclass=Checked):
    """What one device brings."""

    name: str = always("")
    annotations: dict[str, str] = field(default_factory=dict)
    container_edits: ContainerEdits = always(NO_EDITS)

    def faults(self) -> Iterator[str]:
        """Yield what breaks a rule of CDI."""
        yield from _name_faults("name", self.name, _NAME)
        if self.container_edits == NO_EDITS:
            yield "container_edits: a device must bring something"


class CdiSpec(Open, frozen=True, gc=False, metaclass=Checked):
    """A file of devices of one kind; the edits of the whole are for whoever gets any of them."""

    cdi_version: str = always(VERSION)
    kind: str = always("")
    annotations: dict[str, str] = field(default_factory=dict)
    devices: tuple[CdiDevice, ...] = always(())
    container_edits: ContainerEdits = NO_EDITS

    @classmethod
    def of(cls, kind: str, devices: Iterable[CdiDevice]) -> CdiSpec:
        """Return a spec of the version that its devices need."""
        given = tuple(devices)
        version = max((_version_of(each.container_edits) for each in given), default=VERSION)
        return cls(cdi_version=version, kind=kind, devices=given)

    def faults(self) -> Iterator[str]:
        """Yield what breaks a rule of CDI."""
        vendor, _, class_ = self.kind.partition("/")
        yield from _name_faults("kind: vendor", vendor, _VENDOR)
        yield from _name_faults("kind: class", class_, _CLASS)
        names = [each.name for each in self.devices]
        for twice in dict.fromkeys(each for each in names if names.count(each) > 1):
            yield f"devices: two have the name {twice[:64]!r}"


class CdiId(NamedTuple):
    """The full name of a device."""

    kind: str  # vendor/class
    name: str

    @classmethod
    def parse(cls, text: str) -> CdiId:
        """Read an id, or raise ValueError with the reason."""
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


def _version_of(edits: ContainerEdits) -> str:
    """Return the version of CDI that edits need; runtimes refuse a spec of an earlier one."""
    rdt = edits.intel_rdt
    if edits.net_devices or (rdt is not None and (rdt.schemata or rdt.enable_monitoring)):
        return "1.1.0"
    return "0.7.0" if rdt is not None or edits.additional_gids else VERSION


def _joined(first: tuple, second: tuple) -> tuple:  # type: ignore[type-arg]
    return (*first, *(each for each in second if each not in first))
