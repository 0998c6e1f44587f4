"""What plugins say, checked: nobody looks at their messages after this.

# too much or senseless    ValueError, which says what
# twice the same           the last counts, as with Kubernetes
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from mooring.api import cdi, names
from mooring.node.contract import Given
from mooring.node.device_plugins.inventory import PluginDevice
from mooring.wire import deviceplugin_pb2 as wire

VERSION = "v1beta1"
HEALTHY = "Healthy"
DEVICES_MAX = 65_536  # of one plugin
ID_LENGTH_MAX = 1024
NUMA_NODES_MAX = 1024
ENTRIES_MAX = 4096  # of each kind, for one container
_PERMISSIONS = frozenset("rwm")


def check_registration(resource: str, versions: Iterable[str]) -> None:
    """Raise ValueError if a plugin of this name and these versions cannot be had."""
    known = tuple(versions)
    if VERSION not in known:
        asked = '", "'.join(each[:64] for each in known[:8])
        text = f'requested API version "{asked}" is not supported by kubelet.'
        raise ValueError(f'{text} Supported version is ["{VERSION}"]')
    if not names.is_extended_resource(resource):
        raise ValueError(f'the ResourceName "{resource[:256]}" is invalid')


def check_endpoint(name: str) -> None:
    """Raise ValueError if a socket of this name cannot be in the folder of plugins."""
    if not name or "/" in name or "\0" in name or name in (".", ".."):
        raise ValueError(f"the Endpoint {name[:256]!r} is not the name of a socket in the folder")


def devices_of(message: wire.ListAndWatchResponse) -> tuple[PluginDevice, ...]:
    """Return the devices that a plugin lists."""
    _bound("devices", message.devices, DEVICES_MAX)
    found: dict[str, PluginDevice] = {}
    for each in message.devices:
        if not 0 < len(each.ID) <= ID_LENGTH_MAX:
            length = f"must have 1 to {ID_LENGTH_MAX} characters, not {len(each.ID)}"
            raise ValueError(f"device {each.ID[:64]!r}: its ID {length}")
        nodes = [node.ID for node in each.topology.nodes]
        _bound(f"NUMA nodes of device {each.ID[:64]!r}", nodes, NUMA_NODES_MAX)
        numa_nodes = tuple(sorted({node for node in nodes if node >= 0}))
        found[each.ID] = PluginDevice(each.ID, each.health == HEALTHY, numa_nodes)
    return tuple(found.values())


def duplicates(message: wire.ListAndWatchResponse) -> int:
    """Return how many devices are listed more often than once."""
    return len(message.devices) - len({each.ID for each in message.devices})


def given_of(message: wire.ContainerAllocateResponse) -> Given:
    """Return what a plugin gives a container."""
    for what in ("envs", "mounts", "devices", "annotations", "cdi_devices"):
        _bound(what, getattr(message, what), ENTRIES_MAX)
    edits = cdi.ContainerEdits(
        env=tuple(f"{_variable(name)}={value}" for name, value in sorted(message.envs.items())),
        device_nodes=tuple(map(_device_node, message.devices)),
        mounts=tuple(map(_mount, message.mounts)),
    )
    ids = tuple(str(cdi.CdiId.parse(each.name)) for each in message.cdi_devices)
    return Given(tuple(dict.fromkeys(ids)), edits, dict(sorted(message.annotations.items())))


def joined(parts: Iterable[Given]) -> Given:
    """Return what several plugins give one container; where they differ, the first counts."""
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
    return Given(tuple(ids), edits, annotations)


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
