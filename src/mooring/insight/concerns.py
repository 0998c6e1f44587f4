"""What is to be known of the objects of a cluster before an answer about them is believed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from msgspec import Struct

NAMES_SHOWN_MAX: Final = 3


class Concern(Struct, frozen=True):
    """A fact about the objects, and what the answer means because of it."""

    rule: str
    fact: str
    meaning: str = ""

    def __str__(self) -> str:
        return f"{self.fact}: {self.meaning}" if self.meaning else self.fact


def listed(names: Sequence[str], *, shown_max: int = NAMES_SHOWN_MAX) -> str:
    """Return names in one line: the first of them, and how many more there are."""
    shown = ", ".join(names[:shown_max])
    more = len(names) - shown_max
    return f"{shown} and {more:,} more" if more > 0 else shown


def full_name(value: Any) -> str:
    """Return the name of an object, with its namespace if it has one."""
    metadata = value.metadata
    return f"{metadata.namespace}/{metadata.name}" if metadata.namespace else str(metadata.name)


def titled(value: Any) -> str:
    """Return kind and name of an object: `Pod default/web`."""
    return f"{value.kind} {full_name(value)}"
