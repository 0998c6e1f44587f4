"""Conditions of statuses: one of each type, changed only when they say something new."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

from msgspec.structs import replace

C = TypeVar("C")


def condition_of(conditions: Iterable[Any], kind: str) -> Any | None:
    """Return the condition of a type, if there is one."""
    return next((each for each in conditions if each.type == kind), None)


def is_true(conditions: Iterable[Any], kind: str) -> bool:
    """Tell whether the condition of a type holds."""
    found = condition_of(conditions, kind)
    return found is not None and found.status == "True"


def with_condition(conditions: tuple[C, ...], new: Any) -> tuple[C, ...]:
    """Return the conditions with this one, unless one of its status and reason is there.

    The time of transition stays while the status does.
    """
    old = condition_of(conditions, new.type)
    if old is not None and (old.status, old.reason) == (new.status, new.reason):
        return conditions
    if old is not None and old.status == new.status:
        new = replace(new, last_transition_time=old.last_transition_time)
    return (*without_condition(conditions, new.type), new)


def without_condition(conditions: tuple[C, ...], kind: str) -> tuple[C, ...]:
    """Return the conditions without that of a type."""
    return tuple(each for each in conditions if each.type != kind)  # type: ignore[attr-defined]
