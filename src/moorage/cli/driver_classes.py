"""`moor driver classes`: the DeviceClasses of drivers, for an administrator to apply."""

from __future__ import annotations

import click

from moorage.cli import CONTEXT
from moorage.cli.driver_options import chosen_drivers, several_drivers
from moorage.cli.output import output_option, print_tree
from moorage.drivers.catalogue import DriverOptions


@click.command(
    name="classes", context_settings=CONTEXT, epilog="Exit status: 0 success, 2 usage error."
)
@several_drivers
@output_option("yaml", "json")
def command(names: tuple[str, ...], options: DriverOptions, output: str) -> None:
    """Print the DeviceClasses of drivers.

    NAME… is one or more of cpu, memory, net, nvme, nvidia and sim. `moor driver run` creates the
    classes of its drivers if it is allowed to. A driver that runs with the credentials of its
    node is not; an administrator then applies them.

    \b
    moor driver classes nvidia net | kubectl apply -f -
    """
    from moorage.api.codec import to_tree
    from moorage.hardware.machine import CLASSES, device_classes

    drivers = [driver.name for driver in chosen_drivers(names, options)]
    found = device_classes(dict.fromkeys(name for name in drivers if name in CLASSES))
    items = [to_tree(each) for each in found]
    print_tree({"apiVersion": "v1", "kind": "List", "items": items}, output)
