"""How one kind is admitted: the steps that differ from kind to kind.

A strategy sees objects in their hub version only. It never mutates: a step that changes an
object returns the changed one.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from enum import Enum, auto
from functools import lru_cache
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from mooring.api import names
from mooring.api.gates import Gate, Gates
from mooring.api.meta import ObjectMeta
from mooring.api.timestamp import Timestamp
from mooring.cel.device import DeviceCompiler, Features, Kind, Scope
from mooring.validation.equality import semantic_equal
from mooring.validation.errors import Errors, ErrorType
from mooring.validation.metadata import (
    NameCheck,
    check_metadata,
    check_metadata_update,
    next_generation,
)

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
    return context._replace(gates=dataclasses.replace(context.gates, on=on))


# ---- from mooring.validation.context: What an admission depends on besides the objects: gates, time, the namespace, the user.


class DriverRefusal(NamedTuple):
    """Why a user may not report for a driver, and the verbs of which one would do."""

    verbs: tuple[str, ...]
    reason: str


class StatusAuthorizer(Protocol):
    """Says whether the user may write the parts of a claim's status that need a permission.

    Each answer is None, or the reason why the user may not.
    """

    def refuse_binding(self) -> str | None:
        """Say whether the user may set allocation and reservations."""
        ...

    def refuse_driver(self, driver: str, *, node: str | None) -> DriverRefusal | None:
        """Say whether the user may report for a driver on the node of the allocation."""
        ...


class AllowEverything:
    """The authorizer of files and tests."""

    def refuse_binding(self) -> str | None:
        """Allow it."""
        return None

    def refuse_driver(self, driver: str, *, node: str | None) -> None:
        """Allow it."""


class Context(NamedTuple):
    """Everything outside the objects that decides how they are admitted."""

    gates: Gates
    now: Timestamp
    extensions: bool = True
    expressions: ExpressionChecker | None = None  # None: compile as the gates allow
    namespace_is_admin: bool = False
    authorizer: StatusAuthorizer = AllowEverything()
    verb: str = "update"

    def enabled(self, gate: Gate) -> bool:
        """Tell whether a feature is on."""
        return self.gates.enabled(gate)

    def check_expression(
        self, expression: str, purpose: ExpressionPurpose
    ) -> AcceptedExpression | RejectedExpression:
        """Return what a new expression may cost, or why it is refused."""
        checker = self.expressions or checker_for(self.gates, extensions=self.extensions)
        return checker.check(expression, purpose)


# ---- from mooring.validation.expressions: What validation wants to know of an expression, and who tells it.


class ExpressionPurpose(Enum):
    """What an expression is for, which decides the types it may have."""

    SELECTOR = auto()
    DERIVED_ATTRIBUTE = auto()


class AcceptedExpression(NamedTuple):
    """The expression compiles; evaluating it costs at most this much."""

    cost_max: int = 0


class RejectedExpression(NamedTuple):
    """The expression does not compile."""

    type: ErrorType
    detail: str


class ExpressionChecker(Protocol):
    """Compiles expressions as new ones."""

    def check(
        self, expression: str, purpose: ExpressionPurpose
    ) -> AcceptedExpression | RejectedExpression:
        """Return the estimated cost of the expression, or why it is refused."""
        ...


class CelChecker:
    """Compiles expressions with Kubernetes' environment for devices."""

    def __init__(self, features: Features, *, extensions: bool) -> None:
        self._compiler = DeviceCompiler(features, extensions=extensions)

    def check(
        self, expression: str, purpose: ExpressionPurpose
    ) -> AcceptedExpression | RejectedExpression:
        """Return the estimated cost of the expression, or why it is refused."""
        kind: Kind = "selector" if purpose is ExpressionPurpose.SELECTOR else "derived"
        compiled = self._compiler.compile(expression, kind=kind, scope=Scope.NEW)
        if compiled.error is None:
            return AcceptedExpression(compiled.cost_max)
        type_ = ErrorType.INTERNAL if compiled.is_internal else ErrorType.INVALID
        return RejectedExpression(type_, compiled.error)


def checker_for(gates: Gates, *, extensions: bool) -> CelChecker:
    """Return the checker for new expressions under these gates."""
    return _checker(Features.of(gates), extensions)


@lru_cache(maxsize=16)
def _checker(features: Features, extensions: bool) -> CelChecker:
    return CelChecker(features, extensions=extensions)


# ---- from mooring.validation.ordinary: How kinds are admitted that have nothing to do with devices.


class ObjectStrategy(Strategy[O]):
    """Admission by the metadata, and by the rules that a kind adds."""

    namespaced = True
    counts_generations = False
    check_name: NameCheck = staticmethod(names.dns1123_subdomain)

    def rules(self, new: O) -> Errors:  # noqa: ARG002
        """Return what is wrong with an object, new or changed, besides its metadata."""
        return []

    def changes(self, new: O, old: O) -> Errors:  # noqa: ARG002
        """Return what a change may not change."""
        return []

    def status_rules(self, new: O, old: O) -> Errors:  # noqa: ARG002
        """Return what is wrong with a status."""
        return []

    def drop_disabled(self, new: O, old: O | None, context: Context) -> O:  # noqa: ARG002
        """Return an object without fields of disabled features that the old one does not use."""
        return new

    def prepare_create(self, new: O, context: Context) -> O:
        """Start a new status and count from one."""
        new = self.drop_disabled(new, None, context)
        if hasattr(new, "status"):
            new = replace(new, status=type(new.status)())
        return _with_generation(new, 1) if self.counts_generations else new

    def check_create(self, new: O, context: Context) -> Errors:  # noqa: ARG002
        """Check everything."""
        return self.check_metadata(new) + self.rules(new)

    def prepare_update(self, new: O, old: O, context: Context) -> O:
        """Keep the status; a changed spec is a new generation."""
        before: Any = old
        new = self.drop_disabled(new, old, context)
        if hasattr(new, "status"):
            new = replace(new, status=before.status)
        if not self.counts_generations or semantic_equal(_spec(new), before.spec):
            return new
        return _with_generation(new, next_generation(before.metadata.generation))

    def check_update(self, new: O, old: O, context: Context) -> Errors:  # noqa: ARG002
        """Check everything, and that nothing changed that may not."""
        return _check_metadata_update(new, old) + self.rules(new) + self.changes(new, old)

    def prepare_status(self, new: O, old: O, context: Context) -> O:  # noqa: ARG002
        """Keep all but the status and the owners of fields."""
        value: Any = new
        before: Any = old
        metadata = replace(before.metadata, managed_fields=value.metadata.managed_fields)
        return replace(old, status=value.status, metadata=metadata)

    def check_status(self, new: O, old: O, context: Context) -> Errors:  # noqa: ARG002
        """Check the status."""
        return _check_metadata_update(new, old) + self.status_rules(new, old)

    def check_metadata(self, new: O) -> Errors:
        """Check the metadata, if the kind has any."""
        metadata: ObjectMeta | None = getattr(new, "metadata", None)
        if metadata is None:
            return []
        return check_metadata(metadata, namespaced=self.namespaced, check_name=self.check_name)


def _check_metadata_update(new: Any, old: Any) -> Errors:
    return check_metadata_update(new.metadata, old.metadata)


def _spec(value: Any) -> Any:
    return value.spec


def _with_generation(value: O, generation: int) -> O:
    counted: Any = value
    return replace(value, metadata=replace(counted.metadata, generation=generation))
