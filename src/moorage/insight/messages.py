"""Messages to people: concerns about a snapshot; names, numbers and typed values in messages."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from moorage.api.quantity import Quantity
from moorage.api.semver import Version
from moorage.kit.similar_names import nearest as nearest

CAUSE_LENGTH_MAX: Final = 160
NAMES_SHOWN_MAX: Final = 3
ELEMENTS_SHOWN_MAX: Final = 8
# PCI addresses count in hexadecimal, with as many digits in each: 0000-18-00-0 before 0000-4f-00-0.
_PCI_ADDRESS = r"(?<![0-9a-z])[0-9a-f]{4}[-:][0-9a-f]{2}[-:][0-9a-f]{2}[-.][0-7](?![0-9a-z])"
_NUMBERS = re.compile(rf"({_PCI_ADDRESS}|[0-9]+)")
NamePart = str | tuple[int, str]


class Concern(Struct, frozen=True):
    """A fact about the objects to know before believing an answer, and what follows from it."""

    rule: str
    fact: str
    meaning: str = ""

    def __str__(self) -> str:
        return f"{self.fact}: {self.meaning}" if self.meaning else self.fact


def full_name(value: Any) -> str:
    """Return the name of an object, with its namespace if it has one."""
    metadata = value.metadata
    return f"{metadata.namespace}/{metadata.name}" if metadata.namespace else str(metadata.name)


def titled(value: Any) -> str:
    """Return kind and name of an object: `Pod default/web`."""
    return f"{value.kind} {full_name(value)}"


def listed(names: Sequence[str], *, shown_max: int = NAMES_SHOWN_MAX) -> str:
    """Return the first names, and how many more there are."""
    shown = ", ".join(names[:shown_max])
    more = len(names) - shown_max
    return f"{shown} and {more:,} more" if more > 0 else shown


def shortened(texts: Iterable[str], shown_max: int, rest: str = "more") -> list[str]:
    """Return the first texts, followed by how many more there are."""
    found = list(texts)
    more = len(found) - shown_max
    return [*found[:shown_max], f"{more} {rest}"] if more > 0 else found


def taint_text(key: str, value: str, effect: str) -> str:
    """Return a taint as kubectl writes it: `key=value:NoSchedule`."""
    return f"{key}={value}:{effect}" if value else f"{key}:{effect}"


def fitting(*texts: str) -> str:
    """Return the first text that is short enough for a cause, else the last."""
    return next((text for text in texts if len(text) <= CAUSE_LENGTH_MAX), texts[-1])


def counted(number: int, noun: str) -> str:
    """Return a number with its unit, singular or plural."""
    return f"{number:,} {noun if number == 1 else _plural(noun)}"


def _plural(noun: str) -> str:
    if noun.endswith("y"):
        return f"{noun[:-1]}ies"
    return f"{noun}es" if noun.endswith(("s", "x", "ch", "sh")) else f"{noun}s"


def type_name(value: Any) -> str:
    """Return the type of an attribute's value: `int`, `list of string`."""
    match value:
        case bool():
            return "bool"
        case int():
            return "int"
        case str():
            return "string"
        case Version():
            return "version"
        case Quantity():
            return "quantity"
        case (first, *_):
            return f"list of {type_name(first)}"
        case list() | tuple():
            return "empty list"
    return "value"


def value_text(value: Any) -> str:
    """Return an attribute's value; only strings have quotes: `0`, `"0"`, `[0, 1]`, `1.2.3`."""
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return json.dumps(value, ensure_ascii=False)
        case list() | tuple():
            return f"[{', '.join(shortened(map(value_text, value), ELEMENTS_SHOWN_MAX))}]"
    return str(value)


def typed(value: Any) -> str:
    """Return a value with its type: `0 (int)`, `"0" (string)`, `[0, 1] (list of int)`."""
    name = type_name(value)
    return f"{value_text(value)} ({name})"


def natural_order(text: str) -> tuple[list[NamePart], str]:
    """Return a sort key that puts gpu-9 before gpu-10; the name itself distinguishes 1 from 01."""
    parts: list[NamePart] = []
    for index, part in enumerate(_NUMBERS.split(text)):
        digits = part.lstrip("0")
        # By length first, then by digits: a number may be too long to parse.
        parts.append((len(digits), digits) if index % 2 else part)
    return parts, text


def most_frequent_first(counts: Mapping[str, int]) -> list[tuple[str, int]]:
    """Return names with their numbers; the natural order of the names decides between equals."""
    return sorted(counts.items(), key=lambda item: (-item[1], natural_order(item[0])))


def similar_hint(name: str, known: Iterable[str]) -> str:
    """Return `; did you mean NAME?` for the most similar name, or nothing."""
    near = nearest(name, known)
    return f"; did you mean {near}?" if near else ""


def suggestion(name: str, known: Iterable[str], otherwise: str) -> str:
    """Return the question whether a known name was meant, or something else to do."""
    near = nearest(name, known)
    return otherwise if near is None else f'did you mean "{near}"?'
