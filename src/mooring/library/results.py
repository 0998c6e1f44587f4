"""The base class of all results."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import msgspec


def plain_tree(value: Any) -> dict[str, Any]:
    """Return a value as read from its JSON: plain dicts, lists, strings and numbers."""
    tree: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(value))
    return tree


class Readable(ABC):
    """An answer: `str()` for people, `to_dict()` for programs, and a table in notebooks."""

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

    def __repr__(self) -> str:
        first = str(self).partition("\n")[0]
        return f"<{type(self).__name__}: {first}>"
