"""Find the places of all values of one YAML document that was read before.

The document is known to be sound and not too deep, so this can be a plain recursive descent.
"""

from __future__ import annotations

from yaml.events import (
    AliasEvent,
    CollectionEndEvent,
    DocumentStartEvent,
    Event,
    MappingStartEvent,
    NodeEvent,
    ScalarEvent,
    SequenceStartEvent,
)

from mooring.api.documents.places import Part, Spot
from mooring.api.documents.scalars import is_merge, key_of
from mooring.api.documents.schemas import Schema
from mooring.api.documents.yaml_events import Events


def yaml_spots(part: Part, *, schema: Schema) -> Spot:
    """Return the places of the only document of a part."""
    return _Marker(part, schema).document()


class _Marker:
    def __init__(self, part: Part, schema: Schema) -> None:
        self._events = Events(part, source="")
        self._schema = schema
        self._spots: dict[str, Spot] = {}
        self._scalars: dict[str, ScalarEvent] = {}

    def document(self) -> Spot:
        while not isinstance(self._events.next(), DocumentStartEvent):
            pass
        return self._spot(self._events.next())

    def _spot(self, event: Event) -> Spot:
        """Return the spots of a node; what an alias stands for is where its anchor is."""
        position = self._events.position(event)
        if isinstance(event, AliasEvent):
            return Spot(position, self._spots[event.anchor or ""].below)
        if isinstance(event, MappingStartEvent):
            fields: dict[str, Spot] = {}
            spot = self._named(event, Spot(position, fields))
            self._fill_mapping(fields)
            return spot
        if isinstance(event, SequenceStartEvent):
            items: list[Spot] = []
            spot = self._named(event, Spot(position, items))
            self._fill_list(items)
            return spot
        assert isinstance(event, ScalarEvent)
        return self._named(event, Spot(position))

    def _named(self, event: NodeEvent, spot: Spot) -> Spot:
        # Before what is inside it: an inner anchor of the same name is the later one.
        if event.anchor is not None:
            self._spots[event.anchor] = spot
            if isinstance(event, ScalarEvent):
                self._scalars[event.anchor] = event
        return spot

    def _fill_list(self, found: list[Spot]) -> None:
        while not isinstance(event := self._events.next(), CollectionEndEvent):
            found.append(self._spot(event))

    def _fill_mapping(self, found: dict[str, Spot]) -> None:
        while not isinstance(event := self._events.next(), CollectionEndEvent):
            spot = self._spot(event)
            scalar = self._scalar(event)
            value = self._spot(self._events.next())
            if is_merge(scalar):
                _merge(found, value)
            else:
                found[key_of(scalar, self._schema)] = Spot(spot.position, value.below)

    def _scalar(self, event: Event) -> ScalarEvent:
        if isinstance(event, AliasEvent):
            return self._scalars[event.anchor or ""]
        assert isinstance(event, ScalarEvent)
        return event


def _merge(found: dict[str, Spot], value: Spot) -> None:
    mappings = reversed(value.below) if isinstance(value.below, list) else [value]
    for mapping in mappings:
        assert isinstance(mapping.below, dict)
        found.update(mapping.below)
