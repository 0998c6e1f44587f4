"""Which container has which device, and which devices a container gets (pure).

A device is taken from the moment it is chosen, so that two pods that come together do not both get
it; once its plugin agreed it is held. Containers of one pod may hold the same device one after the
other. How devices are chosen:

1. A container keeps the devices it has; their number cannot change.
2. Devices of init containers that will have ended come first: the pod has them already.
3. The rest are free and healthy ones: those that the plugin prefers, then those it lists first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from msgspec import Struct, field

from moorage.api.core import Container, Pod
from moorage.api.core.pod import ResourceHealth, ResourceStatus
from moorage.node.contract import DeviceRunOptions
from moorage.node.device_plugins.inventory import PluginDevice, ResourceDevices
from moorage.wire import podresources_pb2 as wire

HEALTHY, UNHEALTHY = "Healthy", "Unhealthy"


class AllotmentKey(NamedTuple):
    """Whose devices of which resource."""

    pod_uid: str
    container: str
    resource: str


class Allotment(Struct, frozen=True):
    """The devices of one resource in one container."""

    pod_uid: str
    container: str
    resource: str
    devices: tuple[PluginDevice, ...]  # as they were when they were allocated
    run_options: DeviceRunOptions = field(default=DeviceRunOptions(), name="given")

    @property
    def key(self) -> AllotmentKey:
        """Whose it is."""
        return AllotmentKey(self.pod_uid, self.container, self.resource)

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of the devices."""
        return tuple(each.id for each in self.devices)


class DeviceLedger:
    """All devices that are taken or held."""

    def __init__(self, allotments: Iterable[Allotment] = ()) -> None:
        self._pods: dict[str, dict[tuple[str, str], Allotment]] = {}
        self._counts: dict[str, Counter[str]] = {}
        for each in allotments:
            self.hold(each)

    @property
    def pods(self) -> frozenset[str]:
        """The pods that hold devices."""
        return frozenset(self._pods)

    @property
    def allotments(self) -> tuple[Allotment, ...]:
        """All allotments."""
        return tuple(each for held in self._pods.values() for each in held.values())

    def taken(self, resource: str) -> frozenset[str]:
        """Return the devices of a resource that nobody else can have."""
        return frozenset(self._counts.get(resource, ()))

    def amounts(self) -> Mapping[str, int]:
        """Return how many devices of each resource are taken."""
        return {resource: len(counts) for resource, counts in self._counts.items()}

    def knows(self, resource: str) -> bool:
        """Return whether anybody has devices of a resource."""
        return resource in self._counts

    def held(self, pod_uid: str, container: str, resource: str) -> Allotment | None:
        """Return the devices of a resource in a container."""
        return self._pods.get(pod_uid, {}).get((container, resource))

    def of(self, pod_uid: str, container: str) -> tuple[Allotment, ...]:
        """Return all that a container has."""
        held = self._pods.get(pod_uid, {})
        return tuple(each for (name, _), each in held.items() if name == container)

    def take(self, resource: str, ids: Iterable[str]) -> None:
        """Reserve devices."""
        self._counts.setdefault(resource, Counter()).update(ids)

    def release(self, resource: str, ids: Iterable[str]) -> None:
        """Undo one `take`."""
        counts = self._counts[resource]
        counts.subtract(ids)
        for id_ in [id_ for id_, count in counts.items() if count <= 0]:
            del counts[id_]
        if not counts:
            del self._counts[resource]

    def hold(self, allotment: Allotment) -> None:
        """Give devices to a container."""
        key = (allotment.container, allotment.resource)
        assert key not in self._pods.get(allotment.pod_uid, {}), "a container gets them once"
        self.take(allotment.resource, allotment.ids)
        self._pods.setdefault(allotment.pod_uid, {})[key] = allotment

    def drop(self, pod_uid: str) -> bool:
        """Release all devices of a pod; return whether it had any."""
        held = self._pods.pop(pod_uid, {})
        for each in held.values():
            self.release(each.resource, each.ids)
        return bool(held)

    def holders(self, resource: str, ids: frozenset[str]) -> frozenset[str]:
        """Return the pods that hold any of these devices."""
        return frozenset(
            each.pod_uid
            for each in self.allotments
            if each.resource == resource and not ids.isdisjoint(each.ids)
        )


# --- choosing -------------------------------------------------------------------------------------


class DeviceChoice(NamedTuple):
    """Devices to choose from."""

    size: int
    own: tuple[str, ...]  # chosen already
    free: tuple[str, ...]  # candidates for the others

    @property
    def is_settled(self) -> bool:
        """Whether nothing is left to choose."""
        return len(self.own) == self.size


class AllocationRefusal(NamedTuple):
    """Why a container cannot have devices."""

    text: str
    is_final: bool = True  # False: the plugin may come back


