"""How one kind is admitted: the steps that differ from kind to kind.

A strategy sees objects in their hub version only. It never mutates: a step that changes an
object returns the changed one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Generic, TypeVar

from msgspec import Struct

from mooring.api.gates import Gate, Gates
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

    def default_features(self, value: O, gates: Gates) -> O:  # noqa: ARG002
        """Return the object with absent fields set that only a feature has."""
        return value

    def disabled(self, new: O, old: O | None, context: Context) -> Iterable[Gate]:
        """Return the gates that are off and whose fields the object is about to lose."""

        def prepare(context: Context) -> O:
            if old is None:
                return self.prepare_create(new, context)
            return self.prepare_update(new, old, context)

        return _dropped(prepare, context)

    def disabled_status(self, new: O, old: O, context: Context) -> Iterable[Gate]:
        """Return the gates that are off and whose fields the status is about to lose."""
        return _dropped(lambda context: self.prepare_status(new, old, context), context)

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


_ALL = frozenset(Gate)


def _dropped(prepare: Callable[[Context], O], context: Context) -> Iterable[Gate]:
    """Return the gates without which an object is prepared to something else than with them."""
    gates = context.gates
    if gates.on == _ALL:
        return ()
    complete = prepare(_with_gates(context, _ALL))
    if prepare(context) == complete:
        return ()
    off = (gate for gate in Gate if not gates.enabled(gate))
    return [gate for gate in off if prepare(_with_gates(context, _ALL - {gate})) != complete]


def _with_gates(context: Context, on: frozenset[Gate]) -> Context:
    return context._replace(gates=replace(context.gates, on=on))
