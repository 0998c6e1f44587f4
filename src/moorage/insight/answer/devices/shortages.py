"""Requests that find too few devices on a node, and the devices that expressions choose.

A request with allocationMode All wants every device that its selectors choose.

funnel of a request ─ the first question that leaves too few devices ─► Shortage
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any, Final, NamedTuple

from msgspec import Struct

from moorage.allocator.requests import claim_name
from moorage.cel.device import DeviceCompiler
from moorage.claims.quotas import is_special
from moorage.insight.answer.changes.claim_changes import ClaimEdits
from moorage.insight.answer.changes.edits import Edit, EditPath, ObjectChange
from moorage.insight.answer.finding import Case, FixRank, Proposal
from moorage.insight.explain.diagnosis import Diagnosis
from moorage.insight.explain.funnel import FREE, TOGETHER, Funnel
from moorage.insight.explain.situation import Details, LowerCount, RequestPath
from moorage.insight.expressions.published_devices import PublishedDevice, PublishedDevices

ON_NODE: Final = 0  # questions of the funnel before those that it names
OF_CLASS: Final = 1
COUNTED_MAX: Final = 2000  # devices of a cluster, beyond which those of the node are counted
REQUESTS_MAX: Final = 32  # in a claim, as an API server allows
EXACT_COUNT: Final = "ExactCount"
_SPECIAL_REQUEST: Final = re.compile(r"container-(\d+)-request-(\d+)")


class Shortage(Struct, frozen=True):
    """A request, or an alternative, that finds too few devices."""

    place: RequestPath
    details: Details
    funnel: Funnel
    stage: int  # the first question that leaves too few

    asker: str = ""  # what asks, where it is a container that asks for an extended resource

    @property
    def name(self) -> str:
        """The request as messages name it."""
        return self.asker or f"request {self.funnel.request}"

    @property
    def is_all(self) -> bool:
        """Whether all devices that are selected are wanted."""
        return self.funnel.wanted is None

    @property
    def class_name(self) -> str:
        """The class of the devices."""
        return self.details.device_class_name

    @property
    def wanted(self) -> int:
        """How many devices are wanted, at least."""
        return self.funnel.wanted or max(self.funnel.selected, 1)

    @property
    def device_name(self) -> str:
        """The device that came nearest, as `pool/device`."""
        nearest = self.funnel.nearest
        return "" if nearest is None else nearest.device.partition("/")[2]


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
                short = Shortage(place, details, funnel, stage, self._asker(place))
            groups.setdefault((place.claim, place.request), []).append(short)
        found = [[each for each in group if each] for group in groups.values() if all(group)]
        return sorted(found, key=lambda group: min(each.stage for each in group))

    def of_class(self, name: str) -> list[PublishedDevice]:
        """Return the devices of a class, on any node."""
        known = self.case.devices_of_class
        if name not in known:
            found = self.case.cluster.inventory.device_class(name)
            everything = [] if found is None else list(self.case.fleet.devices)
            known[name] = self.passing(self.class_expressions(name), everything)
        return known[name]

    def class_expressions(self, name: str) -> list[str]:
        """Return the expressions of a class; none if it does not exist."""
        found = self.case.cluster.inventory.device_class(name)
        return [] if found is None else expressions_of(found.spec.selectors)

    def chosen(self, details: Details) -> list[PublishedDevice]:
        """Return the devices of all nodes that a request would do with."""
        of_class = self.of_class(details.device_class_name)
        return self.passing(expressions_of(details.selectors), of_class)

    @cached_property
    def nearby(self) -> PublishedDevices:
        """The devices that the node may see."""
        slices = self.diagnosis.situation.slices
        return PublishedDevices(slices, names=self.case.context.extensions)

    def chosen_nearby(self, details: Details) -> list[PublishedDevice]:
        """Return the devices around the node that a request would do with."""
        of_class = self.class_expressions(details.device_class_name)
        expressions = [*of_class, *expressions_of(details.selectors)]
        return self.passing(expressions, list(self.nearby.devices), self.nearby)

    def passing(
        self,
        expressions: Sequence[str],
        devices: list[PublishedDevice],
        fleet: PublishedDevices | None = None,
    ) -> list[PublishedDevice]:
        """Return the devices for which all expressions are true."""
        around = self.case.around
        for expression in expressions:
            passing = (
                around.passing(expression) if fleet is None else around.matching(expression, fleet)
            )
            devices = [device for device in devices if device.index in passing]
        return devices

    def fewer(self, short: Shortage, count: int) -> Iterator[Proposal]:
        """Yield the proposals to share devices between requests, and to ask for fewer."""
        if not 0 < count < short.wanted:
            return
        yield from self._in_several_requests(short)
        text = (
            f"ask for {count} instead of {'all' if short.is_all else short.wanted} in {short.name}"
        )
        is_elsewhere = short.stage <= OF_CLASS  # Other nodes have as many, and nobody has them yet.
        if is_elsewhere and short.wanted % count == 0 and not short.is_all:
            text += f", and spread the work over {short.wanted // count} pods"
        changes = self._fewer(short, count)
        if changes:
            # Whoever wants all devices seldom does with fewer: others may free theirs first.
            rank = FixRank.FREE if short.is_all else FixRank.LESS
            yield Proposal(text, rank, changes)

    def _in_several_requests(self, short: Shortage) -> Iterator[Proposal]:
        """Yield the proposal to ask for each device in a request of its own.

        A device that may be allocated several times is given to a request only once.
        """
        place, name = short.place, self.request_name(short.place)
        source = self.edits.source(place.claim)
        if short.is_all or place.alternative is not None or source is None:
            return
        shared = [each for each in self.chosen_nearby(short.details) if each.is_shareable]
        requests = self.diagnosis.situation.claims[place.claim].spec.devices.requests or ()
        if not shared or len(requests) + short.wanted - 1 > REQUESTS_MAX:
            return
        change = self.edits.in_several_requests(place, short.wanted)
        if change is not None:
            text = f"ask for 1 device in each of {short.wanted} requests instead of {short.wanted}"
            yield Proposal(
                f"{text} in request {name}: a device that can be shared counts once for a request",
                FixRank.GIVE,
                (change,),
            )

    def _fewer(self, short: Shortage, count: int) -> tuple[ObjectChange, ...]:
        resource = self.resource(short.place)
        if resource is not None:
            return self._fewer_of_resource(resource, count)
        if short.is_all:
            source, path = self.edits.source(short.place.claim), self.edits.request(short.place)
            mode = Edit((*path, "allocationMode"), EXACT_COUNT)
            return () if source is None else (source.change(mode, Edit((*path, "count"), count)),)
        return self.edits.changes([LowerCount(short.place, count)]) or ()

    # --- extended resources -----------------------------------------------------------------

    def resource(self, place: RequestPath) -> ContainerResource | None:
        """Return the extended resource of a container that a request stands for."""
        situation = self.diagnosis.situation
        claim = situation.claims[place.claim]
        found = _SPECIAL_REQUEST.fullmatch(situation.request_name(place))
        if found is None or not is_special(claim):
            return None
        spec, position = self.case.pod.spec, int(found[1])
        init = len(spec.init_containers)
        container = (*spec.init_containers, *spec.containers)[position]
        field, index = ("initContainers", position)
        if position >= init:
            field, index = "containers", position - init
        name = sorted(container.resources.requests)[int(found[2])]
        return ContainerResource((field, index, "resources"), container.name, name)

    def _asker(self, place: RequestPath) -> str:
        found = self.resource(place)
        return "" if found is None else f"container {found.container} ({found.name})"

    def _fewer_of_resource(self, found: ContainerResource, count: int) -> tuple[ObjectChange, ...]:
        source = self.case.sources.of_pod(self.case.pod)
        if source is None:
            return ()
        fields = ("requests", "limits")
        return (source.change(*(Edit((*found.path, f, found.name), str(count)) for f in fields)),)


def expressions_of(selectors: Iterable[Any]) -> list[str]:
    """Return the expressions of selectors, each in its place; "" selects nothing."""
    return ["" if each.cel is None else each.cel.expression for each in selectors]


class ContainerResource(NamedTuple):
    """An extended resource that a container asks for, and where."""

    path: EditPath
    container: str
    name: str


def _failing_stage(funnel: Funnel) -> int | None:
    """Return the first question that leaves too few devices."""
    for number, count in enumerate(funnel.counts):
        goal = funnel.wanted or 1
        if funnel.wanted is None and number >= FREE:
            goal = max(funnel.selected, 1)
        if count < goal:
            return number
    return None
