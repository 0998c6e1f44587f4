"""How one kind is admitted: the steps that differ from kind to kind.

A strategy sees objects in their hub version only. It never mutates: a step that changes an
object returns the changed one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Generic, TypeVar

from msgspec import Struct

from mooring.api.gates import Gate
from mooring.api.timestamp import Timestamp
from mooring.validation.context import Context
from mooring.validation.errors import Errors

O = TypeVar("O", bound=Struct)  # noqa: E741


class Strategy(Generic[O]):
    """The steps of admission for one kind; by default none does anything."""

    allows_unconditional_update = True

    def default(self, value: O, api_version: str, now: Timestamp) -> O:  # noqa: ARG002
        """Return the object with absent fields set as the version it was written in says."""
        return value

    def disabled(self, new: O, old: O | None, context: Context) -> Iterable[Gate]:  # noqa: ARG002
        """Return the gates that are off and whose fields the object is about to lose."""
        return ()

    def prepare_create(self, new: O, context: Context) -> O:  # noqa: ARG002
        """Return a new object without what users may not set."""
        return new

    def check_create(self, new: O, context: Context) -> Errors:  # noqa: ARG002
        """Return what is wrong with a new object."""
        return []

    def prepare_update(self, new: O, old: O, context: Context) -> O:  # noqa: ARG002
        """Return a changed object without what users may not change."""
        return new

    def check_update(self, new: O, old: O, context: Context) -> Errors:  # noqa: ARG002
        """Return what is wrong with a change."""
        return []

    def prepare_status(self, new: O, old: O, context: Context) -> O:  # noqa: ARG002
        """Return an object of which only the status may have changed."""
        return new

    def check_status(self, new: O, old: O, context: Context) -> Errors:  # noqa: ARG002
        """Return what is wrong with a change of the status."""
        return []

    def warnings(self, new: O) -> list[str]:  # noqa: ARG002
        """Return what the user should know although the object is accepted."""
        return []
