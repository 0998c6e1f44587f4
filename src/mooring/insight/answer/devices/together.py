"""Requests that each find enough devices, but not all of them at once."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from mooring.insight.answer.changes.edits import Edit
from mooring.insight.answer.devices.shortages import EXACT_COUNT, DeviceCase
from mooring.insight.answer.finding import Finding, FixRank, Proposal
from mooring.insight.explain.situation import DropRequest, LowerCount, RequestPath
from mooring.insight.messages import listed

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
    funnels = {funnel.request: funnel for funnel in case.diagnosis.funnels}
    claims = {place.claim for place in places}
    names, wanted, fitting = [], 0, 0
    for place in places:
        request = (situation.claims[place.claim].spec.devices.requests or ())[place.request]
        funnel = funnels.get(request.name)
        if funnel is None:
            return
        entry = situation.claims[place.claim].metadata.name
        names.append(request.name if len(claims) == 1 else f"{request.name} of claim {entry}")
        wanted += funnel.wanted or funnel.selected
        fitting = max(fitting, funnel.fitting)
    class_name = situation.details(places[0]).device_class_name
    yield Finding(
        f"requests {listed(names)} want {wanted} devices of class {class_name} together, node "
        f"{case.node} has {fitting} for them",
        (
            *_fewer(case),
            Proposal(f"add a node with {wanted} devices of class {class_name}", FixRank.HARDWARE),
        ),
    )


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
