"""Requests that each find enough devices, but not all of them at once."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from moorage.api.quantity import Format, Quantity
from moorage.insight.answer.changes.edits import Edit
from moorage.insight.answer.devices.conflicts import more_hardware
from moorage.insight.answer.devices.shortages import EXACT_COUNT, DeviceCase
from moorage.insight.answer.finding import Finding, FixRank, Proposal
from moorage.insight.explain.situation import DropRequest, LowerCount, RequestPath
from moorage.insight.messages import listed

_LIMIT: Final = re.compile(r"number of requested devices (\d+) exceeds the claim limit of (\d+)")


def beyond_limit(case: DeviceCase) -> Iterator[Finding]:
    """Find a claim that asks for more devices than any claim can have."""
    found = _LIMIT.search(case.diagnosis.message)
    if found is None:
        return
    asked, most = int(found[1]), int(found[2])
    situation = case.diagnosis.situation
    largest = max(
        situation.requests(), key=lambda each: each[1].count or asked, default=(None, None)
    )
    place, details = largest
    proposals: list[Proposal] = []
    if place is not None and details is not None:
        source, path = case.edits.source(place.claim), case.edits.request(place)
        count = min(details.count or asked, asked) - (asked - most)
        if source is not None and count > 0:
            edits = [Edit((*path, "count"), count)]
            if details.allocation_mode not in ("", EXACT_COUNT):
                edits.append(Edit((*path, "allocationMode"), EXACT_COUNT))
            before = details.count or "all"
            text = f"ask for {count} instead of {before} in request {situation.request_name(place)}"
            text += ", and spread the work over several pods"
            proposals.append(Proposal(text, FixRank.LESS, (source.change(*edits),)))
    yield Finding(
        f"the claim asks for {asked} devices, a claim can have {most} at most", tuple(proposals)
    )


def competing(case: DeviceCase) -> Iterator[Finding]:
    """Find requests that want the same devices."""
    situation = case.diagnosis.situation
    places = [
        RequestPath(member.claim, member.request)
        for member in case.diagnosis.conflict.members
        if isinstance(member, DropRequest)
    ]
    if len(places) < 2:
        return
    funnels = [case.funnel(place) for place in places]
    wanted = sum(each.wanted or each.selected for each in funnels if each is not None)
    if None in funnels:
        return  # Of alternatives, each has a funnel of its own.
    names = [case.request_name(place) for place in places]
    classes = dict.fromkeys(situation.details(place).device_class_name for place in places)
    what = f"devices of class {next(iter(classes))}" if len(classes) == 1 else "devices"
    yield Finding(
        f"requests {listed(names)} want {wanted} {what} together, which node {case.node} cannot "
        f"give at once{_of_counters(case, places)}",
        (*_fewer(case), more_hardware(case)),
    )


def _of_counters(case: DeviceCase, places: Sequence[RequestPath]) -> str:
    """Return the counter of which requests need more than there is, if devices share counters."""
    needed: dict[str, int] = {}
    for place in places:
        wanted = (funnel.wanted if (funnel := case.funnel(place)) else None) or 1
        for name, amount in _least(case, place).items():
            needed[name] = needed.get(name, 0) + wanted * amount
    there: dict[str, int] = {}
    for published in case.diagnosis.situation.slices:
        for shared in published.spec.shared_counters or ():
            for name, counter in shared.counters.items():
                there[name] = there.get(name, 0) + counter.value.value
    for name in sorted(needed):
        if needed[name] > there.get(name, needed[name]):
            return f": they need {_shown(needed[name])} of counter {name}, of {_shown(there[name])}"
    return f": they share counters ({listed(sorted(needed))})" if needed else ""


def _shown(value: int) -> str:
    """Return a number, in binary units where it is one of bytes."""
    is_bytes = value >= 1024 and value % 1024 == 0
    return str(Quantity.from_int(value, Format.BINARY_SI if is_bytes else Format.DECIMAL_SI))


def _least(case: DeviceCase, place: RequestPath) -> dict[str, int]:
    """Return what each device of a request needs of counters, at least."""
    details = case.diagnosis.situation.details(place)
    chosen = {str(each) for each in case.chosen_nearby(details)}
    found: list[dict[str, int]] = []
    for published in case.diagnosis.situation.slices:
        spec = published.spec
        for device in spec.devices or ():
            if f"{spec.driver}/{spec.pool.name}/{device.name}" in chosen:
                used: dict[str, int] = {}
                for each in device.consumes_counters or ():
                    for name, counter in each.counters.items():
                        used[name] = used.get(name, 0) + counter.value.value
                found.append(used)
    names = set.intersection(*map(set, found)) if found else set()
    return {name: min(each[name] for each in found) for name in names}


def _fewer(case: DeviceCase) -> Iterator[Proposal]:
    situation = case.diagnosis.situation
    for fix in case.diagnosis.fixes:
        match fix.changes:
            case (LowerCount(place=place, count=count),):
                changes = case.edits.changes(fix.changes)
                if changes:
                    before = situation.details(place).count
                    name = situation.request_name(place)
                    text = f"ask for {count} instead of {before} in request {name}"
                    yield Proposal(text, FixRank.LESS, changes)
