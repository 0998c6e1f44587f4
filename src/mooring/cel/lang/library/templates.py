"""The templates of `format`: text with clauses that something is filled in for.

    template  = { character | "%%" | clause }
    clause    = "%" [ "." digits ] verb

What is filled in is the filler's business: values when the expression is evaluated, nothing when
it is only checked.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Protocol

from mooring.cel.lang.ast import Expr
from mooring.cel.lang.numbers import parse_int

VERBS: Final = frozenset("sdfebxXo")
_DIGITS: Final = frozenset("0123456789")


class FormatError(Exception):
    """What is wrong with a template or its arguments, and at which node if that is known."""

    def __init__(self, message: str, node: Expr | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.node = node


@dataclass(frozen=True, slots=True)
class Clause:
    """A place in a template where a value is shown."""

    verb: str
    precision: int | None


class Filler(Protocol):
    """What the clauses of a template are filled with."""

    @property
    def count(self) -> int:
        """How many arguments there are."""
        ...

    @property
    def looks_first(self) -> bool:
        """Whether an argument that is missing is noticed before anything else."""
        ...

    def fill(self, clause: Clause, index: int) -> str:
        """Return what a clause shows of an argument."""
        ...


def filled(template: str, filler: Filler) -> Iterator[str]:
    """Yield the parts of the template, with a filling for every clause."""
    position = index = 0
    while (mark := template.find("%", position)) >= 0:
        yield template[position:mark]
        if template.startswith("%%", mark):
            yield "%"
            position = mark + 2
            continue
        is_missing = index >= filler.count
        if is_missing and filler.looks_first:
            raise FormatError(f"index {index} out of range")
        if mark + 1 == len(template):
            raise FormatError("unexpected end of string")
        if is_missing:
            raise FormatError(f"index {index} out of range")
        clause, position = _parse_clause(template, mark + 1)
        try:
            yield filler.fill(clause, index)
        except FormatError as error:
            raise FormatError(f"error during formatting: {error.message}", error.node) from None
        index += 1
    yield template[position:]


def _parse_clause(template: str, position: int) -> tuple[Clause, int]:
    """clause = [ "." digits ] verb"""
    try:
        precision, position = _parse_precision(template, position)
    except FormatError as error:
        raise _unparsable(f"error while parsing precision: {error.message}") from None
    verb = template[position]
    if verb not in VERBS:
        # The original looks at bytes.
        byte = verb.encode("utf-8", "surrogateescape")[0]
        raise _unparsable(f'unrecognized formatting clause "{chr(byte)}"')
    return Clause(verb, precision), position + 1


def _parse_precision(template: str, position: int) -> tuple[int | None, int]:
    if template[position] != ".":
        return None, position
    start = position = position + 1
    while position < len(template) and template[position] in _DIGITS:
        position += 1
    if position == len(template):
        raise FormatError("could not find end of precision specifier")
    return _parse_number(template[start:position]), position


def _parse_number(digits: str) -> int:
    number = parse_int(digits)
    if number is None:
        reason = "value out of range" if digits else "invalid syntax"
        raise FormatError(
            "error while converting precision to integer: "
            f'strconv.Atoi: parsing "{digits}": {reason}'
        )
    return number


def _unparsable(reason: str) -> FormatError:
    return FormatError(f"could not parse formatting clause: {reason}")
