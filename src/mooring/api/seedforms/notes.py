"""What rewriting one object found: warnings that name the shipped form, and errors."""

from __future__ import annotations

from typing import NamedTuple

from mooring.api.fieldpath import Segment, render
from mooring.api.gates import Gates

Segments = tuple[Segment, ...]


class Notice(NamedTuple):
    """A fact and its place in the object."""

    segments: Segments
    message: str

    def __str__(self) -> str:
        return f"{render(self.segments)}: {self.message}"


class Notes:
    """The notices of one object, and what its rewriters must know besides the tree.

    A form is warned of once, at its first place: a slice of a hundred devices gives one warning.
    """

    __slots__ = ("errors", "fits", "gates", "is_part", "version", "warnings")

    def __init__(
        self, *, version: str, gates: Gates, fits: bool = False, is_part: bool = False
    ) -> None:
        self.version = version
        self.is_part = is_part
        self.gates = gates
        self.fits = fits
        self.warnings: dict[str, Notice] = {}
        self.errors: list[Notice] = []

    def warn(self, form: str, segments: Segments, message: str) -> None:
        """Note that the object uses a form, unless that is noted already."""
        self.warnings.setdefault(form, Notice(segments, message))

    def fail(self, segments: Segments, message: str) -> None:
        """Note what must be refused."""
        self.errors.append(Notice(segments, message))
