"""What is told of the devices of plugins: in the status of pods, and by PodResources."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from mooring.api.core.podstatus import ResourceHealth, ResourceStatus
from mooring.node.device_plugins.inventory import PluginDevice
from mooring.node.device_plugins.ledger import Allotment
from mooring.wire import podresources_pb2 as wire

HEALTHY, UNHEALTHY = "Healthy", "Unhealthy"


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
    """Yield a container's devices as the service lists them: one by one, each with its place."""
    for each in held:
        for device in each.devices:
            yield _device(each.resource, device)


def allocatable_devices(
    devices: Mapping[str, Iterable[PluginDevice]],
) -> Iterator[wire.ContainerDevices]:
    """Yield the devices that the node can give, as the service lists them."""
    for resource, some in devices.items():
        for device in some:
            yield _device(resource, device)


def _device(resource: str, device: PluginDevice) -> wire.ContainerDevices:
    message = wire.ContainerDevices(resource_name=resource, device_ids=[device.id])
    for node in device.numa_nodes:
        message.topology.nodes.add(ID=node)
    return message
