"""The options of `moor whatif` that describe changes to a cluster, and their parsing."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from typing import Any, NamedTuple, TypeVar

import click

from moorage.cli.cluster_options import ClusterInput
from moorage.cli.command_classes import add_options
from moorage.cli.errors import DOES_NOT_FIT, UNREADABLE
from moorage.cli.output import complain, warn
from moorage.cli.terminal import printable
from moorage.hardware.attributes import NumaNodeForm
from moorage.hardware.errors import ProfileError
from moorage.insight.errors import ChangeTextError
from moorage.insight.whatif import ClusterChange
from moorage.sources.changes import ChangeReader
from moorage.sources.errors import ObjectsRefusedError, UnreadableError
from moorage.sources.inputs import STDIN

F = TypeVar("F", bound=Callable[..., Any])
ChangeValues = dict[str, tuple[str, ...]]  # the values of all options, by field


class Option(NamedTuple):
    """An option that describes a change."""

    name: str
    metavar: str
    help: str

    @property
    def field(self) -> str:
        """The name of its parameter."""
        return self.name.removeprefix("--").replace("-", "_")


OPTIONS = (
    Option("--add", "FILE|DIR|-", "Objects to apply: nodes, slices, classes, claims, pods …"),
    Option("--add-profile", "NAME[=COUNT]", "Hardware profile whose machines to add."),
    Option(
        "--replace-slices",
        "FILE|DIR|-",
        "ResourceSlices that replace all current ones of their drivers.",
    ),
    Option("--rule", "FILE|DIR|-", "DeviceTaintRules to create."),
    Option("--remove-rule", "NAME", "DeviceTaintRule to delete."),
    Option(
        "--taint-device",
        "DRIVER/POOL/DEVICE=KEY[=VALUE]:EFFECT",
        "Devices to taint; * matches every driver, pool or device.",
    ),
    Option("--taint-node", "NAME=KEY[=VALUE]:EFFECT", "Node to taint."),
    Option("--cordon", "NAME", "Node to cordon."),
    Option("--drain", "NAME", "Node to drain."),
    Option("--remove-node", "NAME", "Node to remove, with its slices and pods."),
    Option("--delete-pod", "[NAMESPACE/]NAME", "Pod to delete."),
    Option("--delete-claim", "[NAMESPACE/]NAME", "Claim to delete."),
)


class RequestedChange(NamedTuple):
    """A change, and the option that asks for it."""

    option: str  # with its value
    change: ClusterChange


def change_options(function: F) -> F:
    """Add the options to a command; it gets a `changes` argument."""

    @wraps(function)  # with the options that the function has already
    def with_changes(*args: Any, **kwargs: Any) -> Any:
        values = {option.field: kwargs.pop(option.field) for option in OPTIONS}
        return function(*args, changes=values, **kwargs)

    options = [
        click.option(each.name, each.field, multiple=True, metavar=each.metavar, help=each.help)
        for each in OPTIONS
    ]
    return add_options(with_changes, options)  # type: ignore[return-value]


def read_changes(changes: ChangeValues, given: ClusterInput) -> list[RequestedChange]:
    """Return the changes in the order in which they apply; raise UsageError for a wrong one."""
    _check_usage(changes)
    params = click.get_current_context().params
    reader = ChangeReader(
        given.context,
        given.everything,
        namespace=given.namespace,
        recursive=bool(params.get("recursive")),
        form=NumaNodeForm[(params.get("form_name") or "scalar").upper()],
    )
    found: list[RequestedChange] = []
    for option in OPTIONS:
        for value in changes[option.field]:
            name = f"{option.name} {value}"
            made = _made(reader, option.field, value, name)
            found += (RequestedChange(name, change) for change in made)
    for concern in reader.concerns:
        warn(str(concern))
    return found


def _made(reader: ChangeReader, field: str, value: str, name: str) -> list[ClusterChange]:
    """Return the changes of one option, or exit: the answer needs all of them."""
    try:
        return list(reader.changes(field, value))
    except ObjectsRefusedError as error:
        for message in error.messages:
            complain(message)
        sys.exit(DOES_NOT_FIT)
    except UnreadableError as error:
        complain(str(error))
        sys.exit(UNREADABLE)
    except (ChangeTextError, ProfileError) as error:
        raise click.UsageError(printable(f"{name}: {error}")) from None


def _check_usage(changes: ChangeValues) -> None:
    if not any(changes.values()):
        names = ", ".join(option.name for option in OPTIONS)
        raise click.UsageError(f"nothing is changed: give one of {names}")
    params = click.get_current_context().params
    inputs = [name for field in ("filenames", "cluster_names") for name in params.get(field) or ()]
    files = ("add", "replace_slices", "rule")
    if [*inputs, *(name for field in files for name in changes[field])].count(STDIN) > 1:
        raise click.UsageError("standard input can be read once only: - is given twice")
