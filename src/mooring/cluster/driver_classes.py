"""The DeviceClasses of the drivers that come with Mooring, made where they are missing.

Who runs a driver makes its classes: `moor up` for those of this machine, `moor driver run` for
those that it runs, if it may.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from mooring.client.contract import Client
from mooring.client.errors import AlreadyExistsError, ClientError
from mooring.client.writes import Create
from mooring.drivers.catalogue import CATALOGUE, drivers_of
from mooring.drivers.options import Options
from mooring.hardware.nodes import CLASSES, device_classes

SIMULATED = "sim"  # has the drivers of any board


async def make_classes(client: Client, drivers: Iterable[str]) -> None:
    """Make the classes of drivers, by the drivers' own names; those there are stay.

    All are tried, then the first error is raised.
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
    """Give the drivers that operators' names stand for: nvidia is gpu.nvidia.com."""
    for name in names:
        yield from (driver.name for driver in drivers_of(name, Options()))


def class_names(drivers: Iterable[str]) -> list[str]:
    """Return the names of the classes that come with drivers."""
    return [name for driver in drivers for name in CLASSES.get(driver, ())]


def maker_of(class_name: str) -> str | None:
    """Return the name by which an operator runs the driver of a class, if it comes with us."""
    for name in CATALOGUE:
        if name != SIMULATED and class_name in class_names(driver_names([name])):
            return name
    return None
