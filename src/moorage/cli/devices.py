"""`moor devices`: list devices, their holders, and which are free."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import click

from moorage.api.core.node import Node
from moorage.api.meta import ObjectMeta
from moorage.api.tolerations import DeviceName
from moorage.cli import CONTEXT
from moorage.cli.cluster_options import ClusterInput, cluster_options
from moorage.cli.command_classes import option_with_default
from moorage.cli.device_trees import picture_option, write_picture
from moorage.cli.errors import FITS
from moorage.cli.output import (
    Cell,
    Row,
    attribute_texts,
    output_option,
    print_answer,
    print_table,
    warn,
)
from moorage.cli.terminal import echo
from moorage.insight.devices import DeviceState, DeviceUsage, usage_in
from moorage.insight.devices.document import counts_tree, device_tree
from moorage.insight.devices.model import (
    CountKey,
    StateCounts,
    UnavailableReason,
    by_node,
    count_states,
    shown_states,
)
from moorage.insight.expressions.evaluation import (
    InvalidExpression,
    Selected,
    compiler_for,
    selected_by_class,
    selected_by_expression,
)
from moorage.insight.messages import counted, natural_order, shortened, similar_hint
from moorage.insight.object_names import device_name, kubectl_name
from moorage.insight.rows import DEVICE_COLUMNS, count_rows, device_rows
from moorage.insight.snapshot.snapshot import Snapshot
from moorage.insight.snapshot.unread import unread_tree, why_unread

COLOURS = {
    DeviceState.FREE: "green",
    DeviceState.SHARED: "cyan",
    DeviceState.TAKEN: None,
    DeviceState.BLOCKED: "yellow",
    DeviceState.TAINTED: "yellow",
    DeviceState.UNUSABLE: "red",
    DeviceState.MISSING: "red",
    DeviceState.UNKNOWN: "yellow",
}
ORDER = {state: place for place, state in enumerate(DeviceState)}
USERS_NAMED_MAX = 3

SORTS: dict[str, Callable[[DeviceUsage], Any]] = {
    "name": lambda _: (),
    "driver": lambda each: each.id.driver,
    "pool": lambda each: natural_order(each.id.pool),
    "device": lambda each: natural_order(each.id.device),
    "node": lambda each: natural_order(str(each.node_selection)),
    "state": lambda each: ORDER[each.state],
}


@click.command(
    context_settings=CONTEXT,
    epilog="Exit status: 0 done, even if nothing was found; 1 an object was invalid; 2 "
    "usage error; 3 an input could not be read.",
)
@click.option(
    "--driver", "drivers", multiple=True, metavar="NAME", help="Only devices of this driver."
)
@click.option("--pool", "pools", multiple=True, metavar="NAME", help="Only devices in this pool.")
@click.option(
    "--node", "nodes", multiple=True, metavar="NAME", help="Only devices available on this node."
)
@click.option(
    "--state",
    "states",
    multiple=True,
    type=click.Choice([state.value for state in DeviceState]),
    help="Only those in this state.",
)
@click.option(
    "-l",
    "--attribute",
    "attributes",
    multiple=True,
    metavar="KEY[=VALUE]",
    help="Only devices with this attribute: model=H100, or example.com/model=H100.",
)
@click.option(
    "--class", "class_name", metavar="NAME", help="Only devices that this DeviceClass selects."
)
@click.option(
    "--select", "expression", metavar="CEL", help="Only devices that this CEL expression selects."
)
@option_with_default(
    "--sort-by",
    "sort",
    type=click.Choice(list(SORTS)),
    default="name",
    help="Sort order.",
)
@click.option(
    "--summary",
    "is_summary",
    is_flag=True,
    help="Print counts by node and driver instead of devices.",
)
@output_option(
    wide="adds pods, taints, capacity and attributes",
    names="device/DRIVER/POOL/DEVICE, with --summary the nodes",
)
@picture_option
@cluster_options
def command(
    given: ClusterInput,
    drivers: tuple[str, ...],
    pools: tuple[str, ...],
    nodes: tuple[str, ...],
    states: tuple[str, ...],
    attributes: tuple[str, ...],
    class_name: str | None,
    expression: str | None,
    sort: str,
    is_summary: bool,
    output: str,
    picture_file: str | None,
) -> None:
    """List devices: who has them, and which are free.

    A free device would be allocated to a claim for it now. A blocked device is not allocated, but
    other devices use its shared counters or are incompatible with it. An unusable device is never
    allocated: its pool is incomplete, invalid or outdated, or a feature gate is off. A missing
    device is allocated to a claim, but no ResourceSlice contains it.

    A repeated option selects the devices that match any of its values. The picture always shows
    all devices.

    \b
    moor devices --profile dgx-h100x4 --summary
    moor devices --on cluster.yaml --node n1 --state free --state shared
    moor devices --on cluster.yaml --select 'device.driver == "gpu.example.com"' -l model=H200
    moor devices --on cluster.yaml --summary --picture devices.html
    """
    snapshot = given.everything
    wanted = DeviceFilter(
        drivers=drivers, pools=pools, nodes=nodes, states=states, attributes=attributes
    )
    selected = wanted.selection(snapshot, given, class_name=class_name, expression=expression)
    found = usage_in(snapshot, given.context)
    devices = wanted.chosen(found.devices, snapshot, selected)
    for message in wanted.unknown_names(found.devices, snapshot):
        warn(message)
    devices.sort(key=lambda each: list(map(natural_order, each.id)))
    devices.sort(key=SORTS[sort])
    hidden = given.unread.hidden(("ResourceSlice", "ResourceClaim"))
    if hidden and not devices:
        given.end_unknown(hidden, "which devices these are")
    if given.unreadable and not found.devices:
        sys.exit(given.exit_status(FITS))  # nothing can be said about unread devices
    if is_summary:
        _print_summary(devices, output, given)
    else:
        _print(devices, output, given)
    if picture_file is not None:
        title = "Devices as they are"
        write_picture(snapshot, found, picture_file, title=title, context=given.context)
    if not found.are_nodes_known and found.devices:
        why = why_unread(given.unread.hidden(("Node",))) or "no nodes given"
        echo(f"{why}: every device is evaluated as if its node existed", err=True)
    sys.exit(given.exit_status(FITS))


def _print(devices: list[DeviceUsage], output: str, given: ClusterInput) -> None:
    print_answer(
        output,
        table=lambda is_wide: _print_table(devices, is_wide=is_wide),
        document=lambda: {**_document(devices), **unread_tree(given.unread)},
        rows=lambda: device_rows(devices),
        names=lambda: (device_name(each.id) for each in devices),
        columns=DEVICE_COLUMNS,
    )


def _document(devices: list[DeviceUsage]) -> dict[str, Any]:
    numbers = count_states(devices, lambda _: ()).get((), None)
    summary = counts_tree(numbers) if numbers else {"total": 0}
    return {"devices": list(map(device_tree, devices)), "summary": summary}


def _print_table(devices: list[DeviceUsage], *, is_wide: bool) -> None:
    if not devices:
        echo("No devices found.", err=True)
        return
    header = ("DRIVER", "POOL", "DEVICE", "NODE", "STATE", "CLAIMS", "DETAIL")
    wide = ("PODS", "ADMIN", "TAINTS", "CAPACITY", "ATTRIBUTES", "BINDING", "SLICE")
    rows = (_row(each, is_wide=is_wide) for each in devices)
    print_table((*header, *(wide if is_wide else ())), rows, is_wide=is_wide)


def _row(holding: DeviceUsage, *, is_wide: bool) -> Row:
    claims = dict.fromkeys(str(holder.claim) for holder in holding.holders)
    cells: list[str | Cell] = [
        holding.id.driver,
        holding.id.pool,
        holding.id.device,
        "" if holding.state is DeviceState.MISSING else str(holding.node_selection),
        Cell(holding.state.value, COLOURS[holding.state]),
        ",".join(claims),
        "; ".join(_details(holding)),
    ]
    return [*cells, *_wide_cells(holding)] if is_wide else cells


def _wide_cells(holding: DeviceUsage) -> Iterator[str]:
    users = (str(user) for holder in holding.holders for user in holder.consumers)
    yield ",".join(dict.fromkeys(users))
    yield ",".join(dict.fromkeys(str(holder.claim) for holder in holding.admins))
    yield ",".join(f"{mark} ({mark.rule})" if mark.rule else str(mark) for mark in holding.taints)
    device = holding.device
    yield " ".join(f"{name}={entry.value}" for name, entry in device.capacity.items())
    yield " ".join(
        f"{name}={','.join(attribute_texts(value))}" for name, value in device.attributes.items()
    )
    yield ",".join(device.binding_conditions)
    yield holding.slice_name


def _details(holding: DeviceUsage) -> Iterator[str]:
    """Yield short details about a device besides its state."""
    if holding.conflict:
        yield f"conflict: {holding.conflict}"
    shares = sum(bool(holder.share_id) for holder in holding.holders)
    if shares:
        amounts = [f"{each.name} {each.used} of {each.total}" for each in holding.capacities]
        yield ", ".join([counted(shares, "share"), *amounts])
    for reason in holding.reasons:
        if reason.state is holding.state or not holding.holders:
            yield _reason(reason)
        elif reason.state in (DeviceState.TAINTED, DeviceState.UNUSABLE):
            yield f"{reason.state}: {_reason(reason)}"


def _reason(reason: UnavailableReason) -> str:
    if not reason.users:
        return reason.text
    users = (f"{each.device.device} ({','.join(map(str, each.claims))})" for each in reason.users)
    return f"{reason.text}: {', '.join(shortened(users, USERS_NAMED_MAX))}"


# --- summary ------------------------------------------------------------------------------


def _print_summary(devices: list[DeviceUsage], output: str, given: ClusterInput) -> None:
    numbers = count_states(devices, by_node)
    nodes = sorted({each.node_selection.node for each in devices}, key=natural_order)
    print_answer(
        output,
        table=lambda _: _print_counts(numbers, given),
        document=lambda: {"summary": list(count_rows(numbers)), **unread_tree(given.unread)},
        rows=lambda: count_rows(numbers),
        names=lambda: (kubectl_name("node", node) for node in nodes if node),
        columns=("node", "driver", "total", *DeviceState),
    )


def _print_counts(numbers: Mapping[CountKey, StateCounts], given: ClusterInput) -> None:
    if not numbers:
        echo("No devices found.", err=True)
        return
    states = shown_states(numbers.values())
    header = ("NODE", "DRIVER", "TOTAL", *(state.value.upper() for state in states))
    lines: list[Row] = [
        (node, driver, str(each.total), *_states(each, states))
        for (node, driver), each in numbers.items()
    ]
    print_table(header, lines, is_wide=True)
    total = sum(each.total for each in numbers.values())
    free = sum(each.of(DeviceState.FREE) for each in numbers.values())
    unknown = sum(each.of(DeviceState.UNKNOWN) for each in numbers.values())
    more = f", {unknown:,} unknown" if unknown else ""
    if hidden := given.unread.hidden(("ResourceSlice",)):
        echo(f"\n{counted(total, 'device')} of claims; {why_unread(hidden)}: others are not known")
        return
    echo(f"\n{counted(total, 'device')}, {free:,} free{more}")


def _states(counts: StateCounts, states: Iterable[DeviceState]) -> Iterator[Cell]:
    for state in states:
        number = counts.of(state)
        yield Cell(str(number), COLOURS[state] if number else None)


# --- filters -----------------------------------------------------------------------------------


class DeviceFilter(NamedTuple):
    """Filters on devices: one value of each kind must match; a kind without values matches all."""

    drivers: tuple[str, ...]
    pools: tuple[str, ...]
    nodes: tuple[str, ...]
    states: tuple[str, ...]
    attributes: tuple[str, ...]

    def selection(
        self,
        snapshot: Snapshot,
        given: ClusterInput,
        *,
        class_name: str | None,
        expression: str | None,
    ) -> frozenset[DeviceName] | None:
        """Return what class and expression select; None if neither is given."""
        compiler = compiler_for(given.context.gates, extensions=given.context.extensions)
        found: frozenset[DeviceName] | None = None
        if class_name is not None:
            known = {each.metadata.name: each for each in snapshot.classes}
            if class_name not in known:
                if hidden := given.unread.hidden(("DeviceClass",)):
                    given.end_unknown(hidden, f"whether DeviceClass {class_name} exists")
                hint = similar_hint(class_name, known)
                raise click.UsageError(f"--class: no DeviceClass {class_name} is given{hint}")
            found = _checked(
                "--class", selected_by_class(snapshot.slices, known[class_name], compiler)
            )
        if expression is not None:
            chosen = _checked(
                "--select", selected_by_expression(snapshot.slices, expression, compiler)
            )
            found = chosen if found is None else found & chosen
        return found

    def chosen(
        self,
        devices: Iterable[DeviceUsage],
        snapshot: Snapshot,
        selected: frozenset[DeviceName] | None,
    ) -> list[DeviceUsage]:
        """Return the devices that all filters let pass."""
        by_name = {node.metadata.name: node for node in snapshot.nodes}
        nodes = [by_name.get(name) or Node(metadata=ObjectMeta(name=name)) for name in self.nodes]
        wanted = [each.partition("=") for each in self.attributes]
        return [
            each
            for each in devices
            if (not self.drivers or each.id.driver in self.drivers)
            and (not self.pools or each.id.pool in self.pools)
            and (not self.states or each.state in self.states)
            and (not nodes or any(map(each.node_selection.covers, nodes)))
            and (
                selected is None or (each.id in selected and each.state is not DeviceState.MISSING)
            )
            and all(_has_attribute(each, key, sign, value) for key, sign, value in wanted)
        ]

    def unknown_names(self, devices: Sequence[DeviceUsage], snapshot: Snapshot) -> Iterator[str]:
        """Yield a message for each name that does not occur in the input, and may be misspelled."""
        if not devices:
            return
        pinned = {each.node_selection.node for each in devices} - {""}
        known = {
            "node": (self.nodes, pinned | {node.metadata.name for node in snapshot.nodes}),
            "driver": (self.drivers, {each.id.driver for each in devices}),
            "pool": (self.pools, {each.id.pool for each in devices}),
        }
        for what, (names, given) in known.items():
            for name in names:
                if name not in given and (what != "node" or snapshot.unread.knows("Node")):
                    yield f"no {what} {name} is given{similar_hint(name, given)}"
        for name in dict.fromkeys(each.partition("=")[0] for each in self.attributes):
            if not any(_has_attribute(each, name, "", "") for each in devices):
                attributes = {local for each in devices for local in each.device.attributes}
                yield f"no device has the attribute {name}{similar_hint(name, attributes)}"


def _checked(option: str, selected: Selected | InvalidExpression) -> frozenset[DeviceName]:
    if isinstance(selected, InvalidExpression):
        raise click.UsageError(f"{option}: {selected.error}")
    if selected.concern:
        warn(f"{option}: {selected.concern}")
    return selected.names


def _has_attribute(holding: DeviceUsage, key: str, sign: str, value: str) -> bool:
    """Return whether a device has the attribute; a key without a domain is in the driver's."""
    attributes = holding.device.attributes
    domain, slash, name = key.rpartition("/")
    found = attributes.get(key)
    if found is None and not slash:
        found = attributes.get(f"{holding.id.driver}/{key}")
    if found is None and slash and domain == holding.id.driver:
        found = attributes.get(name)
    return found is not None and (not sign or value in attribute_texts(found))
