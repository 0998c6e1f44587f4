"""`moor driver`: write, try and run drivers; each subcommand is a module of its own."""

from __future__ import annotations

import importlib

import click

from mooring.cli import CONTEXT

# name: what it is for; mooring.cli.driver_NAME holds a click command called `command`.
COMMANDS = {
    "check": "Try a driver in any language, and say which promises it keeps.",
    "devices": "Show what a driver finds on this machine; no cluster is needed.",
    "new": "Write a new driver that runs and passes its tests.",
    "run": "Run one of the drivers that come with Mooring.",
}


class DriverGroup(click.Group):
    """A group that imports a subcommand when it runs, and lists all without importing any."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Return the names of all subcommands."""
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Return a subcommand."""
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"mooring.cli.driver_{cmd_name}")
        command: click.Command = module.command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write the list of subcommands."""
        with formatter.section("Commands"):
            formatter.write_dl(sorted(COMMANDS.items()))


@click.group(
    name="driver",
    cls=DriverGroup,
    context_settings=CONTEXT,
    epilog="Exit status: 0 done, 1 no, 2 usage, 3 something could not be read, written or reached.",
)
def command() -> None:
    """Write, try and run drivers for devices.

    A driver tells a cluster of devices, and gives them to pods.
    """
