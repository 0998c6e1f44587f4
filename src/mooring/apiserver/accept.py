"""Accept headers: what clients would like, best first.

Accept:  clause, …
clause:  TYPE/SUBTYPE; NAME=VALUE; …       q=0.5 says how much it is liked, others say more
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

CLAUSES_MAX = 64


class Clause(NamedTuple):
    """One thing that a client accepts."""

    media_type: str
    parameters: Mapping[str, str] = {}

    @property
    def quality(self) -> float:
        """How much it is liked, from 0 (not at all) to 1."""
        try:
            return float(self.parameters.get("q", "1"))
        except ValueError:
            return 0.0

    def covers(self, media_type: str) -> bool:
        """Return whether a media type is one of those that are accepted."""
        group = media_type.partition("/")[0]
        return self.media_type in (media_type, f"{group}/*", "*/*")


ANYTHING = Clause("*/*")


def read_accept(header: str) -> list[Clause]:
    """Return the clauses of a header, best first; equals stay in order. None means anything."""
    if not header.strip():
        return [ANYTHING]
    read = [_clause(text) for text in header.split(",")[:CLAUSES_MAX]]
    return sorted((c for c in read if c.quality > 0), key=lambda c: c.quality, reverse=True)


def _clause(text: str) -> Clause:
    media_type, *rest = (part.strip() for part in text.split(";"))
    parameters = {}
    for part in rest:
        name, _, value = part.partition("=")
        parameters[name.strip().lower()] = value.strip().strip('"')
    return Clause(media_type.lower(), parameters)
