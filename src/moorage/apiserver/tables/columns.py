"""Columns and printers of tables, and the texts in their cells: ages, labels, selectors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from moorage.api.labels import SelectorFault, read_selector
from moorage.api.meta import LabelSelector, LabelSelectorRequirement
from moorage.api.structs import Closed, Int32, always
from moorage.api.timestamp import Timestamp

NONE = "<none>"

Cell = str | int | bool | float | None


class Column(Closed, frozen=True, gc=False):
    """A column; narrow tables show those of priority 0 only."""

    name: str = always("")
    type: str = always("string")
    format: str = always("")
    description: str = always("")
    priority: Int32 = always(0)


class RowCondition(Closed, frozen=True, gc=False):
    """A condition of a row."""

    type: str = always("")
    status: str = always("")
    reason: str = ""
    message: str = ""


def _no_conditions(_: Any) -> tuple[RowCondition, ...]:
    return ()


class Printer(NamedTuple):
    """How objects of one kind become rows."""

    columns: tuple[Column, ...]
    cells: Callable[[Any, Timestamp], list[Cell]]  # of an object, at a time
    conditions: Callable[[Any], tuple[RowCondition, ...]] = _no_conditions


def text(name: str, description: str) -> Column:
    """Return a text column."""
    return Column(name=name, description=description)


def number(name: str, description: str) -> Column:
    """Return a column of whole numbers."""
    return Column(name=name, type="integer", description=description)


def wide(name: str, description: str) -> Column:
    """Return a text column that only wide tables show."""
    return Column(name=name, description=description, priority=1)


NAME = Column(name="Name", format="name", description="Name of the object, unique in its scope.")
AGE = text("Age", "Time since the object was created.")
CREATED_AT = Column(name="Created At", type="date", description="When the object was created.")

CONTAINERS = wide("Containers", "Names of the containers in the template.")
IMAGES = wide("Images", "Images of the containers in the template.")
SELECTOR = wide("Selector", "Labels by which pods are found.")


def named_and_aged(columns: tuple[Column, ...], cells: Callable[[Any], list[Cell]]) -> Printer:
    """Return a printer with the name first and the age last."""

    def row(value: Any, now: Timestamp) -> list[Cell]:
        metadata = value.metadata
        return [metadata.name, *cells(value), age(metadata.creation_timestamp, now)]

    return Printer((NAME, *columns, AGE), row)


# --- ages -----------------------------------------------------------------------------------------

UNKNOWN = "<unknown>"

_MINUTE, _HOUR, _DAY, _YEAR = 60, 3600, 86_400, 365 * 86_400

# (below these seconds, a duration is shown in this unit, and in this smaller one, if any)
_SCALES = (
    (2 * _MINUTE, 1, "s", 0, ""),
    (10 * _MINUTE, _MINUTE, "m", 1, "s"),
    (3 * _HOUR, _MINUTE, "m", 0, ""),
    (8 * _HOUR, _HOUR, "h", _MINUTE, "m"),
    (2 * _DAY, _HOUR, "h", 0, ""),
    (8 * _DAY, _DAY, "d", _HOUR, "h"),
    (2 * _YEAR, _DAY, "d", 0, ""),
    (8 * _YEAR, _YEAR, "y", _DAY, "d"),
)


def age(since: Timestamp | None, now: Timestamp) -> str:
    """Return the age since a time."""
    return UNKNOWN if since is None or since.is_zero else span(since, now)


def span(start: Timestamp, end: Timestamp) -> str:
    """Return the duration between two times in kubectl's short form."""
    seconds = int((end.instant - start.instant).total_seconds())
    if seconds < -1:
        return "<invalid>"
    seconds = max(seconds, 0)  # Clocks may differ a little.
    for below, unit_s, unit, part_s, part in _SCALES:
        if seconds < below:
            rest = seconds % unit_s // part_s if part_s else 0
            return f"{seconds // unit_s}{unit}" + (f"{rest}{part}" if rest else "")
    return f"{seconds // _YEAR}y"


# --- labels and selectors -------------------------------------------------------------------------

_OPERATORS = {"In": "in", "NotIn": "notin"}


def labels_text(labels: Mapping[str, str]) -> str:
    """Return labels in one line."""
    return ",".join(f"{key}={value}" for key, value in sorted(labels.items())) or NONE


def selector_text(selector: LabelSelector | None) -> str:
    """Return a selector in the syntax of kubectl's -l, or `<none>`."""
    text = plain_selector_text(selector)
    return "<error>" if text is None else text or NONE


def plain_selector_text(selector: LabelSelector | None) -> str | None:
    """Return a selector in the syntax of kubectl's -l; None if it is invalid."""
    if selector is None:
        return ""
    if isinstance(read_selector(selector), SelectorFault):
        return None
    parts = [(key, f"{key}={value}") for key, value in sorted(selector.match_labels.items())]
    parts += [(rule.key, _requirement_text(rule)) for rule in selector.match_expressions]
    return ",".join(text for _, text in sorted(parts, key=lambda part: part[0]))


def _requirement_text(rule: LabelSelectorRequirement) -> str:
    match rule.operator:
        case "Exists":
            return rule.key
        case "DoesNotExist":
            return f"!{rule.key}"
        case operator:
            return f"{rule.key} {_OPERATORS[operator]} ({','.join(sorted(set(rule.values)))})"
