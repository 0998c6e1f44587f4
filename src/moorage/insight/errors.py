"""Errors of this package; every message states the fact, and a remedy where there is one.

InsightError (a ValueError)
├── ArchiveError        a file is not a snapshot or bundle that can be read
├── TooManyPodsError    controllers want more pods than Moorage creates
├── SimulationError     a simulation that cannot be run
│   └── TraceError      a trace that cannot be read
├── UnknownMomentError  a revision or time is not in a history
├── UnknownObjectError  KIND/NAME of an object that there is not
├── ChangeTextError     a text that is no change of this cluster
├── UnknownNameError    a change names an object that the cluster does not have
├── UnreadError         the answer depends on objects that could not be read
└── UnwritableFixError  a fix changes what an operator sets
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from moorage.insight.messages import similar_hint
from moorage.insight.snapshot.unread import UnreadKind, remedy_for, why_unread
from moorage.kit.errors import MoorageError


class InsightError(MoorageError, ValueError):
    """Input that cannot be used."""


class ArchiveError(InsightError):
    """An archive that cannot be used."""


class SimulationError(InsightError):
    """A simulation that cannot be run."""


class TraceError(SimulationError):
    """A trace that cannot be read; the message gives place and fact."""


class UnknownMomentError(InsightError):
    """A revision or time that a history does not contain; the message says what it contains."""


class UnknownObjectError(InsightError):
    """KIND/NAME of an object that does not exist; the message says which do."""


class ChangeTextError(InsightError):
    """A text that does not describe a change of this cluster."""


class TooManyPodsError(InsightError):
    """Controllers want more pods than Moorage creates; the message names the first to exceed it."""


class UnreadError(InsightError):
    """The answer depends on objects that could not be read; the message names a remedy."""

    def __init__(self, hidden: Iterable[UnreadKind], unknown: str) -> None:
        given = tuple(hidden)
        super().__init__(f"{why_unread(given)}, so {unknown} is not known: {remedy_for(given)}")


class UnwritableFixError(InsightError):
    """A fix changes a field that no manifest contains, because an operator sets it."""


class UnknownNameError(InsightError):
    """A change names an object that is not there; the message suggests a similar name."""

    def __init__(self, change: Any, noun: str, name: str, known: Iterable[str]) -> None:
        remedy = similar_hint(name, known)
        super().__init__(f"there is no {noun} {name}{remedy}")
        self.change = change
