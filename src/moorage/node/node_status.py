"""The Node object: its registration, status and lease (pure), and the machine behind it."""

from __future__ import annotations

import os
import platform
import socket
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from moorage.api.codec import to_tree
from moorage.api.coordination import Lease, LeaseSpec
from moorage.api.core import Node
from moorage.api.core.node import (
    READY,
    DaemonEndpoint,
    NodeAddress,
    NodeCondition,
    NodeDaemonEndpoints,
    NodeStatus,
    NodeSystemInfo,
)
from moorage.api.core.resources import CPU, EPHEMERAL_STORAGE, HUGE_PAGES_PREFIX, MEMORY, PODS
from moorage.api.gates import Gate, Gates
from moorage.api.meta import ObjectMeta, OwnerReference
from moorage.api.quantity import Quantity
from moorage.api.quantity_text import Format
from moorage.api.timestamp import MicroTimestamp, Timestamp
from moorage.client.writes import Patch, Target
from moorage.kit.go_platform import go_arch

KUBELET = "v1.37.0+moorage"
LEASES = "kube-node-lease"
LEASE_S = 40
RENEW_S = 10.0
REPORT_S = 300.0  # how often an unchanged status is written
PODS_MAX = 110

# Type, reason and message of conditions that always hold here.
_WELL = (
    ("MemoryPressure", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ("DiskPressure", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
)
OWN = (*(type_ for type_, _, _ in _WELL), READY)

# Features that pods may need, by their feature gates.
DECLARED = (Gate.DRA_NODE_ALLOCATABLE_RESOURCES, Gate.DRA_OPTIONAL_NODE_OPERATIONS)
# Reserved by default, as the kubelet does so that it need not evict.
KEPT_MEMORY = Quantity.parse("100Mi")
KEPT_DISK_PART = 10  # in percent
TEXT_MAX = 256


class PluginResource(NamedTuple):
    """How many devices of a plugin's resource exist, and how many pods can have."""

    capacity: Quantity
    allocatable: Quantity


class NodeDescription(Struct, frozen=True):
    """What does not change about a node while its agent runs."""

    name: str
    machine: MachineInfo
    address: str
    runtime: str
    gates: Gates
    pods_max: int = PODS_MAX
    reserved: Mapping[str, Quantity] = {}  # not for pods
    labels: Mapping[str, str] = {}
    port: int = 0  # of the kubelet server


def new_node(description: NodeDescription) -> Node:
    """Return the node as it registers."""
    name = description.name
    info = description.machine.info
    labels = {
        "kubernetes.io/hostname": name,
        "kubernetes.io/arch": info.architecture,
        "kubernetes.io/os": info.operating_system,
        **description.labels,
    }
    return Node(metadata=ObjectMeta(name=name, labels=labels))


def missing_labels(node: Node, description: NodeDescription) -> Patch | None:
    """Return the patch that adds missing labels, if any."""
    wanted = new_node(description).metadata.labels
    labels = {key: value for key, value in wanted.items() if node.metadata.labels.get(key) != value}
    return Patch(Target.of(node), {"metadata": {"labels": labels}}) if labels else None


def declared_features(gates: Gates) -> tuple[str, ...]:
    """Return the features that pods may rely on."""
    if not gates.enabled(Gate.NODE_DECLARED_FEATURES):
        return ()
    return tuple(sorted(gate.value for gate in DECLARED if gates.enabled(gate)))


def status_of(
    node: Node,
    description: NodeDescription,
    *,
    more: Mapping[str, PluginResource],
    trouble: str,
    now: Timestamp,
) -> NodeStatus:
    """Return a node's status; `more` has device plugins' resources, `trouble` why not ready."""
    capacity = dict(description.machine.capacity)
    capacity[PODS] = Quantity.from_int(description.pods_max)
    info = replace(
        description.machine.info,
        kubelet_version=KUBELET,
        kube_proxy_version=node.status.node_info.kube_proxy_version,
        container_runtime_version=description.runtime,
    )
    return replace(
        node.status,
        capacity={**capacity, **{name: each.capacity for name, each in more.items()}},
        allocatable={
            **{name: _left(name, has, description) for name, has in capacity.items()},
            **{name: each.allocatable for name, each in more.items()},
        },
        conditions=_conditions(node, trouble, now),
        addresses=(
            NodeAddress(type="InternalIP", address=description.address),
            NodeAddress(type="Hostname", address=description.machine.hostname),
        ),
        node_info=info,
        daemon_endpoints=NodeDaemonEndpoints(
            kubelet_endpoint=DaemonEndpoint(port=description.port)
        ),
        declared_features=declared_features(description.gates),
    )


def _left(name: str, capacity: Quantity, description: NodeDescription) -> Quantity:
    reserved = description.reserved.get(name)
    if reserved is None:
        return capacity
    left = capacity - reserved
    return left if left.sign > 0 else Quantity.ZERO


def _conditions(node: Node, trouble: str, now: Timestamp) -> tuple[NodeCondition, ...]:
    before = {each.type: each for each in node.status.conditions}
    kept = tuple(each for each in node.status.conditions if each.type not in OWN)
    own = [(type_, "False", reason, message) for type_, reason, message in _WELL]
    own.append(
        (READY, "False", "KubeletNotReady", trouble)
        if trouble
        else (READY, "True", "KubeletReady", "kubelet is posting ready status")
    )
    at = now.truncated()
    return (
        *kept,
        *(
            NodeCondition(
                type=type_,
                status=status,
                reason=reason,
                message=message,
                last_heartbeat_time=at,
                last_transition_time=_since(before.get(type_), status, at),
            )
            for type_, status, reason, message in own
        ),
    )


def _since(before: NodeCondition | None, status: str, now: Timestamp) -> Timestamp:
    if before is not None and before.status == status and before.last_transition_time:
        return before.last_transition_time
    return now


def patch_of(node: Node, status: NodeStatus, now: Timestamp) -> Patch | None:
    """Return the patch that writes a status; None if an equal one was written recently."""
    before, after = to_tree(node.status), to_tree(status)
    if _timeless(before) == _timeless(after) and not _is_due(node, now):
        return None
    body: dict[str, Any] = {
        key: after.get(key)
        for key in before.keys() | after.keys()
        if before.get(key) != after.get(key)
    }
    for name in ("capacity", "allocatable"):  # null removes a resource
        if name in body:
            gone = before.get(name, {}).keys() - after.get(name, {}).keys()
            body[name] = {**(body[name] or {}), **dict.fromkeys(gone)}
    metadata = {"resourceVersion": node.metadata.resource_version}
    return Patch(Target.of(node), {"metadata": metadata, "status": body}, "status")


def _timeless(status: Mapping[str, Any]) -> dict[str, Any]:
    conditions = [
        {key: value for key, value in each.items() if key != "lastHeartbeatTime"}
        for each in status.get("conditions", ())
    ]
    return {**status, "conditions": conditions}


def _is_due(node: Node, now: Timestamp) -> bool:
    for each in node.status.conditions:
        if each.type == READY and each.last_heartbeat_time is not None:
            age = now.instant - each.last_heartbeat_time.instant
            return not timedelta() <= age < timedelta(seconds=REPORT_S)
    return True


def lease_of(node: Node, before: Lease | None, now: Timestamp) -> Lease:
    """Return the renewed lease of a node."""
    name = node.metadata.name
    renewed = MicroTimestamp(now.instant)
    if before is not None:
        spec = replace(before.spec, renew_time=renewed, holder_identity=name)
        return replace(before, spec=replace(spec, lease_duration_seconds=LEASE_S))
    owner = OwnerReference(api_version="v1", kind="Node", name=name, uid=node.metadata.uid)
    metadata = ObjectMeta(name=name, namespace=LEASES, owner_references=(owner,))
    spec = LeaseSpec(holder_identity=name, lease_duration_seconds=LEASE_S, renew_time=renewed)
    return Lease(metadata=metadata, spec=spec)


def kept_free(capacity: Mapping[str, Quantity]) -> dict[str, Quantity]:
    """Return the resources that a node reserves by default."""
    disk = capacity.get(EPHEMERAL_STORAGE, Quantity.ZERO)
    return {
        MEMORY: KEPT_MEMORY,
        EPHEMERAL_STORAGE: Quantity.from_int(disk.value * KEPT_DISK_PART // 100),
        CPU: Quantity.ZERO,
    }


# --- the machine ----------------------------------------------------------------------------------


class MachineInfo(Struct, frozen=True):
    """The size and software of a machine."""

    capacity: dict[str, Quantity]
    info: NodeSystemInfo
    hostname: str


def read_machine(folder: Path, root: Path = Path("/")) -> MachineInfo:
    """Return this machine; `folder` is on the disk that pods use."""
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
    return MachineInfo(_capacity(folder, root), info, socket.gethostname().lower())


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
    """Return the memory in huge pages, by page size: hugepages-2Mi."""
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
    """Return this machine's address as another one would see it; nothing is sent."""
    try:
        family, _, _, _, place = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, socket.SOCK_DGRAM) as found:
            found.connect(place)
            return str(found.getsockname()[0])
    except OSError:
        return "127.0.0.1"
