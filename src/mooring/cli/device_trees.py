"""A device and its holders as JSON and YAML."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from mooring.api.codec import to_tree
from mooring.api.quantity import Quantity
from mooring.insight.devices import DeviceUsage
from mooring.insight.devices.model import AppliedTaint, Holder, UnavailableReason


def device_tree(holding: DeviceUsage) -> dict[str, Any]:
    """Return all facts about a device, without those that are often empty and are."""
    device = holding.device
    tree: dict[str, Any] = {
        "driver": holding.id.driver,
        "pool": holding.id.pool,
        "device": holding.id.device,
        "nodes": _place_tree(holding),
        "slice": holding.slice_name,
        "state": holding.state.value,
        "open": holding.is_open,
        "holders": [_holder_tree(holder) for holder in holding.holders],
    }
    optional = {
        "admins": [_holder_tree(holder) for holder in holding.admins],
        "conflict": holding.conflict,
        "reasons": [_reason_tree(reason) for reason in holding.reasons],
        "taints": [_mark_tree(mark) for mark in holding.taints],
        "shares": {
            room.name: {"total": str(room.total), "used": str(room.used), "left": str(room.left)}
            for room in holding.capacities
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


def _place_tree(holding: DeviceUsage) -> dict[str, Any]:
    place = holding.node_selection
    if place.node:
        return {"nodeName": place.node}
    if place.all_nodes:
        return {"allNodes": True}
    return {"nodeSelector": to_tree(place.selector)} if place.selector is not None else {}


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


def _mark_tree(mark: AppliedTaint) -> dict[str, Any]:
    rule = {"rule": mark.rule} if mark.rule else {}
    return {**to_tree(mark.taint), **rule}


def _reason_tree(reason: UnavailableReason) -> dict[str, Any]:
    users = [
        {"device": str(user.device), "claims": list(map(str, user.claims))} for user in reason.users
    ]
    return {"state": reason.state.value, "text": reason.text, **({"by": users} if users else {})}
