"""Changes to claims as the diagnosis tries them, as edits of the objects that have them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from itertools import count as numbers
from itertools import islice
from typing import Any

from moorage.api.codec import to_tree
from moorage.api.core.pod import Pod
from moorage.insight.answer.changes.edits import (
    APPEND,
    REMOVED,
    Edit,
    EditPath,
    ObjectChange,
    merged,
    value_at,
)
from moorage.insight.answer.changes.sources import Source, Sources
from moorage.insight.explain.situation import (
    AskCapacity,
    DropAlternative,
    DropConstraint,
    DropRequest,
    DropSelector,
    LowerCount,
    RequestPath,
    Situation,
    SituationChange,
    Tolerate,
)


class ClaimEdits:
    """Writes changes to the claims of a situation into their sources."""

    def __init__(self, situation: Situation, pod: Pod, sources: Sources) -> None:
        self._situation = situation
        self._pod = pod
        self._sources = sources

    def source(self, claim: int) -> Source | None:
        """Return where a claim is written; None for claims of extended resources."""
        return self._sources.of_claim(self._situation.claims[claim], self._pod)

    def changes(self, changes: Iterable[SituationChange]) -> tuple[ObjectChange, ...] | None:
        """Return the changes of objects; None if one of them cannot be written."""
        found: list[ObjectChange] = []
        for change in changes:
            edits = list(self._edits(change))
            if not edits:
                return None
            for claim, edit in edits:
                source = self.source(claim)
                if source is None:
                    return None
                found.append(source.change(edit))
        return merged(found)

    def selector(self, place: RequestPath, number: int, expression: str) -> ObjectChange | None:
        """Return the change of a selector's expression."""
        source = self.source(place.claim)
        path = (*self.request(place), "selectors", number, "cel", "expression")
        return None if source is None else source.change(Edit(path, expression))

    def in_several_requests(self, place: RequestPath, count: int) -> ObjectChange | None:
        """Return the change of a request for several devices into as many for one each.

        None if containers name the request: they would not get the devices of the others.
        """
        source = self.source(place.claim)
        if source is None:
            return None
        written = value_at(to_tree(source.value), (*source.prefix, "devices"))
        request = written["requests"][place.request]
        containers = (*self._pod.spec.init_containers, *self._pod.spec.containers)
        if request["name"] in {each.request for c in containers for each in c.resources.claims}:
            return None
        names = _new_names(request["name"], {each["name"] for each in written["requests"]}, count)
        one = {k: v for k, v in request["exactly"].items() if k not in ("count", "allocationMode")}
        edits = [Edit((*self.request(place), "count"), REMOVED)]
        edits += (
            Edit(("devices", "requests", APPEND), {"name": name, "exactly": one}) for name in names
        )
        for field in ("constraints", "config"):
            for number, each in enumerate(written.get(field) or ()):
                if request["name"] in (each.get("requests") or ()):
                    path: EditPath = ("devices", field, number, "requests", APPEND)
                    edits += (Edit(path, name) for name in names)
        return source.change(*edits)

    def request(self, place: RequestPath) -> EditPath:
        """Return the path of a request or alternative in the spec of its claim."""
        path: EditPath = ("devices", "requests", place.request)
        if place.alternative is None:
            return (*path, "exactly")
        return (*path, "firstAvailable", place.alternative)

    def _edits(self, change: SituationChange) -> Iterator[tuple[int, Edit]]:
        match change:
            case LowerCount(place=place, count=count):
                yield place.claim, Edit((*self.request(place), "count"), count)
            case AskCapacity(place=place, name=name, amount=amount):
                path = (*self.request(place), "capacity", "requests", name)
                yield place.claim, Edit(path, REMOVED if amount is None else str(amount))
            case Tolerate(place=None, toleration=toleration):
                for place, _ in self._situation.requests():
                    yield place.claim, self._toleration(place, toleration)
            case Tolerate(place=place, toleration=toleration) if place is not None:
                yield place.claim, self._toleration(place, toleration)
            case DropConstraint(claim=claim, constraint=number):
                yield claim, Edit(("devices", "constraints", number))
            case DropSelector(place=place, selector=number):
                yield place.claim, Edit((*self.request(place), "selectors", number))
            case DropRequest(claim=claim, request=number):
                yield claim, Edit(("devices", "requests", number))
            case DropAlternative(place=place):
                yield place.claim, Edit(self.request(place))

    def _toleration(self, place: RequestPath, toleration: Any) -> Edit:
        fields = ("key", "operator", "value", "effect")
        value = {name: getattr(toleration, name) for name in fields if getattr(toleration, name)}
        return Edit((*self.request(place), "tolerations", APPEND), value)


def _new_names(name: str, taken: Collection[str], count: int) -> list[str]:
    """Return the names of the others of several requests like one: `gpu-2`, `gpu-3`."""
    fresh = (each for n in numbers(2) if (each := f"{name}-{n}") not in taken)
    return list(islice(fresh, count - 1))
