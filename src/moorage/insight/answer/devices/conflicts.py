"""Claims that a node cannot serve for no single reason: the cause from the conflict.

Each request finds enough devices by itself, but not beside the others, not all of them, or an error
ends the search. Here every diagnosis gets a cause; other modules know the everyday ones better.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from moorage.insight.answer.devices.shortages import DeviceCase
from moorage.insight.answer.finding import Finding, FixRank, Proposal
from moorage.insight.answer.holders import waits_for_claims
from moorage.insight.explain.fixes import Fix, asks_for_nothing
from moorage.insight.explain.funnel import Funnel
from moorage.insight.explain.phrases import change_text, member_texts
from moorage.insight.explain.situation import (
    AskCapacity,
    DropConstraint,
    DropRequest,
    DropSelector,
    FreeClaim,
    LowerCount,
    RequestPath,
    SituationChange,
    Tolerate,
)
from moorage.insight.messages import counted, listed
from moorage.insight.plan.evaluation_limit import SIMPLER, TOOK_LONG

HOLDERS_SHOWN_MAX: Final = 2
_RANKS: Final[dict[type, FixRank]] = {
    Tolerate: FixRank.GIVE,
    LowerCount: FixRank.LESS,
    AskCapacity: FixRank.LESS,
    DropConstraint: FixRank.GIVE_UP,
    DropSelector: FixRank.GIVE_UP,
    DropRequest: FixRank.GIVE_UP,
}
_PLUGIN: Final = re.compile(r'^running "\w+" filter plugin: ')
_HINT: Final = re.compile(r"\. consider using CEL optional chaining.*$", re.DOTALL)
_SELECTOR: Final = re.compile(
    r"(?P<whose>claim|class) (?P<name>\S+): selector #(?P<number>\d+)"
    r"(?: on device (?P<device>\S+))?: CEL (?:runtime|compile) error: (?P<error>.*)",
    re.DOTALL,
)
_LIMIT: Final = re.compile(
    r"claim (\S+): number of requested devices (\d+) exceeds the claim limit of (\d+)"
)


def conflict_findings(case: DeviceCase) -> Iterator[Finding]:
    """Find why claims cannot be served from what the diagnosis tried."""
    diagnosis = case.diagnosis
    proposals = tuple(tried_changes(case))
    if diagnosis.message:
        yield Finding(error_cause(diagnosis.message), (*proposals, *_error_advice(case)))
    elif diagnosis.conflict.members:
        yield Finding(_cause(case), (*proposals, *_advice(case)))
    elif diagnosis.ended_by:
        advice = f"ask again with more time, or for fewer devices: {diagnosis.ended_by}"
        cause = f"whether node {case.node} has the devices is not known: {diagnosis.ended_by}"
        yield Finding(cause, (Proposal(advice, FixRank.ADVICE),))


def tried_changes(case: DeviceCase) -> Iterator[Proposal]:
    """Yield the changes of the claims with which the diagnosis found devices."""
    situation = case.diagnosis.situation
    for fix in case.diagnosis.fixes:
        ranks = [_RANKS.get(type(change)) for change in fix.changes]
        if None in ranks or asks_for_nothing(fix, situation):
            continue
        changes = case.edits.changes(fix.changes)
        if changes:
            rank = max(rank for rank in ranks if rank is not None)
            yield Proposal(_text(case, fix), rank, changes)


def _text(case: DeviceCase, fix: Fix) -> str:
    return ", and ".join(_change(case, change) for change in fix.changes)


def _change(case: DeviceCase, change: SituationChange) -> str:
    situation = case.diagnosis.situation
    match change:
        case LowerCount(place=place, count=count):
            before = situation.details(place).count
            return f"ask for {count} instead of {before} in {case.request_text(place)}"
        case AskCapacity(place=place, name=name, amount=amount) if amount is not None:
            return f"ask for {amount} of {name} in {case.request_text(place)}"
        case DropRequest(claim=claim, request=request):
            return f"give up {case.request_text(RequestPath(claim, request))}"
        case DropSelector() | DropConstraint():
            return change_text(change, situation).replace("remove", "give up", 1)
    return change_text(change, situation)


# --- conflicts ------------------------------------------------------------------------------


def _cause(case: DeviceCase) -> str:
    members = case.diagnosis.conflict.members
    requests = [m for m in members if isinstance(m, DropRequest)]
    holders = [m for m in members if isinstance(m, FreeClaim)]
    taints = [m for m in members if isinstance(m, Tolerate)]
    if len(requests) == 1 and len(members) == len(requests) + len(holders) + len(taints):
        return _of_one(case, requests[0], holders, taints)
    if len(requests) > 1 and len(members) == len(requests):
        return _of_several(case, requests)
    texts = member_texts(members, case.diagnosis.situation, case.diagnosis.obstacles)
    return f"node {case.node} cannot serve these together: {'; '.join(texts)}"


def _of_one(
    case: DeviceCase,
    member: DropRequest,
    holders: Sequence[FreeClaim],
    taints: Sequence[Tolerate],
) -> str:
    """Return why one request cannot have the devices that it finds."""
    name = case.request_text(RequestPath(member.claim, member.request))
    found = case.funnels_of(member.claim, member.request)
    wishes = ", else ".join(dict.fromkeys(_wish(case, place, f) for place, f in found))
    why = "they cannot be given together"
    most = _most(case, member)
    if holders:
        names = listed([_full(case, each) for each in holders], shown_max=HOLDERS_SHOWN_MAX)
        why = f"claim {names} {'has' if len(holders) == 1 else 'have'} some of them"
    elif taints:
        text = change_text(taints[0], case.diagnosis.situation).removeprefix("tolerate ")
        why = f"some have {text}"
    elif most:
        why = f"at most {most} can be given together"
    return f"{name} wants {wishes} on node {case.node}, but {why}"


def _full(case: DeviceCase, claim: FreeClaim) -> str:
    is_here = claim.namespace == case.case.namespace
    return claim.name if is_here else f"{claim.namespace}/{claim.name}"


def _wish(case: DeviceCase, place: RequestPath, funnel: Funnel) -> str:
    name = case.diagnosis.situation.details(place).device_class_name
    if funnel.wanted is None:
        return f"all {counted(funnel.selected, 'device')} of class {name}"
    return f"{counted(funnel.wanted, 'device')} of class {name}"


def _most(case: DeviceCase, member: DropRequest) -> int:
    """Return the largest count that the diagnosis found to fit; 0 if it is not known."""
    for fix in case.diagnosis.fixes:
        match fix.changes:
            case (LowerCount(place=place, count=count),):
                if (place.claim, place.request) == (member.claim, member.request):
                    return count
    return 0


def _of_several(case: DeviceCase, requests: Sequence[DropRequest]) -> str:
    """Return that requests would do by themselves, but not beside each other."""
    found = [case.funnels_of(each.claim, each.request) for each in requests]
    names = [case.request_name(RequestPath(m.claim, m.request)) for m in requests]
    shown = f"requests {listed(names)}"
    classes = {
        case.diagnosis.situation.details(place).device_class_name
        for group in found
        for place, _ in group
    }
    funnels = [group[0][1] for group in found if len(group) == 1]
    if len(classes) == 1 and len(funnels) == len(found) and all(f.wanted for f in funnels):
        total = sum(funnel.wanted or 0 for funnel in funnels)
        free = max(funnel.free for funnel in funnels)
        (name,) = classes
        if total > free:
            have = "is free" if free == 1 else "are free"
            return (
                f"{shown} want {total} devices of class {name} together, {free} {have} on node "
                f"{case.node}"
            )
    wishes = [
        f"{name} wants {_wish(case, *group[0]) if group else 'devices'}"
        for name, group in zip(names, found, strict=True)
    ]
    return f"{shown} fit alone but not together on node {case.node}: {'; '.join(wishes)}"


def _advice(case: DeviceCase) -> Iterator[Proposal]:
    """Yield what to do where no change of the claims helps."""
    holders = list(case.diagnosis.obstacles.holders)
    if any(isinstance(m, FreeClaim) for m in case.diagnosis.conflict.members) and holders:
        yield from waits_for_claims(case.case, holders)
    yield more_hardware(case)


def more_hardware(case: DeviceCase) -> Proposal:
    """Return the advice to add a node that has all that the claims ask for."""
    wanted: dict[str, int] = {}
    for place, funnel in case.places():
        if not place.alternative:
            name = case.diagnosis.situation.details(place).device_class_name
            wanted[name] = wanted.get(name, 0) + (funnel.wanted or 1)
    texts = [f"{counted(count, 'device')} of class {name}" for name, count in wanted.items()]
    devices = listed(texts) or "such devices"
    return Proposal(f"add a node that has {devices} free", FixRank.HARDWARE)


# --- errors ---------------------------------------------------------------------------------


def error_cause(message: str) -> str:
    """Return an error that ended the search as a plain sentence."""
    text = _HINT.sub("", _PLUGIN.sub("", message))
    if found := _LIMIT.search(text):
        return f"claim {found[1]} asks for {found[2]} devices, a claim may have {found[3]} at most"
    if found := _SELECTOR.search(text):
        on = f" on device {found['device']}" if found["device"] else ""
        place = f"selector #{found['number']} of {found['whose']} {found['name']}"
        return f"{place} cannot be evaluated{on}: {_plain(found['error'])}"
    return text


def _plain(error: str) -> str:
    """Return the last part of an error of CEL, which names the fact."""
    return error.rpartition("ERROR: <input>:")[2].strip()


def _error_advice(case: DeviceCase) -> Iterator[Proposal]:
    message = case.diagnosis.message
    if _LIMIT.search(message):
        yield Proposal("split the claim: a pod may have several claims", FixRank.ADVICE)
    elif found := _SELECTOR.search(message):
        owner = (
            f"have an administrator correct selector #{found['number']} of class {found['name']}"
            if found["whose"] == "class"
            else f"correct selector #{found['number']} of claim {found['name']}"
        )
        text = f"{owner}: guard what some devices lack with has() or .?name.orValue(…)"
        yield Proposal(text, FixRank.ADVICE)
    elif TOOK_LONG in message:
        yield Proposal(SIMPLER, FixRank.ADVICE)
    else:
        text = "correct what the error names; moor validate shows the place"
        yield Proposal(text, FixRank.ADVICE)
