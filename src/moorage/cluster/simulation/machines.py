"""The Nodes of simulated machines: registered once, ready, with slices and leases.

A machine registers when the program starts, as a kubelet does: a Node that is deleted later is not
recreated until then. The Node owns its slices; a slice that is deleted alone is published again.
Changes by others (labels, taints) are kept. A DeviceClass is created once for all machines, and not
again after somebody deletes it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from datetime import timedelta
from typing import ClassVar, NamedTuple

from msgspec.structs import replace

from moorage.api.codec import to_tree
from moorage.api.coordination import Lease, LeaseSpec
from moorage.api.core import Namespace, Node
from moorage.api.core.node import READY, NodeStatus
from moorage.api.meta import ObjectMeta, OwnerReference
from moorage.api.resource.v1 import DeviceClass, ResourceSlice
from moorage.api.timestamp import MicroTimestamp, Timestamp
from moorage.client.contract import Client, list_all
from moorage.client.indexer import Indexer, ObjectKey
from moorage.client.writes import Create, Patch, RequeueAfter, Target, Update, Write
from moorage.controllers.controller import Answers, Controller, ObjectChange, Step
from moorage.hardware import Catalogue, Fleet, NumaNodeForm
from moorage.insight.messages import natural_order

SIMULATED = "moorage.dev/simulated"  # an annotation of nodes that nobody but us looks after
_SIMULATED_NAME = "/simulated"
KUBELET = "v1.37.0+moorage"
LEASES = "kube-node-lease"
LEASE_S = 40
RENEW_S = 10.0

# type, status, reason, message
_CONDITIONS = (
    ("MemoryPressure", "False", "KubeletHasSufficientMemory", "simulated"),
    ("DiskPressure", "False", "KubeletHasNoDiskPressure", "simulated"),
    ("PIDPressure", "False", "KubeletHasSufficientPID", "simulated"),
    (READY, "True", "KubeletReady", "simulated"),
)


class SimulatedMachine(NamedTuple):
    """The objects of one simulated machine."""

    node: Node
    slices: tuple[ResourceSlice, ...]
    classes: tuple[DeviceClass, ...]


def fleets_of(names: Iterable[str], form: NumaNodeForm = NumaNodeForm.SCALAR) -> list[Fleet]:
    """Return the machines of profiles such as `dgx-h100x4`, or raise ProfileError."""
    catalogue, fleets, taken = Catalogue(), [], list[str]()
    for name in names:
        fleet = catalogue.fleet(name, form, taken=taken)
        taken += [node.metadata.name for node in fleet.nodes]
        fleets.append(fleet)
    return fleets


def is_simulated(node: Node | None) -> bool:
    """Return whether a Node is simulated: it has the annotation, whoever set it.

    The domain does not matter: state that was written under another one is opened, too.
    """
    annotations = {} if node is None else node.metadata.annotations
    return any(
        name.endswith(_SIMULATED_NAME) and value == "true" for name, value in annotations.items()
    )


async def kept_nodes(client: Client, given: Collection[str]) -> list[str]:
    """Return the simulated nodes of earlier starts that are not among those given now."""
    nodes = (await list_all(client, Node)).values
    found = (each.metadata.name for each in nodes if is_simulated(each))
    return sorted((name for name in found if name not in given), key=natural_order)


class SimulatedMachines(Controller):
    """Reconciles simulated Nodes."""

    name: ClassVar[str] = "simulated-machines"
    kinds = (Node, Namespace, Lease, ResourceSlice, DeviceClass)
    optional = (ResourceSlice, DeviceClass)
    has_independent_steps = True

    def __init__(self, fleets: Iterable[Fleet] = ()) -> None:
        self._machines = {each.node.metadata.name: each for each in _machines(fleets)}
        self._registered: set[str] = set()
        self._classes: set[str] = set()  # those that are there or have been

    def keys(self, objects: Indexer, change: ObjectChange) -> Iterable[ObjectKey]:
        """Yield the machines that a change affects."""
        match change.value:
            case Namespace(metadata=metadata):
                if metadata.name == LEASES and change.old is None:
                    yield from (("", name) for name in self._machines)
            case Node(metadata=metadata):
                yield "", metadata.name
            case ResourceSlice(spec=spec):
                if change.gone is not None and spec.node_name in self._machines:
                    yield "", spec.node_name

    def reconcile(
        self, objects: Indexer, key: ObjectKey, now: Timestamp, answers: Answers
    ) -> Iterable[Step]:
        """Register a machine, keep its Node ready and its devices published."""
        name = key[1]
        node, machine = objects.get(Node, *key), self._machines.get(name)
        if node is None:
            if machine is not None and name not in self._registered:
                yield Create(machine.node)
            return
        if not is_simulated(node) or node.metadata.deletion_timestamp is not None:
            return
        if machine is not None:
            self._registered.add(name)
            yield from self._missing_classes(objects, machine)
            yield from _missing_slices(objects, machine, node)
        if not is_ready(node):
            yield _ready(node, machine, now)
        yield from _lease(objects, node, now)
        yield RequeueAfter(key, RENEW_S)

    def wrote(
        self, objects: Indexer, key: ObjectKey, write: Write, now: Timestamp
    ) -> Iterable[Step]:
        """Record a created class; requeue a machine that has registered."""
        match write:
            case Create(value=DeviceClass(metadata=metadata)):
                self._classes.add(metadata.name)
            case Create(value=Node()):
                yield RequeueAfter(key, 0.0)

    def _missing_classes(self, objects: Indexer, machine: SimulatedMachine) -> Iterator[Step]:
        for each in machine.classes:
            name = each.metadata.name
            if objects.get(DeviceClass, "", name) is not None:
                self._classes.add(name)
            elif name not in self._classes:
                yield Create(each)


def _machines(fleets: Iterable[Fleet]) -> Iterator[SimulatedMachine]:
    for fleet in fleets:
        by_node: dict[str, list[ResourceSlice]] = {}
        for each in fleet.slices:
            by_node.setdefault(each.spec.node_name or "", []).append(each)
        for node in fleet.nodes:
            annotations = {**node.metadata.annotations, SIMULATED: "true"}
            own = replace(node, metadata=replace(node.metadata, annotations=annotations))
            slices = tuple(by_node.get(node.metadata.name, ()))
            yield SimulatedMachine(own, slices, fleet.classes)


def _missing_slices(objects: Indexer, machine: SimulatedMachine, node: Node) -> Iterator[Step]:
    for each in machine.slices:
        if objects.get(ResourceSlice, "", each.metadata.name) is None:
            metadata = replace(each.metadata, owner_references=(_owner(node),))
            yield Create(replace(each, metadata=metadata))


def _owner(node: Node) -> OwnerReference:
    name, uid = node.metadata.name, node.metadata.uid
    return OwnerReference(api_version="v1", kind="Node", name=name, uid=uid)


def is_ready(node: Node) -> bool:
    """Return whether a Node has the status that its machine reports."""
    ready = any(each.type == READY and each.status == "True" for each in node.status.conditions)
    return ready and node.status.node_info.kubelet_version == KUBELET


def _ready(node: Node, machine: SimulatedMachine | None, now: Timestamp) -> Patch:
    """Return the patch that sets a Node's status."""
    own = NodeStatus() if machine is None else machine.node.status
    at = str(now.truncated())
    status = {
        "conditions": [
            {
                "type": type_,
                "status": status,
                "reason": reason,
                "message": message,
                "lastHeartbeatTime": at,
                "lastTransitionTime": at,
            }
            for type_, status, reason, message in _CONDITIONS
        ],
        "addresses": [{"type": "Hostname", "address": node.metadata.name}],
        "nodeInfo": {**to_tree(own.node_info), "kubeletVersion": KUBELET},
    }
    if machine is not None:
        resources = {name: str(amount) for name, amount in own.capacity.items()}
        status |= {"capacity": resources, "allocatable": resources}
        status |= {"declaredFeatures": list(own.declared_features)}
    return Patch(Target.of(node), {"status": status}, "status")


def _lease(objects: Indexer, node: Node, now: Timestamp) -> Iterator[Step]:
    """Create or renew the node's lease."""
    name = node.metadata.name
    found = objects.get(Lease, LEASES, name)
    renewed = MicroTimestamp(now.instant)
    if found is None:
        spec = LeaseSpec(holder_identity=name, lease_duration_seconds=LEASE_S, renew_time=renewed)
        metadata = ObjectMeta(name=name, namespace=LEASES, owner_references=(_owner(node),))
        yield Create(Lease(metadata=metadata, spec=spec))
    elif _is_due(found, now):
        yield Update(replace(found, spec=replace(found.spec, renew_time=renewed)))


def _is_due(lease: Lease, now: Timestamp) -> bool:
    renewed = lease.spec.renew_time
    if renewed is None:
        return True
    age = now.instant - renewed.instant
    return not timedelta() <= age < timedelta(seconds=RENEW_S * 0.9)
