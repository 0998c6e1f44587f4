"""What to do about constraints that devices cannot satisfy, as an expert would rank it.

another name          a typo; a name that all devices have
no shadow             take away a derived attribute that hides the one that matches
derived attributes    where drivers name a fact differently, or write it in another type
fewer devices         as many as share a value
a coarser fact        the same NUMA node instead of the same PCIe root
fewer requests        compare only those whose devices have the attribute
no constraint         gives up what the user asked for
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Final

from moorage.api.gates import Gate
from moorage.api.resource.v1 import DeviceClaim
from moorage.insight.answer.changes.edits import APPEND, Edit, EditPath, ObjectChange
from moorage.insight.answer.devices.bridges import Bridge, Fact, bridges, coarser_facts, fact_of
from moorage.insight.answer.devices.compared import (
    Compared,
    ComparedRequest,
    can_meet,
    published_values,
)
from moorage.insight.answer.devices.shortages import DeviceCase
from moorage.insight.answer.finding import FixRank, Proposal
from moorage.insight.explain.situation import LowerCount
from moorage.insight.expressions.published_devices import field_candidates, qualified
from moorage.insight.expressions.syntax import DeviceField
from moorage.insight.messages import listed

NAMES_TRIED_MAX: Final = 2
STANDARD_DOMAIN: Final = "resource.kubernetes.io"


def constraint_proposals(
    case: DeviceCase, found: Compared, bridge: Bridge | None, *, is_taken: bool
) -> Iterator[Proposal]:
    """Yield what to do about a constraint; `is_taken`: devices in use would satisfy it."""
    fixes = _Fixes(case, found)
    if found.lacking:
        yield from fixes.renamed()
        yield from fixes.derived_too()
    yield from fixes.unshadowed()
    if found.is_match and not is_taken:
        yield from fixes.bridged(bridge)
    yield from fixes.gates_on()
    yield from fixes.fewer()
    if found.is_match and not is_taken:
        yield from fixes.coarser()
    yield from fixes.narrowed()
    yield from fixes.given_up()


def similar_attributes(case: DeviceCase, found: Compared) -> list[str]:
    """Return the names of attributes that may have been meant."""
    domain, _, name = found.attribute.partition("/")
    fields = field_candidates(DeviceField("attributes", domain, name), case.case.fleet)
    names = [text for each in fields if (text := qualified(each)) is not None]
    fact = fact_of(found.attribute)
    if fact is not None:
        names = [*(each for each in names_of(found, fact) if _all_have(found, each)), *names]
    others = [each for each in dict.fromkeys(names) if each != found.attribute]
    having = [each for each in others if _all_have(found, each)]
    return [*having, *(each for each in others if each not in having)][:NAMES_TRIED_MAX]


def may_be_dropped(case: DeviceCase, found: Compared) -> bool:
    """Return whether the attribute may be a derived one that was dropped, its gate being off.

    Nobody has it, and no driver has such a domain.
    """
    domain, _, name = found.attribute.partition("/")
    fleet = case.case.fleet
    is_on = case.diagnosis.situation.features.derived_attributes
    if is_on or fleet.carriers[DeviceField("attributes", domain, name)]:
        return False
    return domain not in {STANDARD_DOMAIN, *(device.driver for device in fleet.devices)}


def names_of(found: Compared, fact: Fact) -> list[str]:
    """Return the attributes of the requests' devices about a fact, the standard one first."""
    names = dict.fromkeys(
        f"{domain}/{name}"
        for each in found.requests
        for device in each.fitting
        if device.variables is not None
        for domain, entries in device.variables["device"]["attributes"].items()
        for name in entries
    )
    about = (each for each in names if fact_of(each) is fact)
    return sorted(about, key=lambda each: each != fact.standard)


def renamings(case: DeviceCase, found: Compared) -> list[str]:
    """Return similar names with which the requests would match."""
    if not found.lacking or any(each.expression for each in found.requests):
        return []
    names = [each for each in similar_attributes(case, found) if _all_have(found, each)]
    if not found.is_match:
        return names
    return [
        name
        for name in names
        if can_meet(
            [each.with_values(published_values(each.fitting, name)) for each in found.requests],
            has_lists=found.has_lists,
        )
    ]


