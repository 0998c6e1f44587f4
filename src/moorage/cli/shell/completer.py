"""Finds candidates for the end of a command line, and answers the shell.

    moor __complete -- WORD…            zsh, fish, kubectl: the last word is the one to complete
    moor __complete --bash BREAKS LINE  bash, which splits words also at BREAKS

The answer follows the protocol of cobra, which kubectl uses: candidates, one per line, each with a
tab and a description, then a colon and a directive.
"""

from __future__ import annotations

import json
import re
import shlex
import signal
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pkgutil import get_data
from typing import Any, Final, NamedTuple

from moorage.cli.shell import sources
from moorage.cli.shell.values import Candidate, Values
from moorage.cli.shell.words import LINE_LENGTH_MAX, CommandLine, read_words

TIME_S_MAX: Final = 2  # until the process ends without an answer
FILES = 0  # cobra's directives
NO_SPACE = 2
NO_FILES = 4
FOLDERS = 16
_PLAIN: Final = re.compile(r"[\w./=,@:+%\-]+")
_OPEN_ENDS: Final = ("=", "/")  # of candidates that go on


class CompletionAnswer(NamedTuple):
    """All candidates, and the directive for the shell."""

    candidates: tuple[Candidate, ...]
    directive: int

    def lines(self) -> Iterator[str]:
        """Yield the lines of the answer, without names that have special characters of shells."""
        for text, help_text in self.candidates:
            if _PLAIN.fullmatch(text):
                yield f"{text}\t{help_text}" if help_text else text
        yield f":{self.directive}"


def main(arguments: Sequence[str] | None = None) -> None:
    """Answer a shell; exit without an answer if that takes too long."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    _end_after(TIME_S_MAX)
    match given:
        case ["--bash", breaks, line]:
            answer = complete_line(line, breaks)
        case ["--", *words]:
            answer = complete(words)
        case words:  # kubectl passes only the words
            answer = complete(words)
    _end_after(0)
    sys.stdout.write("".join(f"{line}\n" for line in answer.lines()))


def _end_after(seconds: float) -> None:
    """End the process after some seconds; 0 cancels that."""
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, seconds)


def complete_line(line: str, breaks: str) -> CompletionAnswer:
    """Complete a line of bash, which replaces its last word from the last break on."""
    words = _split(line[:LINE_LENGTH_MAX])
    answer = complete(words[1:])
    current = words[-1] if words else ""
    start = max((current.rfind(mark) for mark in breaks if not mark.isspace()), default=-1) + 1
    shortened = (each._replace(text=each.text[start:]) for each in answer.candidates)
    return answer._replace(candidates=tuple(shortened))


def _split(line: str) -> list[str]:
    """Return the words of a line, which may end within quotes; the last one may be empty."""
    for closing in ("", '"', "'"):
        with suppress(ValueError):
            words = shlex.split(line + closing)
            return [*words, ""] if line[-1:].isspace() and not closing else words
    return [""]


def complete(words: Sequence[str]) -> CompletionAnswer:
    """Return the candidates for the last of the words after `moor`."""
    *before, current = words or [""]
    table = _table()
    line = read_words(before, table["command"])
    if line.is_unknown:
        return _answer(())
    values = Values(line, table["values"])
    if line.pending is not None:
        return _values(values, line.pending.values, current)
    if current.startswith("-") and not line.has_ended:
        return _options(line, values, current)
    commands = line.node.get("commands")
    if commands:
        found = (Candidate(name, inner["help"]) for name, inner in commands.items())
        return _answer(found, current)
    return _values(values, _argument_source(line), current)


def _table() -> dict[str, Any]:
    text = get_data("moorage.cli.shell", "completion.json")
    assert text is not None
    table: dict[str, Any] = json.loads(text)
    return table


def _argument_source(line: CommandLine) -> str | tuple[str, ...]:
    """Return the source of the next argument; nothing after the last one."""
    given = line.node.get("argument")
    if given is None or (not given["many"] and line.arguments):
        return sources.FREE
    values = given["values"]
    return tuple(values) if isinstance(values, list) else str(values)


def _options(line: CommandLine, values: Values, current: str) -> CompletionAnswer:
    """Return options that were not given yet, or values of one, as in `--output=json`."""
    name, equals, rest = current.partition("=")
    if equals:
        option = next((each for each in line.options if name in each.names), None)
        if option is None:
            return _answer(())
        answer = _values(values, option.values, rest)
        found = (each._replace(text=f"{name}={each.text}") for each in answer.candidates)
        return answer._replace(candidates=tuple(found))
    found = (
        Candidate(name, option.help)
        for option in line.options
        for name in option.names
        if (option.is_multiple or name not in line.used) and name.startswith("--")
    )
    return _answer(found, current)


def _values(values: Values, source: str | tuple[str, ...] | None, current: str) -> CompletionAnswer:
    match source:
        case tuple():
            return _answer(map(Candidate, source), current)
        case sources.FILES:
            return CompletionAnswer((), FILES)
        case sources.FOLDERS:
            return CompletionAnswer((), FOLDERS)
        case None | sources.FREE:
            return _answer(())
    return _answer(values.of(source, current), current)


def _answer(candidates: Iterable[Candidate], current: str = "") -> CompletionAnswer:
    """Return the candidates that begin with the current word, without files."""
    found = tuple(dict.fromkeys(each for each in candidates if each.text.startswith(current)))
    goes_on = any(each.text.endswith(_OPEN_ENDS) for each in found)
    return CompletionAnswer(found, NO_FILES | (NO_SPACE if goes_on else 0))
