"""Devices and their holders as JSON and YAML, and as pictures."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from mooring.api.codec import to_tree
from mooring.api.quantity import Quantity
from mooring.cli.errors import UNREADABLE
from mooring.cli.output import complain
from mooring.cli.terminal import echo
from mooring.insight.devices import ClusterUsage, DeviceUsage
from mooring.insight.devices.model import AppliedTaint, Holder, UnavailableReason
from mooring.insight.snapshot.snapshot import Snapshot
from mooring.validation.strategy import Context

if TYPE_CHECKING:
    from mooring.insight.plan.planner import Plan


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


SVG, HTML = ".svg", ".html"
F = TypeVar("F", bound=Callable[..., Any])


def picture_option(function: F) -> F:
    """Add the option --picture; the command gets `picture_file`."""
    return click.option(
        "--picture",
        "picture_file",
        metavar="FILE.svg|FILE.html",
        callback=_check_suffix,
        help="Write a picture of nodes and devices, coloured by claim; HTML is a page to explore.",
    )(function)


def _check_suffix(_: click.Context, __: click.Parameter, name: str | None) -> str | None:
    if name is not None and not name.lower().endswith((SVG, HTML)):
        raise click.BadParameter(f"{name!r} does not end in {SVG} or {HTML}")
    return name


def write_picture(
    snapshot: Snapshot,
    holdings: ClusterUsage,
    name: str,
    *,
    title: str,
    context: Context,
    plan: Plan | None = None,
) -> None:
    """Write the picture of a snapshot, or the page with its data; print an error and exit."""
    if name.lower().endswith(SVG):
        from mooring.insight.topology import picture

        write_text(name, picture(snapshot, title=title, holdings=holdings))
        return
    from mooring.web.single_file import single_page

    write_text(name, single_page(snapshot, context, title=title, plan=plan))


def write_text(name: str, text: str) -> None:
    """Write a file that was asked for, or print the error and exit."""
    try:
        Path(name).write_text(text, encoding="utf-8")
    except OSError as error:
        complain(f"{name}: {error.strerror or error}")
        sys.exit(UNREADABLE)
    echo(f"{name} written", err=True)
