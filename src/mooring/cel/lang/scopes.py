"""Names inside loops: the variables of loops hide everything else that has their name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from mooring.cel.lang.environment import Environment, Identifier
from mooring.cel.lang.types import Type


class Scopes:
    """The variables of the loops that are around a node, and the environment around those."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._scopes: list[Mapping[str, Type]] = []  # innermost last

    def enter(self, variables: Mapping[str, Type]) -> None:
        """Add the variables of an inner scope."""
        self._scopes.append(variables)

    def leave(self) -> None:
        """Remove the innermost scope."""
        self._scopes.pop()

    def find(self, name: str) -> Identifier | None:
        """Return what a name, simple or dotted, stands for, None if nothing has it.

        What starts with a dot is never a variable of a loop; if one has its name, the dot stays
        part of the identifier's name.
        """
        first, _, rest = name.removeprefix(".").partition(".")
        local = self._local(first)
        if local is not None and not name.startswith("."):
            # With more to come it is a field of the variable, not a name of its own.
            return None if rest else Identifier(name, local)
        found = self._environment.identifier(name)
        if found is None or local is None:
            return found
        return replace(found, name=f".{found.name}")

    def _local(self, name: str) -> Type | None:
        for scope in reversed(self._scopes):
            if name in scope:
                return scope[name]
        return None
