"""Devices and claims as JSON: the output of `moor devices -o json` and `moor claims -o json`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from moorage.api.codec import to_tree
from moorage.api.quantity import Quantity
from moorage.insight.devices.model import (
    AppliedTaint,
    ClaimUsage,
    DeviceState,
    DeviceUsage,
    HeldDevice,
    Holder,
    StateCounts,
    UnavailableReason,
    shown_states,
)


def device_tree(holding: DeviceUsage) -> dict[str, Any]:
    """Return all facts about a device; some fields are omitted if they are empty."""
    device = holding.device
    tree: dict[str, Any] = {
        "driver": holding.id.driver,
        "pool": holding.id.pool,
        "device": holding.id.device,
        "nodes": _nodes_tree(holding),
        "slice": holding.slice_name,
        "state": holding.state.value,
        "open": None if holding.state is DeviceState.UNKNOWN else holding.is_open,
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


def _amounts_tree(amounts: Iterable[tuple[str, Quantity]]) -> dict[str, str]:
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
        tree["consumedCapacity"] = _amounts_tree(holder.consumed)
    return tree


def _taint_tree(applied: AppliedTaint) -> dict[str, Any]:
    return {**to_tree(applied.taint), **({"rule": applied.rule} if applied.rule else {})}


def _reason_tree(reason: UnavailableReason) -> dict[str, Any]:
    users = [
        {"device": str(user.device), "claims": list(map(str, user.claims))} for user in reason.users
    ]
    return {"state": reason.state.value, "text": reason.text, **({"by": users} if users else {})}


def counts_tree(counts: StateCounts) -> dict[str, int]:
    """Return the number of devices, in all and in each state."""
    shown = shown_states((counts,))
    return {"total": counts.total, **{state.value: counts.of(state) for state in shown}}


def claim_tree(claim: ClaimUsage) -> dict[str, Any]:
    """Return all facts about a claim and its devices."""
    metadata, allocation = claim.claim.metadata, claim.claim.status.allocation
    allocated = allocation.allocation_timestamp if allocation is not None else None
    return {
        "namespace": claim.id.namespace,
        "name": claim.id.name,
        "state": claim.state.value,
        "nodes": list(claim.nodes),
        "devices": [_held_tree(held) for held in claim.devices],
        "requests": [
            {
                "name": each.name,
                "classes": list(each.classes),
                "count": each.number,
                "chosen": each.chosen,
            }
            for each in claim.requests
        ],
        "owner": str(claim.owner or ""),
        "template": claim.template,
        "consumers": list(map(str, claim.consumers)),
        "created": str(metadata.creation_timestamp or ""),
        "allocated": str(allocated or ""),
    }


def _held_tree(held: HeldDevice) -> dict[str, Any]:
    tree: dict[str, Any] = {
        "driver": held.id.driver,
        "pool": held.id.pool,
        "device": held.id.device,
        "request": held.request,
        "node": held.node,
        "published": held.is_published,
    }
    optional = {
        "adminAccess": held.is_admin,
        "shareID": held.share_id,
        "consumedCapacity": _amounts_tree(held.consumed),
        "conditions": [to_tree(each) for each in held.conditions],
        "conflict": held.conflict,
    }
    return {**tree, **{name: value for name, value in optional.items() if value}}
