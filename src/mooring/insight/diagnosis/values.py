"""The values that a constraint compares: which devices for which request have which value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from mooring.allocator.asks import Ask
from mooring.allocator.bits import bits
from mooring.allocator.problem import Problem
from mooring.insight.diagnosis.changes import Change, DropConstraint
from mooring.insight.diagnosis.refusing import constraints_of, value_text

VALUES_SHOWN_MAX = 4
DEVICES_SHOWN_MAX = 3


class Values(Struct, frozen=True):
    """What the devices that fit a request have for the attribute of a constraint."""

    claim: int
    constraint: int
    request: str
    devices: Mapping[str, tuple[str, ...]]  # by value; "" for those that have none


def values_of(problem: Problem, fitting: Mapping[Ask, int]) -> tuple[Values, ...]:
    """Return the values that each constraint finds for each of its requests."""
    found = []
    for stage in problem.stages:
        for slot in stage:
            rules = constraints_of(slot)
            for number, rule in zip(slot.ask.constraints, rules, strict=True):
                table = rule.tables[slot.ask]
                devices: dict[str, list[str]] = {}
                for position in bits(fitting[slot.ask]):
                    known = table.known >> position & 1
                    value = value_text(table.elements[position]) if known else ""
                    name = problem.view.spots[position].device.name
                    devices.setdefault(value, []).append(name)
                grouped = {value: tuple(names) for value, names in devices.items()}
                found.append(Values(slot.ask.claim, number, slot.ask.full_name, grouped))
    return tuple(found)


def values_text(values: Sequence[Values], member: Change) -> str:
    """Return the values of a constraint on one line: `gpus: 0 on gpu-0, 1 on gpu-1; nics: …`."""
    assert isinstance(member, DropConstraint)
    requests: dict[str, list[str]] = {}  # by the values that their devices have
    for each in values:
        if (each.claim, each.constraint) == (member.claim, member.constraint):
            requests.setdefault(_listed(each.devices), []).append(each.request)
    if not requests:
        return "about no request"
    return "; ".join(f"{', '.join(names)}: {listed}" for listed, names in requests.items())


def _listed(devices: Mapping[str, tuple[str, ...]]) -> str:
    texts = [f"{value or 'none'} on {_names(names)}" for value, names in devices.items()]
    more = len(texts) - VALUES_SHOWN_MAX
    if more > 0:
        texts = [*texts[:VALUES_SHOWN_MAX], f"{more} more values"]
    return ", ".join(texts) or "no device fits"


def _names(names: Sequence[str]) -> str:
    more = len(names) - DEVICES_SHOWN_MAX
    shown = [*names[:DEVICES_SHOWN_MAX], *([f"{more} more"] if more > 0 else [])]
    return " ".join(shown)
