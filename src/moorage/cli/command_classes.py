"""Classes for click: groups that load lazily, options in sections, durations."""

from __future__ import annotations

import difflib
import importlib
import re
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any, TypeVar

import click

from moorage.cli.errors import fail
from moorage.kit.extras import missing_extra, remedy

F = TypeVar("F", bound=Callable[..., Any])


class LazyGroup(click.Group):
    """Imports a subcommand when it runs, and lists all without importing any.

    `sections` maps titles to names with their summaries; the module of a command is the prefix
    plus its name, and defines a click command called `command`.
    """

    def __init__(
        self, *args: Any, sections: Mapping[str, Mapping[str, str]], prefix: str, **given: Any
    ) -> None:
        super().__init__(*args, **given)
        self.sections, self._prefix = sections, prefix
        self.lines = {name: text for lines in sections.values() for name, text in lines.items()}

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find a subcommand; for an unknown one, suggest the closest."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            near = difflib.get_close_matches(args[0], self.lines, n=1)
            hint = f" Did you mean {near[0]}?" if near else ""
            raise click.UsageError(f"{error.message}{hint}", ctx) from None

    def invoke(self, ctx: click.Context) -> Any:
        """Run a subcommand; fail with one line if it needs an extra that is not installed."""
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
        width = max(map(len, self.lines))  # so that the summaries of all sections are aligned
        for title, lines in self.sections.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), text) for name, text in lines.items()])


def option_with_default(*names: str, **attributes: Any) -> Callable[[F], F]:
    """Return an option whose help shows its default."""
    return click.option(*names, show_default=True, **attributes)


def add_options(function: F, options: Sequence[Callable[[Any], Any]]) -> F:
    """Add options to a command, which lists them in this order."""
    decorated: Any = function
    for option in reversed(options):
        decorated = option(decorated)
    result: F = decorated
    return result


def files_argument(function: F) -> F:
    """Let a command accept files as arguments, too; they are added to its `filenames`."""

    @wraps(function)
    def with_files(*args: Any, files: tuple[str, ...], **kwargs: Any) -> Any:
        kwargs["filenames"] = (*kwargs["filenames"], *files)
        return function(*args, **kwargs)

    argument = click.argument("files", nargs=-1, metavar="[FILE|DIR]…")
    return argument(with_files)  # type: ignore[return-value]


Sections = Sequence[tuple[str, Sequence[str]]]  # a title, and names of parameters


class SectionedCommand(click.Command):
    """A command whose help lists options by section; those without one come last."""

    def __init__(self, *arguments: Any, sections: Sections = (), **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.sections = sections

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options."""
        records = {
            parameter.name: record
            for parameter in self.get_params(ctx)
            if (record := parameter.get_help_record(ctx)) is not None
        }
        for title, names in self.sections:
            with formatter.section(title):
                formatter.write_dl([records.pop(name) for name in names if name in records])
        with formatter.section("Others"):
            formatter.write_dl(list(records.values()))


_UNITS_S = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)")


class Duration(click.ParamType[float]):
    """A duration between two bounds, as seconds."""

    name = "duration"

    def __init__(self, minimum_s: float, maximum_s: float) -> None:
        self._minimum_s = minimum_s
        self._maximum_s = maximum_s

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Parse a duration into seconds."""
        if isinstance(value, float):
            return value
        text = str(value)
        parts = _PART.findall(text)
        if not parts or "".join(f"{number}{unit}" for number, unit in parts) != text:
            self.fail(f"{text!r} is no duration such as 90s or 1h30m", param, ctx)
        seconds = sum(float(number) * _UNITS_S[unit] for number, unit in parts)
        if not self._minimum_s <= seconds <= self._maximum_s:
            bounds = f"{self._minimum_s:g}s to {self._maximum_s:g}s"
            self.fail(f"{text!r} is not in {bounds}", param, ctx)
        return seconds
