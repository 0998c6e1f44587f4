"""Events of a YAML text, from libyaml's parser if available, else PyYAML's; and its errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from yaml.error import MarkedYAMLError, YAMLError
from yaml.events import Event

from mooring.api.documents.document import PlacedError, Position, TextPart


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

    def __init__(self, part: TextPart, *, source: str) -> None:
        self.part = part
        self._source = source
        self._parser = self.new_parser(part.text)

    def next(self) -> Event:
        """Return the next event."""
        try:
            event = self._parser.get_event()
        except YAMLError as error:
            raise syntax_fault(error, self.part, self._source) from None
        assert event is not None, "read beyond the end of the stream"
        return event

    def position(self, event: Event) -> Position:
        """Return the position of an event."""
        mark = event.start_mark
        assert mark is not None
        return self.part.position(mark.line, mark.column)

    def text_around(self, event: Event) -> str:
        """Return the first character of an event and the one before it."""
        mark = event.start_mark
        assert mark is not None
        return self.part.text[max(mark.index - 1, 0) : mark.index + 1]

    def fault(self, event: Event, fact: str) -> PlacedError:
        """Return an error at the position of an event."""
        return PlacedError(self._source, self.position(event), fact)


class _Mark(Protocol):
    index: int
    line: int
    column: int


def syntax_fault(error: YAMLError, part: TextPart, source: str) -> PlacedError:
    """Return a parser's error with its position."""
    if not isinstance(error, MarkedYAMLError) or error.problem_mark is None:
        return PlacedError(source, None, " ".join(str(error).split()))
    problem, mark, context = error.problem or "", error.problem_mark, error.context_mark
    if "unexpected end of stream" in problem and context is not None:
        # The position of the open quote helps more than that of the end.
        return PlacedError(source, _mark_position(context, part), "a quoted text is not closed")
    place = _mark_position(mark, part)
    if "cannot start any token" in problem:
        return PlacedError(source, place, _bad_token(part.text[mark.index : mark.index + 1]))
    words = ["unexpected end:"] if mark.index >= len(part.text.rstrip()) else []
    words += [problem, error.context or ""]
    if context is not None and (line := _mark_position(context, part).line) != place.line:
        words.append(f"that starts on line {line}")
    return PlacedError(source, place, " ".join(word for word in words if word))


def _bad_token(character: str) -> str:
    if character == "\t":
        return "found a tab where only spaces may be: indent with spaces"
    return f"found character {character!r} that cannot start any token: quote the text"


def _mark_position(mark: _Mark, part: TextPart) -> Position:
    # libyaml assumes a line break at the end.
    is_beyond = mark.index >= len(part.text)
    return part.end if is_beyond else part.position(mark.line, mark.column)
