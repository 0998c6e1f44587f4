"""`moor driver`: write, try and run drivers; each subcommand is a module of its own."""

from __future__ import annotations

import click

from mooring.cli import CONTEXT
from mooring.cli.command_classes import LazyGroup

# name: what it is for; mooring.cli.driver_NAME holds a click command called `command`.
COMMANDS = {
    "check": "Try a driver in any language, and say which promises it keeps.",
    "classes": "Print the DeviceClasses that come with drivers.",
    "devices": "Show what a driver finds on this machine; no cluster is needed.",
    "new": "Write a new driver that runs and passes its tests.",
    "run": "Run one of the drivers that come with Mooring.",
}


@click.group(
    name="driver",
    cls=LazyGroup,
    lines=COMMANDS,
    prefix="mooring.cli.driver_",
    context_settings=CONTEXT,
    epilog="Exit status: 0 done, 1 no, 2 usage, 3 something could not be read, written or reached.",
)
def command() -> None:
    """Write, try and run drivers for devices.

    A driver tells a cluster of devices, and gives them to pods.
    """
