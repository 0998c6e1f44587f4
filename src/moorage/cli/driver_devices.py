"""`moor driver devices`: show the devices a driver finds on this machine, without a cluster."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator

import click

from moorage.api.codec import to_tree
from moorage.api.resource.v1 import Device, DeviceAttribute
from moorage.cli import CONTEXT
from moorage.cli.driver_options import chosen_drivers, one_driver
from moorage.cli.errors import DOES_NOT_FIT, FITS
from moorage.cli.output import (
    NOTHING,
    attribute_texts,
    output_option,
    print_answer,
    print_table,
)
from moorage.cli.terminal import echo, printable
from moorage.drivers.catalogue import DriverOptions, published
from moorage.hardware.attributes import NUMA_NODE, PCI_BUS_ID, PCIE_ROOT
from moorage.insight.object_names import device_name
from moorage.insight.rows import PUBLISHED_COLUMNS, published_rows


@click.command(
    name="devices",
    context_settings=CONTEXT,
    epilog="Exit status: 0 devices were found, 1 none were found, 2 usage error.",
)
@one_driver
@output_option(
    wide="adds all attributes",
    names="device/DRIVER/POOL/DEVICE",
    text="yaml and json print ResourceSlices",
)
def command(name: str, options: DriverOptions, output: str) -> None:
    """Show the devices that a driver would publish.

    NAME is one of cpu, memory, net, nvme, nvidia and sim. The command only reads this machine and
    changes nothing.

    \b
    moor driver devices cpu
    moor driver devices nvidia -o wide
    """
    sys.exit(show(name, options, output))


def show(name: str, options: DriverOptions, output: str) -> int:
    """Print the devices that a driver would publish, and return an exit status."""
    drivers = chosen_drivers([name], options)
    slices = [each for driver in drivers for each in published(driver, options.node_name)]
    devices = [(each.spec.driver, device) for each in slices for device in each.spec.devices or ()]
    items = [to_tree(each) for each in slices]
    print_answer(
        output,
        table=lambda is_wide: _print_devices(devices, is_wide=is_wide),
        document=lambda: {"apiVersion": "v1", "kind": "List", "items": items},
        rows=lambda: published_rows(slices),
        names=lambda: (
            device_name(f"{each.spec.driver}/{each.spec.pool.name}/{device.name}")
            for each in slices
            for device in each.spec.devices or ()
        ),
        columns=PUBLISHED_COLUMNS,
    )
    for driver in drivers:
        reason = getattr(driver, "absence", "")
        if reason:
            echo(f"{driver.name}: {reason}", err=True)
    return FITS if devices else DOES_NOT_FIT


def _print_devices(devices: Iterable[tuple[str, Device]], *, is_wide: bool) -> None:
    header = ["DRIVER", "DEVICE", "NUMA", "PCI", "ROOT", "CAPACITY"]
    rows = [_row(driver, device, is_wide=is_wide) for driver, device in devices]
    print_table([*header, "ATTRIBUTES"] if is_wide else header, rows, is_wide=is_wide)


def _row(driver: str, device: Device, *, is_wide: bool) -> list[str]:
    standard = (NUMA_NODE, PCI_BUS_ID, PCIE_ROOT)
    amounts = (f"{name}={each.value}" for name, each in device.capacity.items())
    row = [
        driver,
        device.name,
        *(_text(device.attributes.get(name)) for name in standard),
        ",".join(amounts) or NOTHING,
    ]
    return [*row, " ".join(_others(device, standard))] if is_wide else row


def _others(device: Device, standard: tuple[str, ...]) -> Iterator[str]:
    for name, value in device.attributes.items():
        if name not in standard:
            yield f"{name}={_text(value)}"


def _text(attribute: DeviceAttribute | None) -> str:
    if attribute is None:
        return NOTHING
    return printable(",".join(attribute_texts(attribute))) or NOTHING