def _all_have(found: Compared, attribute: str) -> bool:
    return all(published_values(each.fitting, attribute) for each in found.requests)


class _Fixes:
    def __init__(self, case: DeviceCase, found: Compared) -> None:
        self._case, self._found = case, found
        self._source = case.edits.source(found.member.claim)
        self._features = case.diagnosis.situation.features

    def _change(self, *edits: Edit) -> tuple[ObjectChange, ...]:
        return () if self._source is None else (self._source.change(*edits),)

    @property
    def _constraint_path(self) -> EditPath:
        return ("devices", "constraints", self._found.member.constraint)

    # --- names --------------------------------------------------------------------------------

    def renamed(self) -> Iterator[Proposal]:
        """Yield the constraint with another name, with which requests can match."""
        for name in renamings(self._case, self._found):
            edit = Edit((*self._constraint_path, self._found.field), name)
            text = f"use {name} instead of {self._found.attribute} in the constraint"
            yield Proposal(text, FixRank.REPAIR, self._change(edit))

    def derived_too(self) -> Iterator[Proposal]:
        """Yield that the requests without the attribute derive it as others of the claim do."""
        derived = [e.expression for e in self._found.requests if e.expression is not None]
        lacking = [each for each in self._found.lacking if each.expression is None]
        if not derived or not lacking:
            return
        edits = [self._derive(each, derived[0]) for each in lacking]
        names = listed([each.name for each in lacking])
        text = f"derive {self._found.attribute} in request {names}, too (derivedAttributes)"
        yield Proposal(text, FixRank.GIVE, self._change(*edits))

    def unshadowed(self) -> Iterator[Proposal]:
        """Yield that requests do without a derived attribute that hides a published one."""
        found = self._found
        for each in found.requests:
            if each.expression is None:
                continue
            hidden = each.with_values(published_values(each.fitting, found.attribute))
            instead = [hidden if other is each else other for other in found.requests]
            number = self._derived_number(each)
            if hidden.known and can_meet(instead, has_lists=found.has_lists) and number is not None:
                path = (*self._case.edits.request(each.place), "derivedAttributes", number)
                text = (
                    f"remove the derived attribute {found.attribute} of request {each.name}: the "
                    "published one matches"
                )
                yield Proposal(text, FixRank.REPAIR, self._change(Edit(path)))

    def _derived_number(self, request: ComparedRequest, attribute: str = "") -> int | None:
        name = attribute or self._found.attribute
        details = self._case.diagnosis.situation.details(request.place)
        for number, each in enumerate(details.derived_attributes):
            if each.name == name:
                return number
        return None

    # --- derived attributes -------------------------------------------------------------------

    def bridged(self, first: Bridge | None) -> Iterator[Proposal]:
        """Yield derived attributes that let the requests match."""
        found = self._found
        if first is None:
            return
        for bridge in islice(bridges(self._case, found, found.attribute), NAMES_TRIED_MAX):
            yield self._bridge(bridge, f"{bridge} (derivedAttributes)", FixRank.GIVE)

    def _bridge(self, bridge: Bridge, text: str, rank: FixRank, *edits: Edit) -> Proposal:
        if self._features.derived_attributes:
            parts = (self._derive(p.request, p.expression, bridge.attribute) for p in bridge.parts)
            return Proposal(text, rank, self._change(*edits, *parts))
        gate = Gate.DRA_DERIVED_ATTRIBUTES
        text = f"turn on feature gate {gate} (an administrator's change), then {text}"
        return Proposal(text, FixRank.ADMINISTRATOR)

    def _derive(self, request: ComparedRequest, expression: str, attribute: str = "") -> Edit:
        """Return the edit that derives an attribute in a request."""
        path = (*self._case.edits.request(request.place), "derivedAttributes")
        number = self._derived_number(request, attribute)
        if number is not None:
            return Edit((*path, number, "expression"), expression)
        name = attribute or self._found.attribute
        return Edit((*path, APPEND), {"name": name, "expression": expression})

    def coarser(self) -> Iterator[Proposal]:
        """Yield that a fact is compared that more devices share."""
        found = self._found
        compared = {each.match_attribute for each in self._claim.constraints}
        if any(each.expression for each in found.requests):
            return
        for fact in coarser_facts(found.attribute):
            for name in names_of(found, fact):
                if name in compared:
                    return
                edit = Edit((*self._constraint_path, found.field), name)
                text = f"compare {name} instead of {found.attribute}, which is coarser"
                values = [e.with_values(published_values(e.fitting, name)) for e in found.requests]
                if can_meet(values, has_lists=found.has_lists):
                    yield Proposal(text, FixRank.LESS, self._change(edit))
                    return
                bridge = next(bridges(self._case, found, name), None)
                if bridge is not None:
                    yield self._bridge(bridge, f"{text}, and {bridge}", FixRank.LESS, edit)
                    return

    # --- less ---------------------------------------------------------------------------------

    def gates_on(self) -> Iterator[Proposal]:
        """Yield that lists are switched on where some are compared, or derived attributes."""
        found = self._found
        if may_be_dropped(self._case, found):
            gate = Gate.DRA_DERIVED_ATTRIBUTES
            text = f"turn on feature gate {gate} (an administrator's change), and derive it"
            yield Proposal(text, FixRank.ADMINISTRATOR)
        is_list = any(isinstance(v, list | tuple) for e in found.requests for v in e.known)
        if is_list and not found.has_lists:
            gate = Gate.DRA_LIST_TYPE_ATTRIBUTES
            text = f"turn on feature gate {gate} (an administrator's change): lists then match"
            yield Proposal(text, FixRank.ADMINISTRATOR)

    def fewer(self) -> Iterator[Proposal]:
        """Yield that requests ask for as many devices as share a value."""
        situation = self._case.diagnosis.situation
        for fix in self._case.diagnosis.fixes:
            match fix.changes:
                case (LowerCount(place=place, count=count),):
                    changes = self._case.edits.changes(fix.changes)
                    if changes:
                        before, name = situation.details(place).count, situation.request_name(place)
                        text = f"ask for {count} instead of {before} in request {name}"
                        yield Proposal(text, FixRank.LESS, changes)

    def narrowed(self) -> Iterator[Proposal]:
        """Yield that the constraint compares only requests whose devices have the attribute."""
        found = self._found
        lacking = found.lacking
        kept = [each for each in found.requests if each not in lacking]
        names = list(dict.fromkeys(each.name.partition("/")[0] for each in kept))
        if not lacking or sum(each.wanted for each in kept) < 2:
            return
        rank = FixRank.GIVE_UP if found.constraint.requests else FixRank.LESS
        text = f"compare {found.attribute} only for request {listed(names)}"
        edit = Edit((*self._constraint_path, "requests"), names)
        yield Proposal(text, rank, self._change(edit))

    def given_up(self) -> Iterator[Proposal]:
        """Yield that the constraint goes, or all do, with the derived attributes for them."""
        text = f"give up the constraint on {self._found.attribute}"
        yield Proposal(text, FixRank.GIVE_UP, self._without({self._found.member.constraint}))
        constraints = self._claim.constraints
        if len(constraints) > 1:
            names = dict.fromkeys(
                each.match_attribute or each.distinct_attribute or "" for each in constraints
            )
            text = f"give up the constraints on {listed(list(names))}"
            yield Proposal(text, FixRank.GIVE_UP, self._without(set(range(len(constraints)))))

    @property
    def _claim(self) -> DeviceClaim:
        return self._case.diagnosis.situation.claims[self._found.member.claim].spec.devices

    def _without(self, numbers: set[int]) -> tuple[ObjectChange, ...]:
        """Return the claim without constraints, and without what is derived for them only."""
        kept = [e for n, e in enumerate(self._claim.constraints) if n not in numbers]
        names = {e.match_attribute for e in kept} | {e.distinct_attribute for e in kept}
        # From the last to the first: what is taken away shifts only what comes after it.
        edits = [Edit(("devices", "constraints", n)) for n in sorted(numbers, reverse=True)]
        for place, details in self._case.diagnosis.situation.requests():
            path = (*self._case.edits.request(place), "derivedAttributes")
            edits += (
                Edit((*path, number))
                for number in reversed(range(len(details.derived_attributes)))
                if place.claim == self._found.member.claim
                and details.derived_attributes[number].name not in names
            )
        return self._change(*edits)
