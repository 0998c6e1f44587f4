"""The options of `moor whatif` that describe changes to a cluster, and their parsing."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import wraps
from itertools import count
from typing import Any, NamedTuple, TypeVar

import click

from mooring.api import names
from mooring.api.catalogue import CATALOGUE
from mooring.api.core.placement import NO_EXECUTE, NO_SCHEDULE, PREFER_NO_SCHEDULE, Taint
from mooring.api.documents import CORE, KUBERNETES
from mooring.api.meta import ObjectMeta
from mooring.api.resource.v1 import (
    API_VERSION,
    DeviceTaint,
    DeviceTaintRule,
    DeviceTaintRuleSpec,
    DeviceTaintSelector,
)
from mooring.cli.cluster_options import ClusterInput
from mooring.cli.cluster_sources import FileSource, give_all
from mooring.cli.command_classes import add_options
from mooring.cli.errors import DOES_NOT_FIT, UNREADABLE
from mooring.cli.inputs import STDIN
from mooring.cli.output import complain, warn
from mooring.cli.terminal import printable
from mooring.hardware.attributes import NumaNodeForm
from mooring.hardware.catalogue import Catalogue
from mooring.hardware.errors import ProfileError
from mooring.insight.messages import similar_hint
from mooring.insight.snapshot.builder import SnapshotBuilder
from mooring.insight.snapshot.snapshot import Snapshot
from mooring.insight.whatif import (
    AddObjects,
    AddTaintRule,
    ClusterChange,
    CordonNode,
    DeleteClaims,
    DeletePods,
    DrainNode,
    RemoveNodes,
    RemoveTaintRule,
    ReplaceSlices,
    TaintNode,
)
from mooring.validation.registry import before_create
from mooring.validation.strategy import Context

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
        raise click.UsageError(f"{reader.option}: {error}") from None


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
        self._known = given.everything

    def changes(self) -> Iterator[RequestedChange]:
        """Yield all changes, additions first, so that the others can refer to them."""
        makers: dict[str, Callable[[str], Iterable[ClusterChange]]] = {
            "add": self._add,
            "add_profile": self._add_profile,
            "replace_slices": self._replace_slices,
            "rule": self._rules,
            "remove_rule": lambda name: [RemoveTaintRule(name)],
            "taint_device": self._taint_device,
            "taint_node": lambda text: [TaintNode(*node_taint(text))],
            "cordon": lambda name: [CordonNode(name)],
            "drain": lambda name: [DrainNode(name)],
            "remove_node": lambda name: [RemoveNodes((name,))],
            "delete_pod": lambda name: [DeletePods((self._full(name),))],
            "delete_claim": lambda name: [DeleteClaims((self._full(name),))],
        }
        for option in OPTIONS:
            for value in self._changes[option.field]:
                self.option = f"{option.name} {value}"
                for change in makers[option.field](value):
                    yield RequestedChange(self.option, change)

    def _full(self, name: str) -> str:
        return name if "/" in name else f"{self._given.namespace}/{name}"

    # --- files --------------------------------------------------------------------------------

    def _add(self, name: str) -> Iterator[ClusterChange]:
        objects = self._read(name)
        if not any(objects.objects()):
            raise click.UsageError(f"{self.option}: there is nothing in it that decides anything")
        self._known = self._known.with_objects(objects.objects())
        yield AddObjects(objects)

    def _replace_slices(self, name: str) -> Iterator[ClusterChange]:
        slices = self._read(name).slices
        if not slices:
            raise click.UsageError(f"{self.option}: there is no ResourceSlice in it")
        drivers = tuple(sorted({each.spec.driver for each in slices}))
        self._known = self._known.with_objects(slices)
        yield ReplaceSlices(drivers, slices)

    def _rules(self, name: str) -> Iterator[ClusterChange]:
        rules = self._read(name).taint_rules
        if not rules:
            raise click.UsageError(f"{self.option}: there is no DeviceTaintRule in it")
        self._known = self._known.with_objects(rules)
        for rule in rules:
            yield AddTaintRule(rule)

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

    # --- the rest -----------------------------------------------------------------------------

    def _add_profile(self, name: str) -> Iterator[ClusterChange]:
        form = NumaNodeForm[
            (click.get_current_context().params.get("form_name") or "scalar").upper()
        ]
        taken = [node.metadata.name for node in self._known.nodes]
        fleet = Catalogue().fleet(name, form, taken=taken)
        intake = SnapshotBuilder(self._context)
        for each in (*fleet.nodes, *fleet.classes, *fleet.slices):
            intake.add_object(each, f"profile {name}")
        added = intake.snapshot()
        # A class that is there may have been changed on purpose.
        classes = {each.metadata.name for each in self._known.classes}
        added = added.without([c for c in added.classes if c.metadata.name in classes])
        self._known = self._known.with_objects(added.objects())
        yield AddObjects(added)

    def _taint_device(self, text: str) -> Iterator[ClusterChange]:
        taken = {rule.metadata.name for rule in self._known.taint_rules}
        name = next(n for i in count(1) if (n := f"whatif-{i}") not in taken)
        rule = device_taint(text, name, self._context)
        self._check_meant(rule)
        self._known = self._known.with_objects([rule])
        yield AddTaintRule(rule)

    def _check_meant(self, rule: DeviceTaintRule) -> None:
        """Refuse a text that means no device that is there."""
        selector = rule.spec.device_selector
        assert selector is not None
        wanted = (selector.driver, selector.pool, selector.device)
        known: list[str] = []
        for each in self._known.slices:
            for device in each.spec.devices or ():
                parts = (each.spec.driver, each.spec.pool.name, device.name)
                if all(want in (None, part) for want, part in zip(wanted, parts, strict=True)):
                    return
                known.append("/".join(parts))
        name = "/".join("*" if part is None else part for part in wanted)
        remedy = similar_hint(name, known)
        raise click.UsageError(printable(f"{self.option}: there is no device {name}{remedy}"))


# --- taints: TARGET=KEY[=VALUE]:EFFECT, the taint as kubectl writes it ----------------------------

ANY = "*"
EFFECTS = (NO_SCHEDULE, PREFER_NO_SCHEDULE, NO_EXECUTE)
LENGTH_MAX = 2000

_TAINT = r"(?P<key>[^=:]+)(?:=(?P<value>[^=:]*))?:(?P<effect>[A-Za-z]+)"
_NODE = re.compile(rf"(?P<node>[^=]+)={_TAINT}")
_DEVICE = re.compile(rf"(?P<driver>[^/=]+)/(?P<pool>[^=]+)/(?P<device>[^/=]+)={_TAINT}")
_KIND = CATALOGUE.find(API_VERSION, "DeviceTaintRule")


class TaintTextError(ValueError):
    """A text that is no taint."""


def node_taint(text: str) -> tuple[str, Taint]:
    """Return the node and its taint, or raise TaintTextError."""
    found = _NODE.fullmatch(text) if len(text) <= LENGTH_MAX else None
    if found is None:
        raise TaintTextError("must be of the form NODE=KEY[=VALUE]:EFFECT")
    key, value, effect = found["key"], found["value"] or "", found["effect"]
    if effect not in EFFECTS:
        raise TaintTextError(f"effect {effect}: must be one of {', '.join(EFFECTS)}")
    for wrong in (*names.label_name(key), *names.label_value(value)):
        raise TaintTextError(wrong)
    return found["node"], Taint(key=key, value=value, effect=effect)


def device_taint(text: str, name: str, context: Context) -> DeviceTaintRule:
    """Return a rule of this name with the taint, or raise TaintTextError."""
    found = _DEVICE.fullmatch(text) if len(text) <= LENGTH_MAX else None
    if found is None:
        raise TaintTextError("must be of the form DRIVER/POOL/DEVICE=KEY[=VALUE]:EFFECT")
    driver, pool, device = (
        None if found[part] == ANY else found[part] for part in ("driver", "pool", "device")
    )
    rule = DeviceTaintRule(
        metadata=ObjectMeta(name=name),
        spec=DeviceTaintRuleSpec(
            device_selector=DeviceTaintSelector(driver=driver, pool=pool, device=device),
            taint=DeviceTaint(key=found["key"], value=found["value"] or "", effect=found["effect"]),
        ),
    )
    admission = before_create(rule, _KIND, context)
    if admission.stored is None:
        wrong = admission.refused or "; ".join(map(str, admission.errors))
        raise TaintTextError(wrong)
    stored: DeviceTaintRule = admission.stored
    return stored
