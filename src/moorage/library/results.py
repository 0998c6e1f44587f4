"""The base class of all results."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from types import NoneType
from typing import Any

import msgspec


def plain_tree(value: Any) -> dict[str, Any]:
    """Return a value as read from its JSON: plain dicts, lists, strings and numbers."""
    tree: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(value))
    return tree


def check_type(name: str, value: object, *kinds: type) -> None:
    """Raise TypeError, with the name of the parameter, for a value of none of these types."""
    if not isinstance(value, kinds):
        wanted = " or ".join("None" if kind is NoneType else kind.__name__ for kind in kinds)
        raise TypeError(f"{name}: expected {wanted}, not {type(value).__name__} {value!r:.80}")


class Readable(ABC):
    """An answer: `str()` for people, `to_dict()` for programs, and a table in notebooks.

    Two answers of one class are equal if their `to_dict()` are.
    """

    __slots__ = ()

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Return the answer as the JSON that the command of the same name prints with `-o json`."""

    def rows(self) -> list[dict[str, Any]]:
        """Return the answer as rows of a table of data, those that the command prints as CSV.

        All rows have the same columns, and numbers are numbers: `pandas.DataFrame(answer.rows())`.
        """
        found = list(self._rows())
        columns = dict.fromkeys(name for row in found for name in row)
        return [{**dict.fromkeys(columns), **row} for row in found]

    @abstractmethod
    def _rows(self) -> Iterable[Mapping[str, Any]]:
        """Yield the rows; a column that one of them lacks is None there."""

    @abstractmethod
    def _repr_html_(self) -> str:
        """Return the answer as HTML, for notebooks."""

    @abstractmethod
    def __str__(self) -> str:
        """Return the answer in a few lines."""

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash(msgspec.json.encode(self.to_dict(), order="deterministic"))

    def __repr__(self) -> str:
        first = str(self).partition("\n")[0]
        return f"<{type(self).__name__}: {first}>"


class Record(Readable, Mapping[str, Any]):
    """An answer of one row, which is a mapping of its columns.

    So a sequence of them is a table: `pandas.DataFrame(world.devices())`.
    """

    __slots__ = ()

    __eq__ = Readable.__eq__
    __hash__ = Readable.__hash__

    @abstractmethod
    def _rows(self) -> Iterable[Mapping[str, Any]]:
        """Yield the one row."""

    def _row(self) -> Mapping[str, Any]:
        (found,) = self._rows()
        return found

    def __getitem__(self, column: str) -> Any:
        return self._row()[column]

    def __iter__(self) -> Iterator[str]:
        return iter(self._row())

    def __len__(self) -> int:
        return len(self._row())
