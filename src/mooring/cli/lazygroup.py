"""A group of commands, each in a module of its own that is loaded only when it is asked for."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Mapping
from typing import Any

import click

from mooring.cli.failing import fail
from mooring.kit.extras import missing_extra, remedy


class LazyGroup(click.Group):
    """Imports a subcommand when it runs, and lists all without importing any.

    `lines` has the names, and what each is for; the module of a command is the package and prefix
    with its name, and holds a click command called `command`.
    """

    def __init__(self, *args: Any, lines: Mapping[str, str], prefix: str, **given: Any) -> None:
        super().__init__(*args, **given)
        self.lines, self._prefix = lines, prefix

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find a subcommand; for one that there is not, name the nearest."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            near = difflib.get_close_matches(args[0], self.lines, n=1)
            hint = f" Did you mean {near[0]}?" if near else ""
            raise click.UsageError(f"{error.message}{hint}", ctx) from None

    def invoke(self, ctx: click.Context) -> Any:
        """Run a subcommand; end in one line where it needs an extra that is not installed."""
        try:
            return super().invoke(ctx)
        except ModuleNotFoundError as error:
            named = missing_extra(error)
            if named is None:
                raise
            name = f"{ctx.command_path} {ctx.invoked_subcommand}"
            fail(f"{name} needs the {named.extra} extra: {remedy(named.extra)}")

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Return the names of all subcommands."""
        return sorted(self.lines)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Return a subcommand."""
        if cmd_name not in self.lines:
            return None
        module = importlib.import_module(f"{self._prefix}{cmd_name.replace('-', '_')}")
        command: click.Command = module.command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write the list of subcommands."""
        with formatter.section("Commands"):
            formatter.write_dl(sorted(self.lines.items()))
