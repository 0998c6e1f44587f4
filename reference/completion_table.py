"""Generates the table for completion in shells from the commands: names, options, values."""

from __future__ import annotations

import json
from typing import Any

import click

from moorage.api.gates import Gate
from moorage.apiserver.openapi.json_schemas import schema_kinds
from moorage.cli.main import COMMANDS, moor
from moorage.cli.shell.sources import argument_source, option_source
from moorage.hardware.attributes import NumaNodeForm
from moorage.hardware.catalogue import Catalogue
from moorage.insight.object_names import KINDS

HELP_LENGTH_MAX = 72
Tree = dict[str, Any]


def completion_text() -> str:
    """Return the table as JSON."""
    context = click.Context(moor, info_name="moor", **moor.context_settings)
    table = {"command": _command(context, ""), "values": _values()}
    return json.dumps(table, indent=1, ensure_ascii=False) + "\n"


def _command(context: click.Context, path: str) -> Tree:
    command = context.command
    found: Tree = {"help": _sentence(COMMANDS.get(path, command.help or ""))}
    parameters = command.get_params(context)
    found["options"] = [
        _option(each) for each in parameters if isinstance(each, click.Option) and not each.hidden
    ]
    for each in parameters:
        if isinstance(each, click.Argument):
            found["argument"] = {
                "values": _choices(each) or argument_source(path, *_type_of(each)),
                "many": each.nargs != 1,
            }
    if isinstance(command, click.Group):
        found["commands"] = {}
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None, name
            below = click.Context(inner, info_name=name, parent=context, **inner.context_settings)
            found["commands"][name] = _command(below, f"{path} {name}".strip())
    return found


def _option(option: click.Option) -> Tree:
    names = [*option.opts, *option.secondary_opts]
    names.sort(key=lambda name: name.startswith("--"))  # the long name is the last one
    found: Tree = {"names": names, "help": _sentence(option.help or "")}
    if option.multiple:
        found["multiple"] = True
    if not option.is_flag:
        long_name = next(name for name in reversed(option.opts) if name.startswith("-"))
        found["values"] = _choices(option) or option_source(long_name, *_type_of(option))
    return found


def _choices(parameter: click.Parameter) -> list[str]:
    if isinstance(parameter.type, click.Choice):
        return [str(each) for each in parameter.type.choices]
    return ["true", "false"] if parameter.type is click.BOOL else []


def _type_of(parameter: click.Parameter) -> tuple[str, str]:
    return parameter.metavar or "", str(parameter.type.name)


def _values() -> Tree:
    catalogue = Catalogue()
    return {
        "profiles": {
            each.name: {
                "title": each.board.title,
                "classes": [
                    class_.metadata.name
                    for class_ in catalogue.fleet(each.name, NumaNodeForm.SCALAR).classes
                ],
            }
            for each in map(catalogue.profile, catalogue.names)
        },
        "gates": {str(gate): "" for gate in Gate},
        "kinds": sorted({kind.name.lower() for kind in schema_kinds()}),
        "words": dict(KINDS),
    }


def _sentence(text: str) -> str:
    """Return the first sentence of a help text, truncated to fit into a line of a menu."""
    words = " ".join(text.replace("\b", "").split())
    sentence = words.partition(". ")[0].removesuffix(".")
    if len(sentence) <= HELP_LENGTH_MAX:
        return sentence
    return f"{sentence[: HELP_LENGTH_MAX - 1].rpartition(' ')[0]} …"
