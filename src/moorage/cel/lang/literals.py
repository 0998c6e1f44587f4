"""Literals as steps of a plan: lists, maps, and structs."""

from __future__ import annotations

from typing import Any

from moorage.cel.lang.environment import StructMaker
from moorage.cel.lang.errors import EvalError
from moorage.cel.lang.interpretable import Activation, Failure, Interpretable
from moorage.cel.lang.values import Optional, map_key, shown_key

LIST_COST = 10
MAP_COST = 30
STRUCT_COST = 40


class MakeList(Interpretable):
    """`[a, ?b]`."""

    def __init__(self, elements: tuple[Interpretable, ...], optional: frozenset[int]) -> None:
        self.elements = elements
        self.optional = optional

    def run(self, frame: Activation) -> Any:
        """Return the list; it costs the same if it cannot be made."""
        made = self._made(frame)
        frame.budget.spend(LIST_COST)
        return made

    def _made(self, frame: Activation) -> Any:
        values = []
        for position, element in enumerate(self.elements):
            value = element.run(frame)
            if isinstance(value, Failure):
                return value
            if position in self.optional:
                if not isinstance(value, Optional):
                    return Failure(
                        f"cannot initialize optional list element from non-optional value {value}"
                    )
                if not value.has_value:
                    continue
                value = value.value
            values.append(value)
        return values


class MakeMap(Interpretable):
    """`{k: v, ?k: v}`."""

    def __init__(self, entries: tuple[tuple[Interpretable, Interpretable, bool], ...]) -> None:
        self.entries = entries

    def run(self, frame: Activation) -> Any:
        """Return the map; it costs the same if it cannot be made."""
        made = self._made(frame)
        frame.budget.spend(MAP_COST)
        return made

    def _made(self, frame: Activation) -> Any:
        values: dict[Any, Any] = {}
        for key_step, value_step, optional in self.entries:
            key = key_step.run(frame)
            if isinstance(key, Failure):
                return key
            if isinstance(key, list | tuple | dict):
                return Failure("unsupported key type: a list or a map cannot be a key")
            value = value_step.run(frame)
            if isinstance(value, Failure):
                return value
            if optional:
                if not isinstance(value, Optional):
                    return Failure(
                        f"cannot initialize optional entry '{shown_key(key)}' from non-optional "
                        f"value {value}"
                    )
                if not value.has_value:
                    values.pop(map_key(key), None)
                    continue
                value = value.value
            values.pop(map_key(key), None)  # The key of the last entry is the one that stays.
            values[map_key(key)] = value
        return values


class MakeStruct(Interpretable):
    """`Type{field: a, ?field: b}`; most types cannot be created so, but trying has a cost."""

    def __init__(
        self,
        fields: tuple[tuple[str, Interpretable, bool], ...],
        make: StructMaker | None,
    ) -> None:
        self.fields = fields  # name, value, whether that is optional
        self.make = make

    def run(self, frame: Activation) -> Any:
        """Return the value; it costs the same if it cannot be made."""
        made = self._made(frame)
        frame.budget.spend(STRUCT_COST)
        return made

    def _made(self, frame: Activation) -> Any:
        values: dict[str, Any] = {}
        for name, step, optional in self.fields:
            value = step.run(frame)
            if isinstance(value, Failure):
                return value
            if optional:
                if not isinstance(value, Optional):
                    return Failure(
                        f"cannot initialize optional entry '{name}' from non-optional value {value}"
                    )
                if not value.has_value:
                    continue
                value = value.value
            values[name] = value
        if self.make is None:
            return Failure("unsupported conversion to ref.Val: (*dynamicpb.Message)")
        try:
            return self.make(values)
        except EvalError as error:
            return Failure(str(error))
