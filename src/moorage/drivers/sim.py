"""Any board of the catalogue, as if it were in this machine: one driver for each of its drivers.

A container gets the environment of a real device, without its function:

    MOORAGE_SIMULATED_<uid>_<request>=gpu-0
    MOORAGE_SIMULATED_<uid>_<request>_<device>_<attribute>=…
"""

from __future__ import annotations

from collections.abc import Iterator

from moorage.api.cdi import ContainerEdits
from moorage.api.process_binding import binding_variable
from moorage.api.resource.v1 import Device, DeviceAttribute
from moorage.driver.driver import Claim, ClaimName, Driver, Pool, Prepared
from moorage.drivers.host import check_present, devices_of_request, join_unique
from moorage.hardware.attributes import NumaNodeForm
from moorage.hardware.catalogue import Catalogue
from moorage.hardware.drivers import DRIVERS
from moorage.hardware.machine import Sheet, machine_of

VARIABLE = "MOORAGE_SIMULATED"


class SimulatedDriver(Driver):
    """Allocates devices that do not exist."""

    serialize = False  # there is nothing that two claims could disturb

    def __init__(self, sheets: tuple[Sheet, ...]) -> None:
        self._sheets = sheets
        self._devices = {device.name: device for sheet in sheets for device in sheet.devices}

    def devices(self) -> list[Pool]:
        """Return all devices of the board that are this driver's."""
        counters = tuple(each for sheet in self._sheets for each in sheet.counters)
        return [Pool(devices=tuple(self._devices.values()), counters=counters)]

    def prepare(self, claim: Claim) -> Iterator[Prepared]:
        """Set the environment of containers to the attributes of their devices."""
        check_present(claim, self._devices)
        for device in claim.devices:
            prefix = binding_variable(VARIABLE, claim.uid, device.request)
            fellows = join_unique(each.name for each in devices_of_request(claim, device.request))
            env = (f"{prefix}={fellows}", *_attribute_lines(prefix, self._devices[device.name]))
            yield Prepared(device, ContainerEdits(env=env))

    def unprepare(self, claim: ClaimName) -> None:
        """Do nothing."""


def simulated(
    profile: str, node_name: str, form: NumaNodeForm = NumaNodeForm.SCALAR
) -> tuple[Driver, ...]:
    """Return the drivers with devices on a board, or raise ProfileError."""
    machine = machine_of(Catalogue().profile(profile), node_name, form)
    found: list[Driver] = []
    for name, publish in DRIVERS.items():
        sheets = tuple(publish(machine))
        if any(sheet.devices for sheet in sheets):
            class_ = type("SimulatedDriver", (SimulatedDriver,), {"name": name})
            found.append(class_(sheets))
    return tuple(found)


def _attribute_lines(prefix: str, device: Device) -> Iterator[str]:
    for name, attribute in device.attributes.items():
        yield f"{binding_variable(prefix, device.name, name)}={_text(attribute)}"


def _text(attribute: DeviceAttribute) -> str:
    for value in (
        attribute.string_value,
        attribute.version_value,
        attribute.int_value,
        attribute.bool_value,
    ):
        if value is not None:
            return str(value).lower() if isinstance(value, bool) else str(value)
    lists = attribute.int_values or attribute.string_values or attribute.version_values or ()
    return ",".join(map(str, lists))
