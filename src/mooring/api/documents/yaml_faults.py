"""Put into words, with a place, what a YAML parser found wrong."""

from __future__ import annotations

from typing import Protocol

from yaml.error import MarkedYAMLError, YAMLError

from mooring.api.documents.places import Part, PlacedError, Position


class _Mark(Protocol):
    index: int
    line: int
    column: int


def syntax_fault(error: YAMLError, part: Part, source: str) -> PlacedError:
    """Return what a parser of a part complains about."""
    if not isinstance(error, MarkedYAMLError) or error.problem_mark is None:
        return PlacedError(source, None, " ".join(str(error).split()))
    problem, mark, context = error.problem or "", error.problem_mark, error.context_mark
    if "unexpected end of stream" in problem and context is not None:
        # Where the open quote is helps more than where the text ends.
        return PlacedError(source, _place(context, part), "a quoted text is not closed")
    place = _place(mark, part)
    if "cannot start any token" in problem:
        return PlacedError(source, place, _bad_token(part.text[mark.index : mark.index + 1]))
    words = ["unexpected end:"] if mark.index >= len(part.text.rstrip()) else []
    words += [problem, error.context or ""]
    if context is not None and (line := _place(context, part).line) != place.line:
        words.append(f"that starts on line {line}")
    return PlacedError(source, place, " ".join(word for word in words if word))


def _bad_token(character: str) -> str:
    if character == "\t":
        return "found a tab where only spaces may be: indent with spaces"
    return f"found character {character!r} that cannot start any token: quote the text"


def _place(mark: _Mark, part: Part) -> Position:
    # libyaml sees a line break at the end that may not be there.
    is_beyond = mark.index >= len(part.text)
    return part.end if is_beyond else part.position(mark.line, mark.column)
