"""Rules for the counts of pods that controllers report."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec.structs import fields

from mooring.api.fieldpath import Path
from mooring.validation.checks import not_negative
from mooring.validation.errors import Errors, invalid


def check_counts(status: Any, names: Iterable[str], path: Path) -> Errors:
    """Check that no count is negative."""
    counts = _by_name(status)
    found: Errors = []
    for name in names:
        found += not_negative(counts[name], path.child(name))
    return found


def check_at_most(status: Any, names: Iterable[str], path: Path) -> Errors:
    """Check that no count is greater than that of all pods."""
    counts = _by_name(status)
    detail = "cannot be greater than status.replicas"
    return [
        invalid(path.child(name), counts[name], detail)
        for name in names
        if counts[name] > status.replicas
    ]


def check_collisions(count: int | None, before: int | None, path: Path) -> Errors:
    """Check that the count of names that were taken never goes back."""
    if before is None or (count is not None and count >= before):
        return []
    return [invalid(path.child("collisionCount"), count or 0, "cannot be decremented")]


def _by_name(status: Any) -> dict[str, Any]:
    return {field.encode_name: getattr(status, field.name) for field in fields(status)}
