"""What generated code calls: each gives up, with Unusual, on what only the plan can answer."""

from __future__ import annotations

from typing import Any

from mooring.cel.lang.attributes import ABSENT, look_up
from mooring.cel.lang.equality import equal
from mooring.cel.lang.steps import Failure
from mooring.cel.lang.values import Optional, key_value


class Unusual(Exception):  # noqa: N818 - a signal to run the plan
    """Generated code met something that it leaves to the plan."""


def indexed(value: Any, key: Any) -> Any:
    """Return what a key leads to."""
    found = look_up(value, key, presence=False)
    if type(found) is Failure:
        raise Unusual
    return found


def looked_up(value: Any, key: Any) -> Any:
    """Return what a key leads to, or ABSENT."""
    found = look_up(value, key, presence=True)
    if type(found) is Failure:
        raise Unusual
    return found


def is_present(value: Any, key: Any) -> bool:
    """Tell whether a key leads anywhere."""
    return looked_up(value, key) is not ABSENT


def unwrapped(value: Optional) -> Any:
    """Return the value of an optional that has one."""
    return value.value


def elements(values: Any) -> Any:
    """Return what a loop goes over."""
    if isinstance(values, list | tuple):
        return values
    if isinstance(values, dict):
        return [key_value(key) for key in values]
    raise Unusual


class Members:
    """Membership in a list of constants."""

    def __init__(self, members: list[Any]) -> None:
        self._members = members
        self._texts = frozenset(m for m in members if type(m) is str)

    def __call__(self, value: Any) -> bool:
        """Tell whether a value is a member."""
        if type(value) is str:
            return value in self._texts
        return any(equal(value, member) for member in self._members)
