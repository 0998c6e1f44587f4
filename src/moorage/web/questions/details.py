"""Details: an object as YAML with its events, and all facts about a device."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from moorage.api.codec import to_tree
from moorage.api.core.namespace import Event
from moorage.api.documents.yaml_writer import dump_yaml
from moorage.api.quantity import Quantity
from moorage.api.resource.v1 import DeviceAttribute, ResourceSlice
from moorage.api.tolerations import DeviceName
from moorage.insight.devices import DeviceState, DeviceUsage
from moorage.insight.devices.model import Holder
from moorage.insight.snapshot.snapshot import FIELDS
from moorage.web.errors import BadQuestionError, NotFoundError
from moorage.web.questions.moment import ShownMoment

KINDS: Final = {struct.__name__: field for struct, field in FIELDS.items()}
EVENTS_MAX: Final = 50
YAML_LENGTH_MAX: Final = 512 * 1024
_HELD: Final = (DeviceState.TAKEN, DeviceState.SHARED)


def object_answer(
    moment: ShownMoment, kind: str, namespace: str, name: str, events: Iterable[Event] = ()
) -> dict[str, Any]:
    """Return an object as YAML, and its newest events first."""
    field = KINDS.get(kind)
    if field is None:
        raise BadQuestionError(f"kind: {kind[:60]!r} is not shown here.")
    for value in getattr(moment.snapshot, field):
        metadata = value.metadata
        if value.kind == kind and (metadata.namespace, metadata.name) == (namespace, name):
            shown = sorted(events, key=_event_time, reverse=True)[:EVENTS_MAX]
            return {"yaml": yaml_of(_plain(value)), "events": list(map(_event_tree, shown))}
    where = f" in namespace {namespace[:100]}" if namespace else ""
    raise NotFoundError(f"There is no {kind} {name[:100]}{where}.")


def _plain(value: Any) -> Any:
    """Return the tree of an object without fields that only servers use."""
    tree = to_tree(value)
    tree.get("metadata", {}).pop("managedFields", None)
    return tree


def yaml_of(tree: Any) -> str:
    """Return a tree as YAML, truncated if it is very long."""
    text = dump_yaml([tree])
    if len(text) <= YAML_LENGTH_MAX:
        return text
    return f"{text[:YAML_LENGTH_MAX]}\n# … and {len(text) - YAML_LENGTH_MAX:,} more characters\n"


def _event_time(event: Event) -> str:
    return str(event.last_timestamp or event.event_time or event.metadata.creation_timestamp or "")


def _event_tree(event: Event) -> dict[str, Any]:
    return {
        "time": _event_time(event),
        "type": event.type,
        "reason": event.reason,
        "message": event.message,
        "count": event.count or 1,
    }


# --- devices ----------------------------------------------------------------------------------


def device_answer(moment: ShownMoment, driver: str, pool: str, name: str) -> dict[str, Any]:
    """Return all facts about a device."""
    device = DeviceName(driver, pool, name)
    row = moment.row_of(device)
    if not 0 <= row < len(moment.devices):
        shown = str(device)[:200]
        raise NotFoundError(f"There is no device {shown}.")
    usage = moment.devices[row]
    return {
        "state": usage.state.value,
        "reasons": [reason.text for reason in usage.reasons],
        "attributes": [
            {"name": key, "value": _text(value), "type": _type(value)}
            for key, value in usage.device.attributes.items()
        ],
        "capacity": list(_capacity(usage)),
        "counters": list(_counters(usage, moment)),
        "taints": [
            {
                "key": each.taint.key,
                "value": each.taint.value,
                "effect": each.taint.effect,
                "timeAdded": str(each.taint.time_added or ""),
                "from": f"DeviceTaintRule {each.rule}" if each.rule else "slice",
            }
            for each in usage.taints
        ],
        "holders": [*_holders(usage.holders), *_holders(usage.admins)],
        "slice": usage.slice_name,
        "yaml": yaml_of(to_tree(usage.device)),
    }


def _text(attribute: DeviceAttribute) -> str:
    values = [
        str(each).lower() if isinstance(each, bool) else str(each)
        for content in to_tree(attribute).values()
        for each in (content if isinstance(content, list) else [content])
    ]
    return ", ".join(values)


def _type(attribute: DeviceAttribute) -> str:
    return next(iter(to_tree(attribute)), "")


def _capacity(usage: DeviceUsage) -> Iterator[dict[str, str]]:
    used = {each.name: each.used for each in usage.capacities}
    for name, capacity in usage.device.capacity.items():
        entry = {"name": name, "value": str(capacity.value)}
        yield {**entry, "used": str(used[name])} if name in used else entry


def _counters(usage: DeviceUsage, moment: ShownMoment) -> Iterator[dict[str, str]]:
    """Yield the counters that a device consumes, and how much of them allocated devices use."""
    if not usage.device.consumes_counters:
        return
    slices = [
        each
        for each in moment.snapshot.slices
        if (each.spec.driver, each.spec.pool.name) == (usage.id.driver, usage.id.pool)
    ]
    totals = {
        (counters.name, name): counter.value
        for slice_ in slices
        for counters in slice_.spec.shared_counters or ()
        for name, counter in counters.counters.items()
    }
    used = _consumed(slices, moment)
    for consumption in usage.device.consumes_counters:
        for name, counter in consumption.counters.items():
            key = (consumption.counter_set, name)
            yield {
                "set": consumption.counter_set,
                "name": name,
                "total": str(totals.get(key, "")),
                "used": str(used.get(key, Quantity.ZERO)),
                "consumes": str(counter.value),
            }


def _consumed(
    slices: Iterable[ResourceSlice], moment: ShownMoment
) -> dict[tuple[str, str], Quantity]:
    """Return how much of each counter allocated devices consume."""
    found: dict[tuple[str, str], Quantity] = {}
    for slice_ in slices:
        for device in slice_.spec.devices or ():
            row = moment.row_of(DeviceName(slice_.spec.driver, slice_.spec.pool.name, device.name))
            if not 0 <= row < len(moment.devices) or moment.devices[row].state not in _HELD:
                continue
            for consumption in device.consumes_counters:
                for name, counter in consumption.counters.items():
                    key = (consumption.counter_set, name)
                    found[key] = found.get(key, Quantity.ZERO) + counter.value
    return found


def _holders(holders: Iterable[Holder]) -> Iterator[dict[str, Any]]:
    for holder in holders:
        pods = [each.name for each in holder.consumers if each.kind == "pod"]
        yield {
            "namespace": holder.claim.namespace,
            "claim": holder.claim.name,
            "pod": pods[0] if pods else "",
            "request": holder.request,
            "share": ", ".join(f"{name} {amount}" for name, amount in holder.consumed),
            "admin": holder.is_admin,
        }
