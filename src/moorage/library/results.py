"""The base class of all results."""

from __future__ import annotations

from abc import ABC, abstractmethod
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
