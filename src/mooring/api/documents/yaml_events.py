"""Events of a YAML text: libyaml's parser where it is built in, else PyYAML's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from yaml.error import YAMLError
from yaml.events import Event

from mooring.api.documents.places import Part, PlacedError, Position
from mooring.api.documents.yaml_faults import syntax_fault


class Parser(Protocol):
    """A source of events."""

    def get_event(self) -> Event | None:
        """Return the next event, None after the last."""


def _fastest_parser() -> Callable[[str], Parser]:
    try:
        from yaml._yaml import CParser
    except ImportError:
        from yaml import SafeLoader

        return SafeLoader
    return CParser


class Events:
    """The events of one part of a stream, with their places in the stream."""

    new_parser: Callable[[str], Parser] = staticmethod(_fastest_parser())

    def __init__(self, part: Part, *, source: str) -> None:
        self.part = part
        self._source = source
        self._parser = self.new_parser(part.text)

    def next(self) -> Event:
        """Return the next event."""
        try:
            event = self._parser.get_event()
        except YAMLError as error:
            raise syntax_fault(error, self.part, self._source) from None
        assert event is not None, "nobody reads beyond the end of the stream"
        return event

    def position(self, event: Event) -> Position:
        """Return where an event begins."""
        mark = event.start_mark
        assert mark is not None
        return self.part.position(mark.line, mark.column)

    def text_around(self, event: Event) -> str:
        """Return the first character of an event and the one before it."""
        mark = event.start_mark
        assert mark is not None
        return self.part.text[max(mark.index - 1, 0) : mark.index + 1]

    def fault(self, event: Event, fact: str) -> PlacedError:
        """Return a fault at the place of an event."""
        return PlacedError(self._source, self.position(event), fact)
