"""The options of `moor whatif` that describe changes to a cluster, and their parsing."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from functools import wraps
from typing import Any, NamedTuple, TypeVar

import click

from mooring.api.documents import CORE, KUBERNETES
from mooring.cli.cluster_options import ClusterInput
from mooring.cli.cluster_sources import FileSource, give_all
from mooring.cli.command_classes import add_options
from mooring.cli.errors import DOES_NOT_FIT, UNREADABLE
from mooring.cli.inputs import STDIN
from mooring.cli.output import complain, warn
from mooring.cli.terminal import printable
from mooring.hardware.attributes import NumaNodeForm
from mooring.hardware.errors import ProfileError
from mooring.insight.snapshot.builder import SnapshotBuilder
from mooring.insight.snapshot.snapshot import Snapshot
from mooring.insight.whatif import AddObjects, AddTaintRule, ClusterChange, ReplaceSlices
from mooring.insight.whatif.change_words import ChangeWords
from mooring.insight.whatif.taint_words import TaintTextError

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
    reader = _Reader(changes, given)
    try:
        return list(reader.changes())
    except (TaintTextError, ProfileError) as error:
        raise click.UsageError(printable(f"{reader.option}: {error}")) from None


def _check_usage(changes: ChangeValues) -> None:
    if not any(changes.values()):
        names = ", ".join(option.name for option in OPTIONS)
        raise click.UsageError(f"nothing is changed: give one of {names}")
    params = click.get_current_context().params
    inputs = [name for field in ("filenames", "cluster_names") for name in params.get(field) or ()]
    files = ("add", "replace_slices", "rule")
    if [*inputs, *(name for field in files for name in changes[field])].count(STDIN) > 1:
        raise click.UsageError("standard input can be read once only: - stands there twice")


class _Reader:
    """Turns the values of options into changes."""

    def __init__(self, changes: ChangeValues, given: ClusterInput) -> None:
        self.option = ""  # the one at hand, with its value
        self._changes = changes
        self._given = given
        self._context = given.context
        form = click.get_current_context().params.get("form_name") or "scalar"
        self._words = ChangeWords(
            given.everything,
            given.context,
            namespace=given.namespace,
            form=NumaNodeForm[form.upper()],
        )

    def changes(self) -> Iterator[RequestedChange]:
        """Yield all changes, additions first, so that the others can refer to them."""
        makers: dict[str, Callable[[str], Iterable[ClusterChange]]] = {
            "add": self._add,
            "replace_slices": self._replace_slices,
            "rule": self._rules,
        }
        for option in OPTIONS:
            for value in self._changes[option.field]:
                self.option = f"{option.name} {value}"
                make = makers.get(option.field)
                word = option.name.removeprefix("--")
                for change in self._words.read(word, value) if make is None else make(value):
                    yield RequestedChange(self.option, change)

    def _add(self, name: str) -> Iterator[ClusterChange]:
        objects = self._read(name)
        if not any(objects.objects()):
            raise click.UsageError(f"{self.option}: there is nothing in it that decides anything")
        self._know(objects.objects())
        yield AddObjects(objects)

    def _replace_slices(self, name: str) -> Iterator[ClusterChange]:
        slices = self._read(name).slices
        if not slices:
            raise click.UsageError(f"{self.option}: there is no ResourceSlice in it")
        drivers = tuple(sorted({each.spec.driver for each in slices}))
        self._know(slices)
        yield ReplaceSlices(drivers, slices)

    def _rules(self, name: str) -> Iterator[ClusterChange]:
        rules = self._read(name).taint_rules
        if not rules:
            raise click.UsageError(f"{self.option}: there is no DeviceTaintRule in it")
        self._know(rules)
        for rule in rules:
            yield AddTaintRule(rule)

    def _know(self, objects: Iterable[Any]) -> None:
        self._words.known = self._words.known.with_objects(objects)

    def _read(self, name: str) -> Snapshot:
        """Return the objects of files; if some cannot be used, the question cannot be answered."""
        schema = CORE if self._context.extensions else KUBERNETES
        recursive = bool(click.get_current_context().params.get("recursive"))
        intake = SnapshotBuilder(self._context, namespace=self._given.namespace)
        give_all([FileSource((name,), recursive, schema)], intake)
        for message in (*intake.unreadable, *intake.refused):
            complain(message)
        if intake.unreadable:
            sys.exit(UNREADABLE)
        if intake.refused:
            sys.exit(DOES_NOT_FIT)
        for concern in intake.concerns():
            warn(str(concern))
        return intake.snapshot()
