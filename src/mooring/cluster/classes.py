"""The classes of the drivers of this machine, made for users where they are missing."""

from __future__ import annotations

from collections.abc import Iterable

from mooring.client.contract import Client
from mooring.client.errors import AlreadyExistsError
from mooring.client.writes import Create
from mooring.drivers.catalogue import drivers_of
from mooring.drivers.options import Options
from mooring.hardware.nodes import device_classes


async def make_classes(client: Client, names: Iterable[str]) -> None:
    """Make the classes of drivers, by the names that operators use; those there are stay."""
    drivers = [driver.name for name in names for driver in drivers_of(name, Options())]
    for each in device_classes(drivers):
        try:
            await client.write(Create(each))
        except AlreadyExistsError:
            continue
