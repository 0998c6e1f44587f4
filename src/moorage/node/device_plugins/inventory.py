"""The devices that plugins list, and how many of them a node can offer (pure).

    a plugin lists        capacity: all, allocatable: the healthy ones
    its stream ends       capacity stays, allocatable is 0
    five minutes later    the resource is gone

Messages of plugins are checked here: too much or invalid is a ValueError, and the last of several
duplicates counts, as in Kubernetes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from msgspec import Struct, structs

from moorage.api import cdi, names
from moorage.node.contract import DeviceRunOptions
from moorage.wire import deviceplugin_pb2 as wire

GRACE_S = 300.0  # for a plugin to come back
VERSION = "v1beta1"
_HEALTHY_STATE = "Healthy"
DEVICES_MAX = 65_536  # of one plugin
ID_LENGTH_MAX = 1024
NUMA_NODES_MAX = 1024
ENTRIES_MAX = 4096  # of each kind, for one container
_PERMISSIONS = frozenset("rwm")


class PluginDevice(Struct, frozen=True, gc=False):
    """A device as its plugin lists it."""

    id: str
    is_healthy: bool = True
    numa_nodes: tuple[int, ...] = ()


class ResourceCounts(NamedTuple):
    """How many devices a node has, and how many of them pods can have."""

    capacity: int
    allocatable: int


class ResourceDevices(Struct, frozen=True):
    """The devices of one resource."""

    devices: Mapping[str, PluginDevice]  # in the order of the plugin
    usable: frozenset[str] = frozenset()  # none while there is no plugin
    stopped_at_s: float | None = None

    @property
    def amounts(self) -> ResourceCounts:
        """The counts that the node reports."""
        return ResourceCounts(len(self.devices), len(self.usable))


class Inventory:
    """All resources of all plugins."""

    def __init__(self) -> None:
        self._stocks: dict[str, ResourceDevices] = {}

    def __contains__(self, resource: str) -> bool:
        return resource in self._stocks

    @property
    def names(self) -> tuple[str, ...]:
        """The resources of plugins."""
        return tuple(self._stocks)

    def stock(self, resource: str) -> ResourceDevices | None:
        """Return the devices of a resource, None if no plugin has it."""
        return self._stocks.get(resource)

    def device(self, resource: str, id_: str) -> PluginDevice | None:
        """Return a device, None if no plugin lists it."""
        stock = self._stocks.get(resource)
        return None if stock is None else stock.devices.get(id_)

    def recall(self, resources: Iterable[str], now_s: float) -> None:
        """Restore resources whose plugins have not registered since the agent started."""
        for resource in resources:
            self._stocks.setdefault(resource, ResourceDevices({}, stopped_at_s=now_s))

    def start(self, resource: str) -> None:
        """Note that a plugin registered; it lists its devices itself."""
        stock = self._stocks.get(resource)
        if stock is not None:
            self._stocks[resource] = structs.replace(stock, stopped_at_s=None)

    def report(self, resource: str, devices: Iterable[PluginDevice]) -> frozenset[str]:
        """Take in a plugin's list; return the devices whose health changed."""
        before = self._stocks.get(resource)
        old = {} if before is None else before.devices
        new = {each.id: each for each in devices}
        usable = frozenset(each.id for each in new.values() if each.is_healthy)
        self._stocks[resource] = ResourceDevices(new, usable)
        return frozenset(
            each.id
            for each in new.values()
            # A device that was away may still be allocated.
            if each.id not in old or old[each.id].is_healthy != each.is_healthy
        )

    def stop(self, resource: str, now_s: float) -> None:
        """Note that the last plugin of a resource is gone: nobody new gets its devices."""
        stock = self._stocks.get(resource)
        if stock is not None:
            self._stocks[resource] = ResourceDevices(stock.devices, stopped_at_s=now_s)

    @property
    def expires_at_s(self) -> float | None:
        """When the next resource expires, None if none does."""
        stops = [each.stopped_at_s for each in self._stocks.values()]
        return min((each + GRACE_S for each in stops if each is not None), default=None)

    def expire(self, now_s: float) -> tuple[str, ...]:
        """Drop the resources whose plugins have been gone for too long; return them."""
        gone = tuple(
            resource
            for resource, stock in self._stocks.items()
            if stock.stopped_at_s is not None and now_s - stock.stopped_at_s >= GRACE_S
        )
        for resource in gone:
            del self._stocks[resource]
        return gone

    def amounts(self) -> Mapping[str, ResourceCounts]:
        """Return the counts of each resource."""
        return {resource: stock.amounts for resource, stock in self._stocks.items()}


# --- messages -------------------------------------------------------------------------------------


