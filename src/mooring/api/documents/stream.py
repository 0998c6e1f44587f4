"""One input and how it is to be read."""

from __future__ import annotations

from dataclasses import dataclass

from mooring.api.documents.limits import Limits
from mooring.api.documents.places import PlacedError, position_of
from mooring.api.documents.schemas import Schema


@dataclass(frozen=True, slots=True)
class Stream:
    """The text of one input, its name, and the rules for reading it."""

    text: str
    source: str
    limits: Limits
    schema: Schema

    def fault(self, index: int, fact: str) -> PlacedError:
        """Return a fault at a character of the text."""
        return PlacedError(self.source, position_of(self.text, index), fact)

    def check_count(self, documents: int, index: int) -> None:
        """Refuse more documents than the limits allow; the last starts at a character."""
        if documents > self.limits.documents_max:
            raise self.fault(index, f"more than {self.limits.documents_max} documents")
