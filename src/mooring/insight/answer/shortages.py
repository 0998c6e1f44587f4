"""Requests that find too few devices on a node, and the devices that expressions choose.

funnel of a request ─ the first question that leaves too few devices ─► Shortage
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Final

from msgspec import Struct

from mooring.allocator.requests import claim_name
from mooring.cel.device import DeviceCompiler
from mooring.insight.answer.claim_changes import ClaimEdits
from mooring.insight.answer.finding import Case, FixRank, Proposal
from mooring.insight.explain.diagnosis import Diagnosis
from mooring.insight.explain.funnel import TOGETHER, Funnel
from mooring.insight.explain.situation import Details, LowerCount, RequestPath
from mooring.insight.expressions.published_devices import PublishedDevice

ON_NODE: Final = 0  # questions of the funnel before those that it names
OF_CLASS: Final = 1


class Shortage(Struct, frozen=True):
    """A request, or an alternative, that finds too few devices."""

    place: RequestPath
    details: Details
    funnel: Funnel
    stage: int  # the first question that leaves too few

    @property
    def name(self) -> str:
        """The request as messages name it."""
        return f"request {self.funnel.request}"

    @property
    def class_name(self) -> str:
        """The class of the devices."""
        return self.details.device_class_name

    @property
    def wanted(self) -> int:
        """How many devices are wanted, at least."""
        return self.funnel.wanted or 1


class DeviceCase:
    """A case, and the diagnosis of one node."""

    def __init__(self, case: Case, diagnosis: Diagnosis) -> None:
        self.case = case
        self.diagnosis = diagnosis
        self.edits = ClaimEdits(diagnosis.situation, case.pod, case.sources)

    @property
    def node(self) -> str:
        """The name of the node."""
        return self.diagnosis.situation.node.metadata.name

    @property
    def compiler(self) -> DeviceCompiler:
        """The compiler of new expressions."""
        return self.case.around.compiler

    @cached_property
    def _funnels(self) -> dict[tuple[str, str], Funnel]:
        # Claims of one pod may name their requests alike.
        return {(funnel.claim, funnel.request): funnel for funnel in self.diagnosis.funnels}

    def funnel(self, place: RequestPath) -> Funnel | None:
        """Return the funnel of a request or alternative; None if it could not be read."""
        situation = self.diagnosis.situation
        claim = claim_name(situation.claims[place.claim])
        return self._funnels.get((claim, situation.request_name(place)))

    def places(self) -> list[tuple[RequestPath, Funnel]]:
        """Return all requests and alternatives that have a funnel."""
        places = [place for place, _ in self.diagnosis.situation.requests()]
        return [(place, found) for place in places if (found := self.funnel(place)) is not None]

    def funnels_of(self, claim: int, request: int) -> list[tuple[RequestPath, Funnel]]:
        """Return the funnels of a request, one for each alternative."""
        found = self.places()
        return [each for each in found if (each[0].claim, each[0].request) == (claim, request)]

    def request_name(self, place: RequestPath) -> str:
        """Return the name of a request, with its claim's where the pod has several claims."""
        situation = self.diagnosis.situation
        name = situation.request_name(place)
        if len(situation.claims) == 1:
            return name
        return f"{name} of claim {self._claim_text(place.claim)}"

    def request_text(self, place: RequestPath) -> str:
        """Return a request as messages name it."""
        return f"request {self.request_name(place)}"

    def _claim_text(self, number: int) -> str:
        """Return how users call a claim: by its own name, or by the template that it is made of."""
        claim = self.diagnosis.situation.claims[number]
        source = self.edits.source(number)
        return str((claim if source is None else source.value).metadata.name)

    def shortages(self) -> list[list[Shortage]]:
        """Return requests that find too few devices, each with all its alternatives.

        The worst come first: those that fail at the first questions.
        """
        situation = self.diagnosis.situation
        groups: dict[tuple[int, int], list[Shortage | None]] = {}
        for place, details in situation.requests():
            funnel = self.funnel(place)
            stage = None if funnel is None else _failing_stage(funnel)
            short = None
            if funnel is not None and stage is not None and stage != TOGETHER:
                short = Shortage(place, details, funnel, stage)
            groups.setdefault((place.claim, place.request), []).append(short)
        found = [[each for each in group if each] for group in groups.values() if all(group)]
        return sorted(found, key=lambda group: min(each.stage for each in group))

    def of_class(self, name: str) -> list[PublishedDevice]:
        """Return the devices of a class, on any node."""
        found = self.case.cluster.inventory.device_class(name)
        if found is None:
            return []
        expressions = [s.cel.expression for s in found.spec.selectors if s.cel is not None]
        return self.passing(expressions, list(self.case.fleet.devices))

    def passing(
        self, expressions: Sequence[str], devices: list[PublishedDevice]
    ) -> list[PublishedDevice]:
        """Return the devices for which all expressions are true."""
        for expression in expressions:
            passing = self.case.around.passing(expression)
            devices = [device for device in devices if device.index in passing]
        return devices

    def fewer(self, short: Shortage, count: int) -> Iterator[Proposal]:
        """Yield the proposal to ask for fewer devices."""
        if not 0 < count < short.wanted:
            return
        changes = self.edits.changes([LowerCount(short.place, count)])
        if changes:
            text = f"ask for {count} instead of {short.wanted} in {short.name}"
            if short.wanted % count == 0:
                text += f", and spread the work over {short.wanted // count} pods"
            yield Proposal(text, FixRank.LESS, changes)


def _failing_stage(funnel: Funnel) -> int | None:
    """Return the first question that leaves too few devices."""
    goal = funnel.wanted or 1
    return next((number for number, count in enumerate(funnel.counts) if count < goal), None)
