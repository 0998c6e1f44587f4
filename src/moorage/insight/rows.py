"""Answers as rows: flat mappings for tables of data and CSV.

Every row of an answer has the same columns, in snake_case, and numbers are numbers: amounts are in
their base unit. None stands for nothing. A pod has a row for each device that it gets, or one row.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from moorage.api.codec import to_tree

if TYPE_CHECKING:
    from moorage.api.quantity import Quantity
    from moorage.api.resource.v1 import Device, ResourceSlice
    from moorage.insight.answer.document import ShownAnswer, ShownFix
    from moorage.insight.devices.model import ClaimUsage, CountKey, DeviceUsage, StateCounts
    from moorage.insight.fit.fit import Fit
    from moorage.insight.plan.placements import Placement
    from moorage.insight.whatif.difference import PodChange, PodPlacement

Row = dict[str, Any]


def csv_text(rows: Sequence[Mapping[str, Any]], columns: Sequence[str] = ()) -> str:
    """Return rows as CSV with a header: these columns, then others that rows have."""
    names = dict.fromkeys([*columns, *(name for row in rows for name in row)])
    if not names:
        return ""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(names), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def amount(quantity: Quantity) -> int | float:
    """Return an amount as a number: whole if it is, otherwise with a fraction."""
    milli = quantity.milli_value
    return quantity.approximate_float if milli % 1000 else quantity.value


# --- plans --------------------------------------------------------------------------------

PLAN_COLUMNS = (
    *("pod", "node", "claim", "request", "driver", "pool", "device", "share_id", "admin_access"),
    *("consumed", "resource", "amount", "message"),
)


def plan_rows(placements: Iterable[Placement]) -> Iterator[Row]:
    """Yield a row for each device that a pod gets; one for a pod that gets none."""
    for each in placements:
        start: Row = dict.fromkeys(PLAN_COLUMNS)
        start["pod"], start["node"] = each.stands_for or each.pod, each.node
        start["message"] = each.message or each.reason or None
        rows = [*_device_rows(each), *_plugin_rows(each)]
        yield from (start | row for row in rows or [{}])


def _device_rows(placement: Placement) -> Iterator[Row]:
    for granted in placement.requests:
        for device in granted.devices:
            yield {
                "claim": granted.claim,
                "request": granted.request,
                "driver": device.driver,
                "pool": device.pool,
                "device": device.device,
                "share_id": device.share_id,
                "admin_access": device.admin_access,
                "consumed": _pairs(device.consumed),
                "resource": placement.extended_resources.get(granted.request),
            }


def _plugin_rows(placement: Placement) -> Iterator[Row]:
    for resource, quantity in placement.plugin_resources.items():
        yield {"resource": resource, "amount": int(quantity) if quantity.isdigit() else quantity}


FIT_COLUMNS = ("node", "replicas", "devices", "why_no_more")


def fit_rows(found: Fit) -> Iterator[Row]:
    """Yield a row for each node that takes replicas, or that says why it takes none."""
    places = {place.node: place for place in found.places}
    why = {node: str(limit) for limit in found.limits for node in limit.nodes}
    for node in {**places, **why}:
        place = places.get(node)
        placements = () if place is None else place.placements
        devices = (row["device"] for row in plan_rows(placements) if row["device"])
        count = 0 if place is None else place.replicas
        yield dict(zip(FIT_COLUMNS, (node, count, _joined(devices), why.get(node)), strict=True))


CHANGE_COLUMNS = (
    *("pod", "turn", "is_worse", "node_before", "node_after"),
    *("devices_before", "devices_after", "why", "again", "message"),
)


def change_rows(pods: Iterable[PodChange]) -> Iterator[Row]:
    """Yield a row for each pod that changes affect."""
    for each in pods:
        before, after = _placed(each.before), _placed(each.after)
        message = each.after.message if each.after is not None else ""
        nodes_and_devices = (before[0], after[0], before[1], after[1])
        texts = (each.why or None, each.again or None, message or None)
        values = (each.pod, each.kind.value, each.is_worse, *nodes_and_devices, *texts)
        yield dict(zip(CHANGE_COLUMNS, values, strict=True))


def _placed(placement: PodPlacement | None) -> tuple[str | None, str | None]:
    return (None, None) if placement is None else (placement.node, _joined(placement.devices))


FIX_COLUMNS = ("fix", "fix_kind", "fix_node")
CAUSE_COLUMNS = (*("pod", "cause", *FIX_COLUMNS, "fixes", "stands_for", "stopped_by", "message"),)


def fix_row(fix: ShownFix) -> Row:
    """Return the row of a fix."""
    return dict(zip(FIX_COLUMNS, (fix.text, fix.kind, fix.node or None), strict=True))


def cause_rows(answers: Iterable[ShownAnswer]) -> Iterator[Row]:
    """Yield a row for each pod without a node: its cause and the best fix."""
    for each in answers:
        fix = tuple(fix_row(each.fixes[0]).values() if each.fixes else [None] * len(FIX_COLUMNS))
        rest = (len(each.fixes), each.stands_for, each.stopped_by or None, each.message or None)
        for pod in each.pods:
            yield dict(zip(CAUSE_COLUMNS, (pod, each.cause, *fix, *rest), strict=True))


# --- devices and claims -------------------------------------------------------------------

DEVICE_COLUMNS = (
    *("driver", "pool", "device", "node", "state", "claims", "pods", "taints", "conflict"),
    *("reasons", "slice"),
)


def device_rows(devices: Iterable[DeviceUsage]) -> Iterator[Row]:
    """Yield a row for each device, with columns for its attributes and capacities."""
    for each in devices:
        users = (str(user) for holder in each.holders for user in holder.consumers)
        values = (
            *(each.id.driver, each.id.pool, each.id.device, str(each.node_selection)),
            each.state.value,
            _joined(str(holder.claim) for holder in each.holders),
            _joined(users),
            _joined(map(str, each.taints)),
            each.conflict or None,
            _joined((reason.text for reason in each.reasons), "; "),
            each.slice_name or None,
        )
        yield dict(zip(DEVICE_COLUMNS, values, strict=True)) | _figures(each.device)


PUBLISHED_COLUMNS = ("node", "driver", "pool", "device")


def published_rows(slices: Iterable[ResourceSlice]) -> Iterator[Row]:
    """Yield a row for each device of slices, with columns for its attributes and capacities."""
    for each in slices:
        start = (each.spec.node_name or None, each.spec.driver, each.spec.pool.name)
        for device in each.spec.devices or ():
            row = zip(PUBLISHED_COLUMNS, (*start, device.name), strict=True)
            yield dict(row) | _figures(device)


def _figures(device: Device) -> Row:
    """Return the attributes and capacities of a device."""
    return {
        **{f"attribute {name}": _value(each) for name, each in device.attributes.items()},
        **{f"capacity {name}": amount(each.value) for name, each in device.capacity.items()},
    }


def _value(attribute: Any) -> Any:
    value = next(iter(to_tree(attribute).values()), None)
    return _joined(map(str, value)) if isinstance(value, list | tuple) else value


def count_rows(counts: Mapping[CountKey, StateCounts]) -> Iterator[Row]:
    """Yield the number of devices of each node and driver, in all and in each state."""
    from moorage.insight.devices.document import counts_tree

    for (node, driver), each in counts.items():
        yield {"node": node, "driver": driver, **counts_tree(each)}


CLAIM_COLUMNS = (
    *("namespace", "name", "state", "node", "devices", "device_names", "requests", "consumers"),
    *("owner", "template", "created", "allocated"),
)


def claim_rows(claims: Iterable[ClaimUsage]) -> Iterator[Row]:
    """Yield a row for each claim."""
    for each in claims:
        allocation = each.claim.status.allocation
        allocated = allocation.allocation_timestamp if allocation is not None else None
        values = (
            *(each.id.namespace, each.id.name, each.state.value, _joined(each.nodes)),
            *(len(each.devices), _joined(str(held.id) for held in each.devices)),
            _joined(f"{wanted.number} × {' or '.join(wanted.classes)}" for wanted in each.requests),
            _joined(map(str, each.consumers)),
            str(each.owner) if each.owner else None,
            each.template or None,
            *(str(when) if when else None for when in _times(each, allocated)),
        )
        yield dict(zip(CLAIM_COLUMNS, values, strict=True))


def _times(claim: ClaimUsage, allocated: Any) -> tuple[Any, Any]:
    return claim.claim.metadata.creation_timestamp, allocated


def _joined(texts: Iterable[str], mark: str = ",") -> str | None:
    return mark.join(dict.fromkeys(texts)) or None


def _pairs(amounts: Mapping[str, str]) -> str | None:
    return _joined(f"{name}={amount}" for name, amount in amounts.items())