def requested_devices(pod: Pod, container: Container) -> Iterator[tuple[str, int]]:
    """Yield resource and count of a container's requests, if plugins have them.

    Resources that claims serve are not requested of plugins, even if both could serve them.
    """
    status = pod.status.extended_resource_claim_status
    mappings = () if status is None else status.request_mappings
    by_claims = {each.resource_name for each in mappings if each.container_name == container.name}
    for resource, quantity in container.resources.limits.items():
        if resource not in by_claims and quantity.value > 0:
            yield resource, quantity.value


def reusable(
    pod: Pod, container: Container, resource: str, ledger: DeviceLedger
) -> tuple[str, ...]:
    """Return the devices of earlier containers of a pod that a container can take over."""
    found: dict[str, None] = {}  # a set that keeps its order
    ends_first = {each.name for each in pod.spec.init_containers if not each.is_sidecar}
    for each in (*pod.spec.init_containers, *pod.spec.containers):
        if each.name == container.name:
            break
        allotment = ledger.held(pod.metadata.uid, each.name, resource)
        for id_ in () if allotment is None else allotment.ids:
            if each.name in ends_first:
                found[id_] = None
            else:
                found.pop(id_, None)
    return tuple(found)


def check_size(held: Allotment, size: int) -> AllocationRefusal | None:
    """Return why a container cannot change its number of devices, None if it does not."""
    if len(held.ids) == size:
        return None
    who = f'pod "{held.pod_uid}" container "{held.container}"'
    was = f'resource "{held.resource}" from {len(held.ids)} to {size}'
    return AllocationRefusal(f"{who} changed request for {was}")


def check_health(held: Allotment, stock: ResourceDevices | None) -> AllocationRefusal | None:
    """Return why a container cannot start with the devices it had, None if it can."""
    if stock is None:
        return AllocationRefusal(
            f"cannot allocate unregistered device {held.resource}", is_final=False
        )
    if not stock.usable:
        return AllocationRefusal(
            _unhealthy("no healthy devices present", held.resource), is_final=False
        )
    if not stock.usable.issuperset(held.ids):
        text = "previously allocated devices are no longer healthy"
        return AllocationRefusal(_unhealthy(text, held.resource))
    return None


def choose(
    resource: str,
    size: int,
    *,
    own: Sequence[str],
    stock: ResourceDevices | None,
    taken: frozenset[str],
) -> DeviceChoice | AllocationRefusal:
    """Return the devices to choose from, or why there are too few."""
    if stock is None:
        return AllocationRefusal(f"cannot allocate unregistered device {resource}")
    if not stock.usable:
        return AllocationRefusal(_unhealthy("no healthy devices present", resource))
    mine = tuple(own[:size])
    needed = size - len(mine)
    usable = stock.usable - taken - set(mine)
    if len(usable) < needed:
        numbers = f"Requested: {needed}, Available: {len(usable)}"
        return AllocationRefusal(
            f"requested number of devices unavailable for {resource}. {numbers}"
        )
    return DeviceChoice(size, mine, tuple(id_ for id_ in stock.devices if id_ in usable))


def settle(choice: DeviceChoice, preferred: Iterable[str] = ()) -> tuple[str, ...]:
    """Return the chosen devices; preferred ones that are not free are skipped."""
    wished = tuple(preferred)
    free = set(choice.free) if wished else ()
    found = dict.fromkeys(choice.own)  # a set that keeps its order
    for id_ in chain((each for each in wished if each in free), choice.free):
        if len(found) == choice.size:
            break
        found[id_] = None
    return tuple(found)


def _unhealthy(why: str, resource: str) -> str:
    return f"{why}; cannot allocate unhealthy devices {resource}"


# --- reporting ------------------------------------------------------------------------------------


def resource_statuses(
    held: Iterable[Allotment], is_healthy: Callable[[str, str], bool]
) -> tuple[ResourceStatus, ...]:
    """Return the health of a container's devices, for its status."""
    return tuple(
        ResourceStatus(
            name=each.resource,
            resources=tuple(
                ResourceHealth(
                    resource_id=id_,
                    health=HEALTHY if is_healthy(each.resource, id_) else UNHEALTHY,
                )
                for id_ in each.ids
            ),
        )
        for each in held
    )


def container_devices(held: Iterable[Allotment]) -> Iterator[wire.ContainerDevices]:
    """Yield a container's devices for PodResources, each with its NUMA nodes."""
    for each in held:
        for device in each.devices:
            yield _device(each.resource, device)


def allocatable_devices(
    devices: Mapping[str, Iterable[PluginDevice]],
) -> Iterator[wire.ContainerDevices]:
    """Yield the devices that the node can allocate, for PodResources."""
    for resource, some in devices.items():
        for device in some:
            yield _device(resource, device)


def _device(resource: str, device: PluginDevice) -> wire.ContainerDevices:
    message = wire.ContainerDevices(resource_name=resource, device_ids=[device.id])
    for node in device.numa_nodes:
        message.topology.nodes.add(ID=node)
    return message
