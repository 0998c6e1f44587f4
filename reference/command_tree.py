"""The commands of `moor` and their options, for reference and manual pages."""

from __future__ import annotations

from collections.abc import Iterator

import click


def walk(
    command: click.Command,
    name: str,
    parent: click.Context | None = None,
    *,
    is_deep: bool = True,
) -> Iterator[click.Context]:
    """Yield a command, then the commands below it, each in its context.

    Without `is_deep`, only those directly below it.
    """
    context = click.Context(command, info_name=name, parent=parent, **command.context_settings)
    if is_deep:
        yield context
    if isinstance(command, click.Group):
        for below in command.list_commands(context):
            inner = command.get_command(context, below)
            assert inner is not None, below
            if is_deep:
                yield from walk(inner, below, context)
            else:
                settings = inner.context_settings
                yield click.Context(inner, info_name=below, parent=context, **settings)


def usage_of(context: click.Context) -> str:
    """Return one line: the command with its arguments."""
    return " ".join([context.command_path, *context.command.collect_usage_pieces(context)])


def options_of(context: click.Context) -> Iterator[click.Option]:
    """Yield the options of a command; its usage and text describe arguments."""
    for parameter in context.command.get_params(context):
        if isinstance(parameter, click.Option):
            yield parameter


def names_of(option: click.Option) -> tuple[list[str], str]:
    """Return the names of an option, and the name of its value, if it has one."""
    return [*option.opts, *option.secondary_opts], _value_name(option)


def meaning_of(option: click.Option, code: str) -> str:
    """Return the help of an option with its default, which is put into `code`."""
    meaning = option.help or ""
    if option.required:
        meaning += " Required."
    if isinstance(option.show_default, str):  # texts for computed defaults
        meaning += f" Default: {option.show_default}."
    elif option.show_default and not option.is_flag:
        meaning += f" Default: {code.format(option.default)}."
    return meaning


def _value_name(option: click.Option) -> str:
    if option.is_flag or option.is_eager:
        return ""
    if option.metavar:
        return option.metavar
    if isinstance(option.type, click.Choice):
        return "|".join(map(str, option.type.choices))
    return option.type.name.upper()
