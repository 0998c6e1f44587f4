"""Devices that others have, in whole or in part: who, for how long, and what is left."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from moorage.allocator.ledger import ClaimKey
from moorage.insight.answer.changes.edits import Edit
from moorage.insight.answer.devices.shortages import COUNTED_MAX, DeviceCase, Shortage
from moorage.insight.answer.finding import Finding, FixRank, Proposal
from moorage.insight.answer.holders import held_claims, waits_for_claims, with_holders
from moorage.insight.answer.nodes.replicas import fewer_pods, of_workload
from moorage.insight.explain.device_rejections import AmountShortage, TooLittle, Unfit
from moorage.insight.explain.funnel import Nearest
from moorage.insight.explain.situation import AskCapacity
from moorage.insight.messages import counted, listed, nearest

NONE: Final = "none"


def in_use(case: DeviceCase, short: Shortage) -> Iterator[Finding]:
    """Find who has the devices that a request would do with."""
    funnel, keys = short.funnel, _holders(case, short)
    of_class = f"of class {short.class_name}"
    if short.is_all:
        used = funnel.selected - funnel.free
        cause = (
            f"{short.name} wants all {funnel.selected} devices {of_class}, {used} of them in use"
        )
    elif not funnel.free:
        everywhere = _all_in_use(case, short)
        count, where = funnel.selected, f" of node {case.node}"
        if everywhere is not None:
            count, keys, where = everywhere[0], everywhere[1], ""
        alone = "" if short.details.capacity is None else "cannot be shared and "
        both = "both devices" if count == 2 else f"all {count} devices"
        cause = f"{short.name}: {both} {of_class}{where} are in use"
        if count == 1:
            cause = f"{short.name}: the only device {of_class}{where} {alone}is in use"
    else:
        wanted = counted(short.wanted, "device")
        cause = f"{short.name} wants {wanted} {of_class}: {funnel.free} of {funnel.selected} free"
        cause += ", the others in use"
    yield Finding(
        with_holders(case.case, of_workload(case.case, cause), keys),
        (
            *fewer_pods(case.case),
            *(list(waits_for_claims(case.case, keys)) or _anywhere(case, short)),
            *case.fewer(short, funnel.free),
            *_more_hardware(case, short),
        ),
    )


def _all_in_use(case: DeviceCase, short: Shortage) -> tuple[int, list[ClaimKey]] | None:
    """Return how many devices there are and who has them; None if some are free or not counted."""
    if case.case.cluster.inventory.devices_count > COUNTED_MAX:
        return None
    names, holders = {str(each) for each in case.chosen(short.details)}, dict[str, ClaimKey]()
    for key, claim in case.case.cluster.claims.items():
        for result in claim.status.allocation.devices.results if claim.status.allocation else ():
            holders[f"{result.driver}/{result.pool}/{result.device}"] = key
    if not all(name in holders for name in names):
        return None
    return len(names), list(dict.fromkeys(holders[name] for name in sorted(names)))


def _more_hardware(case: DeviceCase, short: Shortage) -> Iterator[Proposal]:
    if case.node:
        yield Proposal(f"add a node with devices of class {short.class_name}", FixRank.HARDWARE)


def _anywhere(case: DeviceCase, short: Shortage) -> Iterator[Proposal]:
    """Yield the proposal to wait for those who have such devices on any node."""
    names = {str(device) for device in case.chosen(short.details)}
    keys = (
        key
        for key, claim in held_claims(case.case)
        if claim.status.allocation is not None
        and any(
            f"{each.driver}/{each.pool}/{each.device}" in names
            for each in claim.status.allocation.devices.results
        )
    )
    return waits_for_claims(case.case, keys)


def _holders(case: DeviceCase, short: Shortage) -> list[ClaimKey]:
    """Return the claims that have devices which the request would do with."""
    names = {str(device) for device in case.chosen_nearby(short.details)}
    holders = case.diagnosis.obstacles.holders
    found = [key for key, devices in holders.items() if names.intersection(devices)]
    return found if names else list(holders)


# --- amounts --------------------------------------------------------------------------------


def unfit(case: DeviceCase, short: Shortage) -> Iterator[Finding]:
    """Find the amount that the nearest device has too little of."""
    near = short.funnel.nearest
    if near is None:
        return
    keys = _sharing(case, near)
    proposals = (
        *_less_capacity(case, short),
        *case.fewer(short, short.funnel.fitting),
        *fewer_pods(case.case),
        *waits_for_claims(case.case, keys),
    )
    match near.refusal:
        case TooLittle(amounts=(first, *_)) if first.there == NONE:
            yield _no_capacity(case, short, first)
        case TooLittle(amounts=(first, *_)):
            yield _too_little(case, short, first, keys, proposals)
        case Unfit(text=text):
            yield Finding(f"{short.name}: device {short.device_name} {text}", proposals)


def _too_little(
    case: DeviceCase,
    short: Shortage,
    first: AmountShortage,
    keys: Sequence[ClaimKey],
    proposals: tuple[Proposal, ...],
) -> Finding:
    device = short.device_name
    if first.left == first.there:
        if proposals:
            cause = f"{short.name} asks for {first.wanted} of {first.name}, device {device} has "
            return Finding(f"{cause}{first.there}", proposals)
        driver = (short.funnel.nearest.device if short.funnel.nearest else "").partition("/")[0]
        advice = f"correct what driver {driver} publishes: device {device} can never be allocated"
        cause = f"device {device} needs {first.wanted} of counter {first.name}, of which there are "
        return Finding(f"{cause}{first.there} in all", (Proposal(advice, FixRank.ADVICE),))
    cause = f"{short.name}: device {device} needs {first.wanted} of {first.name}, {first.left} of "
    used = of_workload(case.case, f"{cause}{first.there} is left, the rest in use")
    return Finding(with_holders(case.case, used, keys), proposals)


def _sharing(case: DeviceCase, near: Nearest) -> list[ClaimKey]:
    """Return the claims that have a share of a device, or take of the counters that it needs."""
    holders = case.diagnosis.obstacles.holders
    counters: dict[str, set[str]] = {}  # by device: the sets of counters that it takes of
    for each in case.diagnosis.situation.slices:
        prefix = f"{each.spec.driver}/{each.spec.pool.name}"
        for device in each.spec.devices or ():
            sets = {f"{prefix}/{taken.counter_set}" for taken in device.consumes_counters}
            counters[f"{prefix}/{device.name}"] = sets
    needed = counters.get(near.device, set())
    found = [
        key
        for key, devices in holders.items()
        if any(name == near.device or counters.get(name, set()) & needed for name in devices)
    ]
    return found or list(holders)


def _no_capacity(case: DeviceCase, short: Shortage, first: AmountShortage) -> Finding:
    """Return that devices do not have a capacity of that name."""
    known = {
        name
        for device in case.of_class(short.class_name)
        if device.variables is not None
        for entries in device.variables["device"]["capacity"].values()
        for name in entries
    }
    meant, source = nearest(first.name, known), case.edits.source(short.place.claim)
    proposals: list[Proposal] = []
    if meant is not None and source is not None:
        path = (*case.edits.request(short.place), "capacity", "requests")
        change = source.change(Edit((*path, meant), first.wanted), Edit((*path, first.name)))
        text = f"ask for capacity {meant} instead of {first.name} in {short.name}"
        proposals.append(Proposal(text, FixRank.REPAIR, (change,)))
    hint = f"did you mean {meant}?" if meant else f"they have {listed(sorted(known)) or NONE}"
    return Finding(
        f"no device of class {short.class_name} has capacity {first.name}, which {short.name} asks "
        f"for: {hint}",
        tuple(proposals),
    )


def _less_capacity(case: DeviceCase, short: Shortage) -> Iterator[Proposal]:
    for fix in case.diagnosis.fixes:
        match fix.changes:
            case (AskCapacity(place=place, name=name, amount=amount),) if place == short.place:
                changes = case.edits.changes(fix.changes)
                if changes and amount is not None:
                    text = f"ask for {amount} of {name} in {short.name}"
                    yield Proposal(text, FixRank.LESS, changes)