def check_registration(resource: str, versions: Iterable[str]) -> None:
    """Raise ValueError for a resource name or versions that cannot be registered."""
    listed = tuple(versions)
    if VERSION not in listed:
        shown = '", "'.join(each[:64] for each in listed[:8])
        text = f'requested API version "{shown}" is not supported by kubelet.'
        raise ValueError(f'{text} Supported version is ["{VERSION}"]')
    if not names.is_extended_resource(resource):
        raise ValueError(f'the ResourceName "{resource[:256]}" is invalid')


def check_endpoint(name: str) -> None:
    """Raise ValueError if this is not the name of a socket in the folder."""
    if not name or "/" in name or "\0" in name or name in (".", ".."):
        raise ValueError(f"the Endpoint {name[:256]!r} is not the name of a socket in the folder")


def devices_of(message: wire.ListAndWatchResponse) -> tuple[PluginDevice, ...]:
    """Return the devices of a list."""
    _bound("devices", message.devices, DEVICES_MAX)
    found: dict[str, PluginDevice] = {}
    for each in message.devices:
        if not 0 < len(each.ID) <= ID_LENGTH_MAX:
            length = f"must have 1 to {ID_LENGTH_MAX} characters, not {len(each.ID)}"
            raise ValueError(f"device {each.ID[:64]!r}: its ID {length}")
        nodes = [node.ID for node in each.topology.nodes]
        _bound(f"NUMA nodes of device {each.ID[:64]!r}", nodes, NUMA_NODES_MAX)
        numa_nodes = tuple(sorted({node for node in nodes if node >= 0}))
        found[each.ID] = PluginDevice(each.ID, each.health == _HEALTHY_STATE, numa_nodes)
    return tuple(found.values())


def duplicates(message: wire.ListAndWatchResponse) -> int:
    """Return how many devices are listed more than once."""
    return len(message.devices) - len({each.ID for each in message.devices})


def run_options_of(message: wire.ContainerAllocateResponse) -> DeviceRunOptions:
    """Return the run options that a plugin returns for a container."""
    for what in ("envs", "mounts", "devices", "annotations", "cdi_devices"):
        _bound(what, getattr(message, what), ENTRIES_MAX)
    edits = cdi.ContainerEdits(
        env=tuple(f"{_variable(name)}={value}" for name, value in sorted(message.envs.items())),
        device_nodes=tuple(map(_device_node, message.devices)),
        mounts=tuple(map(_mount, message.mounts)),
    )
    ids = tuple(str(cdi.CdiId.parse(each.name)) for each in message.cdi_devices)
    return DeviceRunOptions(
        tuple(dict.fromkeys(ids)), edits, dict(sorted(message.annotations.items()))
    )


def joined(parts: Iterable[DeviceRunOptions]) -> DeviceRunOptions:
    """Return the run options of several plugins for one container; the first one wins."""
    ids: dict[str, None] = {}
    env: dict[str, str] = {}
    nodes: dict[str, cdi.DeviceNode] = {}
    mounts: dict[str, cdi.Mount] = {}
    annotations: dict[str, str] = {}
    for part in parts:
        ids.update(dict.fromkeys(part.cdi_ids))
        for each in part.edits.env:
            env.setdefault(each.partition("=")[0], each)
        for node in part.edits.device_nodes:
            nodes.setdefault(node.path, node)
        for mount in part.edits.mounts:
            mounts.setdefault(mount.container_path, mount)
        annotations = {**part.annotations, **annotations}
    edits = cdi.ContainerEdits(
        env=tuple(env.values()), device_nodes=tuple(nodes.values()), mounts=tuple(mounts.values())
    )
    return DeviceRunOptions(tuple(ids), edits, annotations)


def _variable(name: str) -> str:
    if not name or "=" in name or "\0" in name:
        raise ValueError(f"{name[:64]!r} cannot be the name of an environment variable")
    return name


def _device_node(message: wire.DeviceSpec) -> cdi.DeviceNode:
    if not _PERMISSIONS.issuperset(message.permissions):
        text = f"device {message.host_path[:256]!r}: permissions {message.permissions[:16]!r}"
        raise ValueError(f"{text} are not of r, w and m")
    host, inside = _path(message.host_path), _path(message.container_path)
    return cdi.DeviceNode(path=inside, host_path=host, permissions=message.permissions)


def _mount(message: wire.Mount) -> cdi.Mount:
    options = ("rbind", "rprivate", "ro" if message.read_only else "rw")
    host, inside = _path(message.host_path), _path(message.container_path)
    return cdi.Mount(host_path=host, container_path=inside, options=options)


def _path(text: str) -> str:
    if not text.startswith("/") or "\0" in text:
        raise ValueError(f"{text[:256]!r} is not an absolute path")
    return text


def _bound(what: str, values: Collection[object], most: int) -> None:
    if len(values) > most:
        raise ValueError(f"{len(values)} {what} are more than the {most} that are taken")
