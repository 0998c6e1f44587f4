"""Steps that make lists, maps and messages, and loops over them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mooring.cel.lang.attributes import shown_key
from mooring.cel.lang.steps import Failure, Frame, Lazy, Step
from mooring.cel.lang.values import BoolKey, Optional, UInt, key_value, map_key

LIST_COST = 10
MAP_COST = 30
STRUCT_COST = 40


class MakeList(Step):
    """`[a, ?b]`."""

    def __init__(self, elements: tuple[Step, ...], optional: frozenset[int]) -> None:
        self.elements = elements
        self.optional = optional

    def run(self, frame: Frame) -> Any:
        """Return the list; it costs the same if it cannot be made."""
        made = self._made(frame)
        frame.budget.spend(LIST_COST)
        return made

    def _made(self, frame: Frame) -> Any:
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


class MakeMap(Step):
    """`{k: v, ?k: v}`."""

    def __init__(self, entries: tuple[tuple[Step, Step, bool], ...]) -> None:
        self.entries = entries

    def run(self, frame: Frame) -> Any:
        """Return the map; it costs the same if it cannot be made."""
        made = self._made(frame)
        frame.budget.spend(MAP_COST)
        return made

    def _made(self, frame: Frame) -> Any:
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


class MakeStruct(Step):
    """`Type{…}`: no type of this language can be made like this, but trying has a cost."""

    def __init__(self, values: tuple[Step, ...], type_name: str) -> None:
        self.values = values
        self.type_name = type_name

    def run(self, frame: Frame) -> Any:
        """Return a Failure."""
        for step in self.values:
            value = step.run(frame)
            if isinstance(value, Failure):
                frame.budget.spend(STRUCT_COST)
                return value
        frame.budget.spend(STRUCT_COST)
        return Failure("unsupported conversion to ref.Val: (*dynamicpb.Message)")


# --- loops --------------------------------------------------------------------------------


class Loop(Step):
    """A comprehension. The accumulator begins lazily: who never looks at it pays nothing."""

    def __init__(
        self,
        iter_range: Step,
        iter_var: str,
        iter_var2: str | None,
        accu_var: str,
        accu_init: Step,
        condition: Step,
        step: Step,
        result: Step,
    ) -> None:
        self.iter_range = iter_range
        self.iter_var = iter_var
        self.iter_var2 = iter_var2
        self.accu_var = accu_var
        self.accu_init = accu_init
        self.condition = condition
        self.step = step
        self.result = result

    def run(self, frame: Frame) -> Any:
        """Return the result after the last element, or the first that ends the loop."""
        values = self.iter_range.run(frame)
        if isinstance(values, Failure):
            return values
        accumulator = Frame({self.accu_var: Lazy(self.accu_init, frame)}, frame.budget, frame)
        loop = Frame({}, frame.budget, accumulator)
        pairs = self._pairs(values)
        if isinstance(pairs, Failure):
            return pairs
        for first, second in pairs:
            loop.variables[self.iter_var] = first
            if self.iter_var2 is not None:
                loop.variables[self.iter_var2] = second
            if self.condition.run(loop) is False:
                break
            accumulator.variables[self.accu_var] = self.step.run(loop)
        return self.result.run(accumulator)

    def _pairs(self, values: Any) -> Iterator[tuple[Any, Any]] | Failure:
        if isinstance(values, dict):
            return ((key_value(key), value) for key, value in values.items())
        if isinstance(values, list | tuple):
            if self.iter_var2 is None:
                return ((value, None) for value in values)
            return iter(enumerate(values))
        if self.iter_var2 is not None:
            return Failure(f"unsupported comprehension range type: {go_type(values)}")
        return Failure(f"got '{go_type(values)}', expected iterable type")


_GO_TYPES = {
    bool: "types.Bool",
    int: "types.Int",
    UInt: "types.Uint",
    float: "types.Double",
    str: "types.String",
    bytes: "types.Bytes",
    type(None): "types.Null",
    BoolKey: "types.Bool",
    Optional: "*types.Optional",
}


def go_type(value: Any) -> str:
    """Return the name that Kubernetes' messages have for the type of a value."""
    return _GO_TYPES.get(type(value), type(value).__name__)
