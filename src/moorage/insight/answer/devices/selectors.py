"""Selectors that leave too few devices: the mistake in them, and the repair.

Those of requests are the user's; those of classes are an administrator's. A selector that does not
compile is refused with the claim or template that has it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

from moorage.insight.answer.changes.edits import Edit, ObjectChange, change_of, edited_tree, merged
from moorage.insight.answer.devices.shortages import DeviceCase, Shortage, expressions_of
from moorage.insight.answer.finding import Case, Finding, FixRank, Proposal
from moorage.insight.explain.funnel import SELECTED
from moorage.insight.explain.situation import LowerCount
from moorage.insight.expressions.candidates import Devices
from moorage.insight.expressions.mistake import RepairKind
from moorage.insight.expressions.repairs import ExpressionRepair, SelectorDiagnosis, diagnose
from moorage.insight.messages import counted, fitting, listed
from moorage.insight.snapshot.written_objects import RefusedObject

REPAIRS_MAX: Final = 6
_RANKS: Final = {
    RepairKind.GUARD: FixRank.GIVE,
    RepairKind.AMOUNT: FixRank.LESS,
    RepairKind.OTHER_VALUE: FixRank.LESS,
    RepairKind.DROPPED: FixRank.GIVE_UP,
}
_REQUEST: Final = re.compile(
    r"requests\[(\d+)\]\.(?:exactly|firstAvailable\[(\d+)\])\.selectors\[(\d+)\]\.cel\.expression"
)


def unselected(case: DeviceCase, short: Shortage) -> Iterator[Finding]:
    """Find the mistake in selectors that leave too few of the devices of a class."""
    candidates = case.of_class(short.class_name)
    expressions = expressions_of(short.details.selectors)
    passing = case.passing(expressions, candidates)
    found = diagnose(
        expressions,
        case.compiler,
        Devices(tuple(candidates), case.case.fleet),
        wanted=short.wanted,
    )
    if found is not None and found.cause and (not passing or found.repairs):
        yield Finding(found.cause, tuple(_proposals(case, short, found, expressions)))
    elif passing and len(passing) < short.wanted:
        devices = counted(len(passing), "device")
        cause = f"{short.name} wants {short.wanted} devices, its selectors match {devices}"
        yield Finding(cause, tuple(case.fewer(short, len(passing))))
    elif passing:
        yield _elsewhere(case, short, sorted({device.node for device in passing if device.node}))
    else:
        text = "see which part of it is false: moor cel shows it for each device"
        cause = f"no device matches the selectors of {short.name}"
        yield Finding(cause, (Proposal(text, FixRank.ADVICE),))


def _elsewhere(case: DeviceCase, short: Shortage, nodes: list[str]) -> Finding:
    """Return that the devices which match are on other nodes."""
    gone = [node for node in nodes if node not in case.case.cluster.snapshot.nodes]
    if gone and len(gone) == len(nodes):
        return Finding(
            f"devices that match {short.name} are on {listed(gone)} only, which is gone",
            (
                Proposal(
                    f"bring node {gone[0]} back, or have its slices deleted: they are left over",
                    FixRank.ADVICE,
                ),
            ),
        )
    verb = "has" if len(nodes) == 1 else "have"
    where = f": only {listed(nodes)} {verb} them" if nodes else ""
    cause = f"node {case.node} has too few devices that match the selectors of {short.name}{where}"
    advice = f"let the pod run where devices match the selectors of {short.name}{where}"
    return Finding(cause, (Proposal(advice, FixRank.ADVICE),))


def faulty_selectors(case: DeviceCase) -> Iterator[Finding]:
    """Find selectors that cannot be evaluated on some device, which ends the search."""
    for place, details in case.diagnosis.situation.requests():
        funnel = case.funnel(place)
        if funnel is None:
            continue
        short = Shortage(place, details, funnel, SELECTED)
        candidates = tuple(case.of_class(short.class_name))
        expressions = expressions_of(details.selectors)
        found = diagnose(expressions, case.compiler, Devices(candidates, case.case.fleet))
        if found is not None and found.cause:
            yield Finding(found.cause, tuple(_proposals(case, short, found, expressions)))


def _proposals(
    case: DeviceCase, short: Shortage, found: SelectorDiagnosis, expressions: Sequence[str]
) -> Iterator[Proposal]:
    for each in found.repairs[:REPAIRS_MAX]:
        changes = [
            case.edits.selector(short.place, number, new)
            for number, new in each.changed(expressions).items()
        ]
        known = [change for change in changes if change is not None]
        if len(known) < len(changes):
            continue
        rank = _RANKS.get(each.kind, FixRank.REPAIR)
        yield Proposal(f"{short.name}: {each.text}", rank, merged(known))
        if each.matching < short.wanted:
            # A second mistake: more devices are asked for than there are of what was meant.
            fewer = case.edits.changes([LowerCount(short.place, each.matching)])
            text = f"{each.text}, and ask for {each.matching} instead of {short.wanted}"
            if fewer:
                ranked = max(rank, FixRank.LESS)
                yield Proposal(f"{short.name}: {text}", ranked, merged([*known, *fewer]))


# --- classes ----------------------------------------------------------------------------------


def class_mistake(case: DeviceCase, name: str) -> Finding | None:
    """Return the mistake in the selectors of a class that no device matches, if there is one."""
    found = case.case.cluster.inventory.device_class(name)
    if found is None or not case.case.fleet.devices:
        return None
    expressions = expressions_of(found.spec.selectors)
    devices = Devices(case.case.fleet.devices, case.case.fleet)
    diagnosis = diagnose(expressions, case.compiler, devices)
    if diagnosis is None or not diagnosis.cause:
        return None
    sure = [each for each in diagnosis.repairs if each.kind <= RepairKind.UNIT]
    if not sure:
        return None
    proposals = tuple(_class_proposal(found, name, each, expressions) for each in sure[:1])
    cause = fitting(
        f"class {name} matches no device: {diagnosis.cause}",
        f"class {name}: {diagnosis.cause}",
        f"class {name} matches no device: {diagnosis.mistakes[0].cause}",
        f"class {name}: {diagnosis.mistakes[0].cause}",
    )
    return Finding(cause, proposals)


def _class_proposal(
    found: Any, name: str, repair: ExpressionRepair, expressions: Sequence[str]
) -> Proposal:
    edits = [
        Edit(("selectors", number, "cel", "expression"), new)
        for number, new in repair.changed(expressions).items()
    ]
    text = f"correct class {name}: {repair.text} (an administrator's change)"
    return Proposal(text, FixRank.ADMINISTRATOR, merged(_class_change(found, e) for e in edits))


def _class_change(found: Any, edit: Edit) -> ObjectChange:
    return change_of(found, Edit(("spec", *edit.path), edit.value))


# --- selectors that do not compile ------------------------------------------------------------


def refused_selector(case: Case, noun: str, refused: RefusedObject) -> Finding | None:
    """Return the mistake in a selector for which a claim or template is refused."""
    places = map(_REQUEST.search, refused.reasons)
    place = next((each for each in places if each is not None), None)
    spec = refused.tree.get("spec") or {}
    if refused.kind == "ResourceClaimTemplate":
        spec = spec.get("spec") or {}
    if place is None:
        return None
    try:
        request = spec["devices"]["requests"][int(place[1])]
        alternative = None if place[2] is None else int(place[2])
        details = (
            request["exactly"] if alternative is None else request["firstAvailable"][alternative]
        )
        expressions = [each["cel"]["expression"] for each in details["selectors"]]
    except (KeyError, IndexError, TypeError):
        return None
    devices = _devices_of_class(case, str(details.get("deviceClassName", "")))
    found = diagnose(expressions, case.around.compiler, devices)
    if found is None or not found.cause:
        return None
    name = f"request {request.get('name', place[1])}"
    where = f"{noun} {refused.name} is refused, {name}: "
    short = found.cause.removeprefix("the expression ")
    cause = fitting(where + short, f"{noun} {refused.name}, {name}: {short}", short)
    proposals = tuple(
        Proposal(f"{name}: {each.text}", FixRank.REPAIR, (_rewritten(refused, place, each),))
        for each in found.repairs
        if each.kind < RepairKind.DROPPED
    )
    said = (
        f"correct the expression of {name} in {noun} {refused.name}: moor cel tries it on devices"
    )
    return Finding(cause, proposals or (Proposal(said, FixRank.REPAIR),))


def _devices_of_class(case: Case, name: str) -> Devices:
    """Return the devices of a class; all, if the class is unknown."""
    found = case.cluster.inventory.device_class(name)
    devices = list(case.fleet.devices)
    for expression in expressions_of(() if found is None else found.spec.selectors):
        passing = case.around.passing(expression)
        devices = [each for each in devices if each.index in passing]
    return Devices(tuple(devices), case.fleet, found is not None)


def _rewritten(
    refused: RefusedObject, place: re.Match[str], repair: ExpressionRepair
) -> ObjectChange:
    request: tuple[str | int, ...] = ("devices", "requests", int(place[1]))
    inner = ("exactly",) if place[2] is None else ("firstAvailable", int(place[2]))
    is_template = refused.kind == "ResourceClaimTemplate"
    base = ("spec", "spec") if is_template else ("spec",)
    edits = [
        Edit((*base, *request, *inner, "selectors", number, "cel", "expression"), new)
        for number, new in enumerate(repair.expressions)
    ]
    tree = edited_tree(refused.tree, edits)
    return ObjectChange(refused.kind, refused.namespace, refused.name, new=tree)
