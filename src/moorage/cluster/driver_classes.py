"""Creates the DeviceClasses of bundled drivers, and a StorageClass, if they are missing.

`moor up` creates the classes of this machine's drivers, `moor driver run` those of the drivers that
it runs, if it is allowed to.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from moorage.api.meta import ObjectMeta
from moorage.api.storage import IS_DEFAULT_CLASS, WAIT_FOR_FIRST_CONSUMER, StorageClass
from moorage.client.contract import Client
from moorage.client.errors import AlreadyExistsError, ClientError
from moorage.client.writes import Create
from moorage.controllers.volume_provisioning import HOST_PATH
from moorage.drivers.catalogue import CATALOGUE, DriverOptions, drivers_of
from moorage.hardware.machine import CLASSES, device_classes

SIMULATED = "sim"  # has the drivers of any board


async def make_classes(client: Client, drivers: Iterable[str]) -> None:
    """Create the missing classes of drivers, which are named as in ResourceSlices.

    Try all of them, then raise the first error.
    """
    errors: list[ClientError] = []
    for each in device_classes(driver for driver in drivers if driver in CLASSES):
        try:
            await client.write(Create(each))
        except AlreadyExistsError:
            continue
        except ClientError as error:
            errors.append(error)
    if errors:
        raise errors[0]


def driver_names(names: Iterable[str]) -> Iterator[str]:
    """Yield the drivers behind operators' names: `nvidia` is gpu.nvidia.com."""
    for name in names:
        yield from (driver.name for driver in drivers_of(name, DriverOptions()))


def class_names(drivers: Iterable[str]) -> list[str]:
    """Return the names of the classes of drivers."""
    return [name for driver in drivers for name in CLASSES.get(driver, ())]


def maker_of(class_name: str) -> str | None:
    """Return the operator's name of the bundled driver of a class, if there is one."""
    for name in CATALOGUE:
        if name != SIMULATED and class_name in class_names(driver_names([name])):
            return name
    return None


# --- storage -------------------------------------------------------------------------------------

STORAGE_CLASS = "standard"
VOLUMES = "volumes"  # below the data directory


async def make_storage_class(client: Client, folder: Path) -> None:
    """Create the default StorageClass of a cluster: directories below its data directory."""
    value = StorageClass(
        metadata=ObjectMeta(name=STORAGE_CLASS, annotations={IS_DEFAULT_CLASS: "true"}),
        provisioner=HOST_PATH,
        parameters={"path": str(folder.absolute() / VOLUMES)},
        reclaim_policy="Delete",
        volume_binding_mode=WAIT_FOR_FIRST_CONSUMER,
    )
    try:
        await client.write(Create(value))
    except AlreadyExistsError:
        return
