"""`moor driver`: write, check and run drivers; each subcommand is a module."""

from __future__ import annotations

import click

from moorage.cli import CONTEXT
from moorage.cli.command_classes import LazyGroup

# name: summary; moorage.cli.driver_NAME defines a click command called `command`.
COMMANDS = {
    "check": "Check a driver in any language as a kubelet uses it.",
    "classes": "Print the DeviceClasses of drivers.",
    "devices": "Show the devices that a driver finds on this machine.",
    "new": "Create a new driver that runs and passes its tests.",
    "run": "Run drivers that come with Moorage.",
}


@click.group(
    name="driver",
    cls=LazyGroup,
    sections={"Commands": COMMANDS},
    prefix="moorage.cli.driver_",
    context_settings=CONTEXT,
    epilog="Exit status: 0 success, 1 a check failed or nothing was found, 2 usage error, "
    "3 something could not be read, written or reached.",
)
def command() -> None:
    """Write, check and run DRA drivers.

    A driver publishes devices in ResourceSlices and prepares them for pods.

    \b
    moor driver new blinker.example.com
    moor driver check -- python3 blinker/driver.py
    moor driver devices cpu
    """
