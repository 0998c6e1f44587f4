"""Constraints that leave too few devices together: what they compare, and what to do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from mooring.api.resource.v1 import DeviceConstraint
from mooring.insight.answer.edits import APPEND, Edit
from mooring.insight.answer.finding import Finding, FixRank, Proposal
from mooring.insight.answer.shortages import DeviceCase
from mooring.insight.explain.funnel import ConstraintValues
from mooring.insight.explain.situation import DropConstraint, LowerCount, RequestPath
from mooring.insight.expressions.published_devices import field_candidates, qualified
from mooring.insight.expressions.syntax import DeviceField
from mooring.insight.messages import counted, listed

NAMES_TRIED_MAX = 2


class _Constraint(NamedTuple):
    """A constraint in conflict, and the values that it finds for each of its requests."""

    member: DropConstraint
    constraint: DeviceConstraint
    values: tuple[ConstraintValues, ...]

    @property
    def field(self) -> str:
        return "matchAttribute" if self.constraint.match_attribute else "distinctAttribute"

    @property
    def attribute(self) -> str:
        return self.constraint.match_attribute or self.constraint.distinct_attribute or ""

    @property
    def lacking(self) -> list[str]:
        """The requests none of whose devices has the attribute."""
        return [each.request for each in self.values if set(each.devices) == {""}]


def constraint_findings(case: DeviceCase) -> Iterator[Finding]:
    """Find constraints that the devices of the node cannot satisfy."""
    diagnosis = case.diagnosis
    for member in diagnosis.conflict.members:
        if not isinstance(member, DropConstraint):
            continue
        devices = diagnosis.situation.claims[member.claim].spec.devices
        values = tuple(
            each
            for each in diagnosis.values
            if (each.claim, each.constraint) == (member.claim, member.constraint)
        )
        found = _Constraint(member, devices.constraints[member.constraint], values)
        yield Finding(_cause(case, found), tuple(_proposals(case, found)))


# --- causes ---------------------------------------------------------------------------------


def _cause(case: DeviceCase, found: _Constraint) -> str:
    if found.lacking:
        similar = _similar(case, found)
        hint = f": did you mean {similar[0]}?" if similar else ""
        return (
            f"no device for request {listed(found.lacking)} has attribute {found.attribute}, which "
            f"a constraint compares{hint}"
        )
    wanted = {funnel.request: funnel.wanted or 1 for funnel in case.diagnosis.funnels}
    if found.constraint.match_attribute is None:
        return _distinct_cause(found, wanted)
    for each in found.values:
        most, value = max(((len(d), v) for v, d in each.devices.items() if v), default=(0, ""))
        need = wanted.get(each.request, 1)
        if need > most:
            return (
                f"request {each.request} wants {need} devices with one {found.attribute}, but at "
                f"most {most} have the same ({value})"
            )
    texts = (f"{each.request}: {_values(each)}" for each in found.values)
    return f"no value of {found.attribute} fits all requests: {'; '.join(texts)}"


def _distinct_cause(found: _Constraint, wanted: dict[str, int]) -> str:
    total = sum(wanted.get(each.request, 1) for each in found.values)
    values = sorted({value for each in found.values for value in each.devices if value})
    return (
        f"{counted(total, 'device')} with different {found.attribute} are wanted, but there are "
        f"{counted(len(values), 'value')}: {listed(values)}"
    )


def _values(each: ConstraintValues) -> str:
    return listed(sorted(value or "none" for value in each.devices)) or "no device"


# --- proposals ------------------------------------------------------------------------------


def _proposals(case: DeviceCase, found: _Constraint) -> Iterator[Proposal]:
    if found.lacking:
        yield from _renamed(case, found)
        yield from _derived_too(case, found)
    yield from _fewer(case)
    dropped = case.edits.changes([found.member])
    if dropped:
        text = f"give up the constraint on {found.attribute}"
        yield Proposal(text, FixRank.GIVE_UP, dropped)


def _similar(case: DeviceCase, found: _Constraint) -> list[str]:
    """Return the names of attributes that may have been meant."""
    domain, _, name = found.attribute.partition("/")
    fields = field_candidates(DeviceField("attributes", domain, name), case.case.fleet)
    names = [text for each in fields if (text := qualified(each)) is not None]
    return [each for each in names if each != found.attribute][:NAMES_TRIED_MAX]


def _renamed(case: DeviceCase, found: _Constraint) -> Iterator[Proposal]:
    source = case.edits.source(found.member.claim)
    if source is None:
        return
    for name in _similar(case, found):
        path = ("devices", "constraints", found.member.constraint, found.field)
        text = f"use {name} instead of {found.attribute} in the constraint"
        yield Proposal(text, FixRank.REPAIR, (source.change(Edit(path, name)),))


def _derived_too(case: DeviceCase, found: _Constraint) -> Iterator[Proposal]:
    """Yield that the requests without the attribute derive it as others of the claim do."""
    requests = [
        (place, details)
        for place, details in case.diagnosis.situation.requests()
        if place.claim == found.member.claim
    ]
    derived = [
        each
        for _, details in requests
        for each in details.derived_attributes
        if each.name == found.attribute
    ]
    places = [place for place, _ in requests if _name(case, place) in found.lacking]
    source = case.edits.source(found.member.claim)
    if not derived or not places or source is None:
        return
    value = {"name": derived[0].name, "expression": derived[0].expression}
    paths = ((*case.edits.request(place), "derivedAttributes", APPEND) for place in places)
    text = f"derive {found.attribute} in request {listed(found.lacking)}, too"
    yield Proposal(text, FixRank.GIVE, (source.change(*(Edit(path, value) for path in paths)),))


def _name(case: DeviceCase, place: RequestPath) -> str:
    return case.diagnosis.situation.request_name(place)


def _fewer(case: DeviceCase) -> Iterator[Proposal]:
    situation = case.diagnosis.situation
    for fix in case.diagnosis.fixes:
        match fix.changes:
            case (LowerCount(place=place, count=count),):
                changes = case.edits.changes(fix.changes)
                if changes:
                    before, name = situation.details(place).count, _name(case, place)
                    text = f"ask for {count} instead of {before} in request {name}"
                    yield Proposal(text, FixRank.LESS, changes)
