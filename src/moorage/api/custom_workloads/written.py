"""Values of a custom resource with their paths, whatever their types."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from moorage.api.documents.document import Tree
from moorage.api.errors import DecodeError
from moorage.api.field_path import Place, render


class Written(NamedTuple):
    """A value and its path; None for a missing value."""

    value: Tree
    place: Place = ()

    def at(self, *place: str) -> Written:
        """Return the value of a field below, or raise DecodeError."""
        found = self
        for name in place:
            found = Written(found.mapping().get(name), (*found.place, name))
        return found

    def mapping(self) -> dict[str, Tree]:
        """Return the value as a map, or raise DecodeError."""
        if self.value is None:
            return {}
        if not isinstance(self.value, dict):
            raise self.fault("must be a map")
        return self.value

    def items(self) -> Iterator[Written]:
        """Yield the items of a list, or raise DecodeError."""
        if self.value is None:
            return
        if not isinstance(self.value, list):
            raise self.fault("must be a list")
        for index, item in enumerate(self.value):
            yield Written(item, (*self.place, index))

    def entries(self) -> Iterator[tuple[str, Written]]:
        """Yield the entries of a map, or raise DecodeError."""
        for key, value in self.mapping().items():
            yield key, Written(value, (*self.place, key))

    def count(self, default: int) -> int:
        """Return a number that is not negative, or raise DecodeError."""
        if self.value is None:
            return default
        if isinstance(self.value, bool) or not isinstance(self.value, int) or self.value < 0:
            raise self.fault("must be an integer that is not negative")
        return self.value

    def text(self, default: str = "") -> str:
        """Return a string, or raise DecodeError."""
        if self.value is None:
            return default
        if not isinstance(self.value, str):
            raise self.fault("must be a string")
        return self.value

    def is_true(self) -> bool:
        """Return whether a boolean is true, or raise DecodeError."""
        if self.value is not None and not isinstance(self.value, bool):
            raise self.fault("must be true or false")
        return bool(self.value)

    def fault(self, fact: str) -> DecodeError:
        """Return an error about this value."""
        return DecodeError(f"{render(self.place)}: {fact}", self.place)
