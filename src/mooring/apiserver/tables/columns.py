"""The columns of tables, and what a printer of a kind is made of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from mooring.api.structs import Closed, Int32, always
from mooring.api.timestamp import Timestamp

NONE = "<none>"

Cell = str | int | bool


class Column(Closed, frozen=True, gc=False):
    """A column: narrow tables show those of priority 0 only."""

    name: str = always("")
    type: str = always("string")
    format: str = always("")
    description: str = always("")
    priority: Int32 = always(0)


class RowCondition(Closed, frozen=True, gc=False):
    """What is to be said of a row as a whole."""

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
    """Return a column of words."""
    return Column(name=name, description=description)


def number(name: str, description: str) -> Column:
    """Return a column of whole numbers."""
    return Column(name=name, type="integer", description=description)


def wide(name: str, description: str) -> Column:
    """Return a column of words that only wide tables show."""
    return Column(name=name, description=description, priority=1)


NAME = Column(name="Name", format="name", description="Name of the object, unique in its scope.")
AGE = text("Age", "Time since the object was created.")

CONTAINERS = wide("Containers", "Names of the containers in the template.")
IMAGES = wide("Images", "Images of the containers in the template.")
SELECTOR = wide("Selector", "Labels by which pods are found.")
