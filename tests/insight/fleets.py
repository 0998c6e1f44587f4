"""Short builders of devices for the tests of insight."""

from __future__ import annotations

from typing import Any

from moorage.api.meta import ObjectMeta
from moorage.api.quantity import Quantity
from moorage.api.resource.v1 import (
    Device,
    DeviceAttribute,
    DeviceCapacity,
    ResourcePool,
    ResourceSlice,
    ResourceSliceSpec,
)
from moorage.cel.device import CelFeatures, DeviceCompiler
from moorage.insight.expressions.published_devices import PublishedDevices

GPU = "gpu.example.com"
NIC = "nic.example.com"


def attribute(value: Any) -> DeviceAttribute:
    match value:
        case bool():
            return DeviceAttribute(bool_value=value)
        case int():
            return DeviceAttribute(int_value=value)
        case str():
            return DeviceAttribute(string_value=value)
        case list():
            return DeviceAttribute(string_values=tuple(value))
    raise TypeError(value)


def device(
    name: str,
    *,
    capacity: dict[str, str] | None = None,
    attributes: dict[str, Any] | None = None,
    **more: Any,
) -> Device:
    given = {**(attributes or {}), **more}
    return Device(
        name=name,
        attributes={key: attribute(value) for key, value in given.items()},
        capacity={
            key: DeviceCapacity(value=Quantity.parse(value))
            for key, value in (capacity or {}).items()
        },
    )


def slice_of(
    *devices: Device, driver: str = GPU, pool: str = "node-1", generation: int = 1
) -> ResourceSlice:
    return ResourceSlice(
        metadata=ObjectMeta(name=f"{pool}-{driver}"),
        spec=ResourceSliceSpec(
            driver=driver,
            pool=ResourcePool(name=pool, generation=generation, resource_slice_count=1),
            node_name=pool,
            devices=devices,
        ),
    )


def fleet(*devices: Device, driver: str = GPU) -> PublishedDevices:
    return PublishedDevices([slice_of(*devices, driver=driver)])


def compiler(*, extensions: bool = True, lists: bool = True) -> DeviceCompiler:
    return DeviceCompiler(CelFeatures(list_attributes=lists), extensions=extensions)
