"""Why the claims of a pod get no devices on the nearest node: the cause, and what to do.

Each question of a request's funnel that leaves too few devices has a function. A request with
alternatives is short only if all of them are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mooring.insight.answer.constraints import constraint_findings
from mooring.insight.answer.derived import derived_findings, ends_search
from mooring.insight.answer.finding import Case, Finding, FixRank, Proposal
from mooring.insight.answer.selectors import faulty_selectors, unselected
from mooring.insight.answer.shortages import OF_CLASS, ON_NODE, DeviceCase, Shortage
from mooring.insight.answer.taints import untolerated
from mooring.insight.explain.device_rejections import TooLittle, Unfit
from mooring.insight.explain.diagnosis import Diagnosis
from mooring.insight.explain.funnel import FITTING, FREE, SELECTED, TOLERATED
from mooring.insight.explain.situation import AskCapacity
from mooring.insight.messages import counted, listed

HOLDERS_SHOWN_MAX = 3


def device_findings(case: Case, diagnosis: Diagnosis) -> Iterator[Finding]:
    """Find why claims get no devices on the node of a diagnosis."""
    devices = DeviceCase(case, diagnosis)
    yield from _unusable_pools(devices)
    shortages = devices.shortages()
    if diagnosis.message and not shortages:
        if ends_search(devices):
            yield from derived_findings(devices)
        yield from faulty_selectors(devices)
    for group in shortages:
        if group[0].place.alternative is None:
            yield from _findings(devices, group[0])
        else:
            yield _of_alternatives(devices, group)
    yield from constraint_findings(devices, tuple(_release_proposals(case, diagnosis)))
    if not diagnosis.message:
        yield from derived_findings(devices)


def _findings(case: DeviceCase, short: Shortage) -> Iterator[Finding]:
    """Yield why a request finds too few devices."""
    find = {
        ON_NODE: _too_few_of_class,
        OF_CLASS: _too_few_of_class,
        SELECTED: unselected,
        FREE: _in_use,
        TOLERATED: untolerated,
        FITTING: _unfit,
    }[short.stage]
    yield from find(case, short)


def _of_alternatives(case: DeviceCase, group: Sequence[Shortage]) -> Finding:
    """Return why no alternative of a request fits."""
    causes: list[str] = []
    proposals: list[Proposal] = []
    for short in group:
        finding = next(_findings(case, short), None)
        if finding is not None:
            causes.append(f"{short.funnel.request.partition('/')[2]}: {finding.cause}")
            proposals += finding.proposals
    request = group[0].funnel.request.partition("/")[0]
    cause = f"no alternative of request {request} fits: {'; '.join(causes)}"
    return Finding(cause, tuple(proposals))


# --- pools and classes ----------------------------------------------------------------------


def _unusable_pools(case: DeviceCase) -> Iterator[Finding]:
    """Find pools whose driver has not published all slices, or published wrong ones."""
    for pool in case.diagnosis.pools:
        driver, _, name = pool.pool.partition("/")
        fact = pool.reason
        if not fact:
            slices = [
                each.spec.pool
                for each in case.case.snapshot.slices
                if (each.spec.driver, each.spec.pool.name) == (driver, name)
            ]
            newest = max((each.generation for each in slices), default=0)
            current = [each for each in slices if each.generation == newest]
            announced = max((each.resource_slice_count for each in current), default=0)
            fact = f"{len(current)} of {announced} slices are published"
        yield Finding(
            f"pool {name} of driver {driver} is {pool.state}: {fact}, so none of its devices is "
            "given away",
            (
                Proposal(
                    f"see whether driver {driver} runs, and why it has not published all slices of "
                    f"pool {name}; the pod is tried again when it has",
                    FixRank.ADVICE,
                ),
            ),
        )


def _too_few_of_class(case: DeviceCase, short: Shortage) -> Iterator[Finding]:
    name, on_node = short.class_name, short.funnel.of_class
    everywhere = case.of_class(name)
    if not everywhere:
        yield _unpublished(case, name)
        return
    if not on_node:
        nodes = sorted({device.node for device in everywhere if device.node})
        verb = "has" if len(nodes) == 1 else "have"
        where = f": only {listed(nodes)} {verb} such devices" if nodes else ""
        advice = f"let the pod run where devices of class {name} are"
        cause = f"node {case.node} has no device of class {name}{where}"
        yield Finding(cause, (Proposal(advice, FixRank.ADVICE),))
        return
    others = len(case.case.cluster.snapshot.nodes) > 1
    most = f"no node has more than {on_node}" if others else f"node {case.node} has {on_node}"
    yield Finding(
        f"{short.name} asks for {short.wanted} devices of class {name}, {most}",
        tuple(case.fewer(short, on_node)),
    )


def _unpublished(case: DeviceCase, name: str) -> Finding:
    """Return that no driver publishes devices of a class."""
    driver = _driver_of_class(case, name)
    if any(device.driver == driver for device in case.case.fleet.devices):
        advice = f"see the selectors of class {name}: moor cel shows which devices match"
        cause = f"driver {driver} publishes devices, but none matches class {name}"
        return Finding(cause, (Proposal(advice, FixRank.ADVICE),))
    return Finding(
        f"no driver publishes devices of class {name} on any node: is driver {driver} running?",
        (Proposal(f"start driver {driver} on the nodes with such devices", FixRank.ADVICE),),
    )


def _driver_of_class(case: DeviceCase, name: str) -> str:
    """Return the driver that the selectors of a class name; else the class name itself."""
    found = case.case.cluster.inventory.device_class(name)
    for selector in () if found is None else found.spec.selectors:
        text = "" if selector.cel is None else selector.cel.expression
        _, names_it, rest = text.partition("device.driver ==")
        if names_it and rest.count('"') >= 2:
            return rest.split('"')[1]
    return name


# --- devices in use, amounts ----------------------------------------------------------------


def _in_use(case: DeviceCase, short: Shortage) -> Iterator[Finding]:
    funnel, held = short.funnel, _holders_text(case.case, case.diagnosis)
    free = f"{funnel.free} of {funnel.selected} free"
    if not funnel.free:
        free = f"all {funnel.selected} in use" if funnel.selected > 1 else "the only one is in use"
    yield Finding(
        f"{short.name} wants {counted(short.wanted, 'device')} of class {short.class_name}: "
        f"{free}, by {held}",
        (*case.fewer(short, funnel.free), *_release_proposals(case.case, case.diagnosis)),
    )


def _unfit(case: DeviceCase, short: Shortage) -> Iterator[Finding]:
    nearest = short.funnel.nearest
    if nearest is None:
        return
    held = _holders_text(case.case, case.diagnosis)
    proposals = (*_less_capacity(case, short), *_release_proposals(case.case, case.diagnosis))
    match nearest.refusal:
        case TooLittle(amounts=(first, *_)):
            verb = "have" if "," in held else "has"
            by = f": {held} {verb} the rest" if held else ""
            yield Finding(
                f"{short.name}: device {nearest.device} needs {first.wanted} of {first.name}, "
                f"{first.left} of {first.there} is left{by}",
                proposals,
            )
        case Unfit(text=text):
            yield Finding(f"{short.name}: device {nearest.device} {text}", proposals)


def _less_capacity(case: DeviceCase, short: Shortage) -> Iterator[Proposal]:
    for fix in case.diagnosis.fixes:
        match fix.changes:
            case (AskCapacity(place=place, name=name, amount=amount),) if place == short.place:
                changes = case.edits.changes(fix.changes)
                if changes and amount is not None:
                    text = f"ask for {amount} of {name} in {short.name}"
                    yield Proposal(text, FixRank.LESS, changes)


# --- who has the devices --------------------------------------------------------------------


def _holders_text(case: Case, diagnosis: Diagnosis) -> str:
    """Return the claims that have devices there, with the pods that use them."""
    names = [_named(case, *key) for key in diagnosis.obstacles.holders]
    return listed(names, shown_max=HOLDERS_SHOWN_MAX)


def _named(case: Case, namespace: str, name: str) -> str:
    users = _users(case, namespace, name)
    claim = f"claim {namespace}/{name}" if namespace != case.namespace else f"claim {name}"
    return f"{claim} of pod {listed(users, shown_max=1)}" if users else claim


def _users(case: Case, namespace: str, name: str) -> list[str]:
    claim = case.cluster.find_claim(namespace, name)
    return [] if claim is None else [each.name for each in claim.status.reserved_for]


def _release_proposals(case: Case, diagnosis: Diagnosis) -> Iterator[Proposal]:
    """Yield the advice to wait for those who have the devices; nobody's claim is deleted."""
    holders = list(diagnosis.obstacles.holders)
    if not holders:
        return
    shown = holders[:HOLDERS_SHOWN_MAX]
    parts = [f"{_named(case, *key)}{_age(case, *key)}" for key in shown]
    more = len(holders) - len(parts)
    rest = f" and {more} more" if more > 0 else ""
    yield Proposal(
        f"wait until {', '.join(parts)}{rest} frees its devices, or ask its owner", FixRank.FREE
    )


def _age(case: Case, namespace: str, name: str) -> str:
    claim = case.cluster.find_claim(namespace, name)
    allocation = None if claim is None else claim.status.allocation
    since = None if allocation is None else allocation.allocation_timestamp
    if since is None:
        return ""
    seconds = (case.context.now.instant - since.instant).total_seconds()
    for unit, size in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if seconds >= size:
            return f", for {int(seconds // size)}{unit}"
    return ""
