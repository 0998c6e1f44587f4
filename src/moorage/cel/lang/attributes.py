"""Attributes: `device.attributes["a"].?b`, a source and its qualifiers in one step, and cells.

The cost of an attribute depends on its use: as a step of its own it costs 1 besides its qualifiers;
as the side of a conditional or as an index it is only resolved.

A cell is the value at the end of a constant path, such as `device.attributes["a"].b`. An expression
that is evaluated for many values of a variable reads the same few paths of each. The caller may
keep the values of a path together, in a column, and generated code then reads the columns and never
the variable. Patterns declare which paths of a variable may be kept so. If a pattern fits, two
things hold for all values of the variable: every key but the last leads to a map, and in a column
ABSENT means that the last key is missing.

    # path: the name of a variable and the keys behind it; the name alone is the variable itself
    # pattern: a path in which None stands for any key
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import takewhile
from typing import Any

from moorage.cel.lang.interpretable import Activation, Failure, Interpretable
from moorage.cel.lang.values import NONE, Optional, map_key, shown_key

SELECT_COST = 1


class AttributeSource:
    """Where an attribute begins."""

    def begin(self, frame: Activation) -> Any:
        """Return the value that the qualifiers apply to."""
        raise NotImplementedError


class Variable(AttributeSource):
    """A name."""

    def __init__(self, name: str) -> None:
        self.name = name.removeprefix(".")
        self.is_outermost = name.startswith(".")

    def begin(self, frame: Activation) -> Any:
        """Return the value of the variable."""
        return (frame.outermost() if self.is_outermost else frame).resolve(self.name)


class Computed(AttributeSource):
    """Any other expression."""

    def __init__(self, step: Interpretable) -> None:
        self.step = step

    def begin(self, frame: Activation) -> Any:
        """Return the value of the expression."""
        return self.step.run(frame)


class Attribute(Interpretable):
    """A source and its qualifiers."""

    def __init__(self, source: AttributeSource) -> None:
        self.source = source
        self.qualifiers: list[Qualifier] = []
        self.is_presence_test = False

    def qualify(self, qualifier: Qualifier) -> None:
        """Add a qualifier."""
        self.qualifiers.append(qualifier)

    def resolve(self, frame: Activation) -> Any:
        """Return the value; spend the cost of the parts."""
        value = self.source.begin(frame)
        return _qualified(frame, value, self.qualifiers) if self.qualifiers else value

    def run(self, frame: Activation) -> Any:
        """Return the value; spend the cost of the parts and the attribute."""
        value = self.resolve(frame)
        if self.is_presence_test:
            if isinstance(value, Optional):
                return value.has_value
        else:
            frame.budget.spend(SELECT_COST)
        return value


class Conditional(Attribute):
    """`condition ? truthy : falsy`, of which only the taken side is resolved."""

    def __init__(self, condition: Interpretable, truthy: Attribute, falsy: Attribute) -> None:
        super().__init__(Variable(""))
        self.condition = condition
        self.truthy = truthy
        self.falsy = falsy

    def qualify(self, qualifier: Qualifier) -> None:
        """Add a qualifier to both sides."""
        self.truthy.qualify(qualifier)
        self.falsy.qualify(qualifier)

    def resolve(self, frame: Activation) -> Any:
        """Return the value of the taken side."""
        value = self.condition.run(frame)
        if value is True:
            return self.truthy.resolve(frame)
        if value is False:
            return self.falsy.resolve(frame)
        return value if isinstance(value, Failure) else Failure("no such overload")

    def run(self, frame: Activation) -> Any:
        """Return the value of the taken side; the choice itself costs nothing."""
        value = self.resolve(frame)
        if self.is_presence_test:
            frame.budget.spend(-SELECT_COST)
            if isinstance(value, Optional):
                return value.has_value
        return value


class Qualifier:
    """`.name`, `[key]`, `.?name`, `[?key]`, or the name in `has()`."""

    def __init__(
        self,
        key: Any = None,
        *,
        computed: Attribute | None = None,
        optional: bool = False,
        tests: bool = False,
    ) -> None:
        self.key = key
        self.computed = computed
        self.optional = optional
        self.tests = tests

    def apply(self, frame: Activation, target: Any) -> Any:
        """Return the value of the key, or a Failure."""
        key = self.key if self.computed is None else self.computed.resolve(frame)
        value = self._applied(target, key)
        frame.budget.spend(1)
        return value

    def apply_if_present(self, frame: Activation, target: Any) -> Any:
        """Return the value of the key, ABSENT, or a Failure; absence costs nothing."""
        key = self.key if self.computed is None else self.computed.resolve(frame)
        if isinstance(key, Failure):
            return key
        value = look_up(target, key, presence=True)
        if value is not ABSENT and not isinstance(value, Failure):
            frame.budget.spend(1)
        return value

    def _applied(self, target: Any, key: Any) -> Any:
        if isinstance(key, Failure):
            return key
        if self.tests:
            value = look_up(target, key, presence=True)
            return value if isinstance(value, Failure) else value is not ABSENT
        return look_up(target, key, presence=False)


ABSENT = object()


def _qualified(frame: Activation, value: Any, qualifiers: list[Qualifier]) -> Any:
    if isinstance(value, Failure):
        return value
    is_optional = False
    if isinstance(value, Optional) and qualifiers:
        if not value.has_value:
            return value
        is_optional = True
        value = value.value
    for qualifier in qualifiers:
        is_optional = is_optional or qualifier.optional
        if is_optional:
            value = qualifier.apply_if_present(frame, value)
            if value is ABSENT:
                return NONE
        else:
            value = qualifier.apply(frame, value)
        if isinstance(value, Failure):
            return value
    return Optional(value) if is_optional else value


def look_up(target: Any, key: Any, *, presence: bool) -> Any:
    """Return the value of a key; for a missing one a Failure, or ABSENT to test presence."""
    if isinstance(target, dict):
        return _look_up_in_map(target, key, presence=presence)
    if isinstance(target, list | tuple):
        return _look_up_in_list(target, key, presence=presence)
    return ABSENT if presence else Failure(f"no such key: {shown_key(key)}")


def _look_up_in_map(target: dict[Any, Any], key: Any, *, presence: bool) -> Any:
    if not isinstance(key, str | int | float):
        return Failure(f"unsupported key type: {type(key).__name__}")
    try:
        return target[map_key(key)]
    except KeyError:
        return ABSENT if presence else Failure(f"no such key: {shown_key(key)}")


def _look_up_in_list(target: Any, key: Any, *, presence: bool) -> Any:
    if isinstance(key, bool) or not isinstance(key, int | float):
        return Failure(f"unsupported index type '{_index_type(key)}' in list")
    if isinstance(key, float) and not key.is_integer():
        return Failure(f"unsupported index value {shown_key(key)} in list")
    if 0 <= key < len(target):
        return target[int(key)]
    return ABSENT if presence else Failure(f"index out of bounds: {shown_key(key)}")


def _index_type(key: Any) -> str:
    return {str: "string", bool: "bool", bytes: "bytes"}.get(type(key), type(key).__name__)


# --- cells ----------------------------------------------------------------------------------------


Path = tuple[str, ...]
Pattern = tuple[str | None, ...]


def longest_cell(
    variable: str, qualifiers: Sequence[Qualifier], patterns: Iterable[Pattern]
) -> Path | None:
    """Return the longest path that the qualifiers begin with and a pattern fits."""
    constant = takewhile(lambda q: q.computed is None and type(q.key) is str, qualifiers)
    path = (variable, *(q.key for q in constant))
    lengths = [len(pattern) for pattern in patterns if _fits(pattern, path)]
    return path[: max(lengths)] if lengths else None


def _fits(pattern: Pattern, path: Path) -> bool:
    """Return whether a path begins with the pattern."""
    pairs = zip(pattern, path, strict=False)
    return len(pattern) <= len(path) and all(want in (None, key) for want, key in pairs)
