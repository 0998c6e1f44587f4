"""Devices and their holders as JSON and YAML, and as pictures."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

import click

from mooring.api.codec import to_tree
from mooring.api.quantity import Quantity
from mooring.cli.errors import UNREADABLE
from mooring.cli.output import complain
from mooring.cli.terminal import echo
from mooring.insight.devices import ClusterUsage, DeviceUsage
from mooring.insight.devices.model import AppliedTaint, Holder, UnavailableReason
from mooring.insight.snapshot.snapshot import Snapshot


def device_tree(holding: DeviceUsage) -> dict[str, Any]:
    """Return all facts about a device; those that are often empty are left out if they are."""
    device = holding.device
    tree: dict[str, Any] = {
        "driver": holding.id.driver,
        "pool": holding.id.pool,
        "device": holding.id.device,
        "nodes": _nodes_tree(holding),
        "slice": holding.slice_name,
        "state": holding.state.value,
        "open": holding.is_open,
        "holders": [_holder_tree(holder) for holder in holding.holders],
    }
    optional = {
        "admins": [_holder_tree(holder) for holder in holding.admins],
        "conflict": holding.conflict,
        "reasons": [_reason_tree(reason) for reason in holding.reasons],
        "taints": [_taint_tree(each) for each in holding.taints],
        "shares": {
            each.name: {"total": str(each.total), "used": str(each.used), "left": str(each.left)}
            for each in holding.capacities
        },
        "bindingConditions": list(device.binding_conditions),
    }
    tree.update({name: value for name, value in optional.items() if value})
    tree["attributes"] = {
        name: next(iter(to_tree(value).values()), None) for name, value in device.attributes.items()
    }
    tree["capacity"] = {name: str(entry.value) for name, entry in device.capacity.items()}
    return tree


def amounts_tree(amounts: Iterable[tuple[str, Quantity]]) -> dict[str, str]:
    """Return amounts of capacity by name."""
    return {name: str(amount) for name, amount in amounts}


def _nodes_tree(holding: DeviceUsage) -> dict[str, Any]:
    selection = holding.node_selection
    if selection.node:
        return {"nodeName": selection.node}
    if selection.all_nodes:
        return {"allNodes": True}
    return {"nodeSelector": to_tree(selection.selector)} if selection.selector is not None else {}


def _holder_tree(holder: Holder) -> dict[str, Any]:
    tree: dict[str, Any] = {
        "namespace": holder.claim.namespace,
        "claim": holder.claim.name,
        "request": holder.request,
        "consumers": list(map(str, holder.consumers)),
    }
    if holder.share_id:
        tree["shareID"] = holder.share_id
        tree["consumedCapacity"] = amounts_tree(holder.consumed)
    return tree


def _taint_tree(applied: AppliedTaint) -> dict[str, Any]:
    return {**to_tree(applied.taint), **({"rule": applied.rule} if applied.rule else {})}


def _reason_tree(reason: UnavailableReason) -> dict[str, Any]:
    users = [
        {"device": str(user.device), "claims": list(map(str, user.claims))} for user in reason.users
    ]
    return {"state": reason.state.value, "text": reason.text, **({"by": users} if users else {})}


F = TypeVar("F", bound=Callable[..., Any])


def picture_option(function: F) -> F:
    """Add the option --picture; the command gets `picture_file`."""
    return click.option(
        "--picture",
        "picture_file",
        metavar="FILE.svg|FILE.html",
        callback=_check_suffix,
        help="Write a picture of nodes and devices, coloured by claim.",
    )(function)


def _check_suffix(_: click.Context, __: click.Parameter, name: str | None) -> str | None:
    from mooring.insight.topology import Format, format_of

    if name is not None and format_of(name) is None:
        suffixes = " or ".join(format_.value for format_ in Format)
        raise click.BadParameter(f"{name!r} does not end in {suffixes}")
    return name


def write_picture(snapshot: Snapshot, holdings: ClusterUsage, name: str, *, title: str) -> None:
    """Write the picture of a snapshot, or print the error and exit."""
    from mooring.insight.topology import format_of, picture

    format_ = format_of(name)
    assert format_ is not None
    drawn = picture(snapshot, title=title, format=format_, holdings=holdings)
    try:
        Path(name).write_text(drawn, encoding="utf-8")
    except OSError as error:
        complain(f"{name}: {error.strerror or error}")
        sys.exit(UNREADABLE)
    echo(f"{name} written", err=True)
