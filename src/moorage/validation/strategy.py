"""Strategies: the steps of a registry that differ from kind to kind, as in k8s.io/apiserver.

    default, prepare_for_create, validate, warnings_on_create           create
    default, prepare_for_update, validate_update                        update
    default, prepare_for_status_update, validate_status_update          update of the status

A strategy sees objects in their hub version only. It never mutates: a step that changes an object
returns the changed one. `registry` runs the steps; `ObjectStrategy` has those that kinds share.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from enum import Enum, auto
from functools import lru_cache
from typing import Any, Generic, NamedTuple, Protocol, TypeVar, cast

from msgspec import Struct
from msgspec.structs import replace

from moorage.api import names
from moorage.api.documents import CORE, KUBERNETES, Schema
from moorage.api.gates import Gate, Gates
from moorage.api.kinds import Kind
from moorage.api.meta import ObjectMeta
from moorage.api.scheduler_config import KubeSchedulerConfiguration
from moorage.api.timestamp import Timestamp
from moorage.cel.device import CelFeatures, DeviceCompiler, ExpressionKind, Scope
from moorage.validation.equality import semantic_equal
from moorage.validation.errors import ErrorList, ErrorType
from moorage.validation.metadata import (
    NameCheck,
    metadata_for_status,
    next_generation,
    validate_metadata,
    validate_metadata_update,
)

O = TypeVar("O", bound=Struct)  # noqa: E741

_ALL_GATES = frozenset(Gate)


class Strategy(Generic[O]):
    """The steps for one kind; by default none does anything."""

    allow_unconditional_update = True

    def default(self, value: O, api_version: str, context: Context) -> O:  # noqa: ARG002
        """Return the object with the defaults of the version in which it was written."""
        return value

    def default_for_status_update(self, value: O, api_version: str, context: Context) -> O:
        """Return the same where only the status counts: everything else stays the stored one's."""
        return self.default(value, api_version, context)

    def disabled_gates(self, new: O, old: O | None, context: Context) -> Iterable[Gate]:
        """Return the gates that are off and whose fields the object is about to lose."""

        def prepare(context: Context) -> O:
            if old is None:
                return self.prepare_for_create(new, context)
            return self.prepare_for_update(new, old, context)

        return _dropping_gates(prepare, context)

    def disabled_status_gates(self, new: O, old: O, context: Context) -> Iterable[Gate]:
        """Return the gates that are off and whose fields the status is about to lose."""
        return _dropping_gates(
            lambda context: self.prepare_for_status_update(new, old, context), context
        )

    def prepare_for_create(self, new: O, context: Context) -> O:  # noqa: ARG002
        """Return a new object without fields that users may not set."""
        return new

    def validate(self, new: O, context: Context) -> ErrorList:  # noqa: ARG002
        """Return the errors of a new object."""
        return []

    def prepare_for_update(self, new: O, old: O, context: Context) -> O:  # noqa: ARG002
        """Return an updated object without changes that users may not make."""
        return new

    def validate_update(self, new: O, old: O, context: Context) -> ErrorList:  # noqa: ARG002
        """Return the errors of an update."""
        return []

    def prepare_for_status_update(self, new: O, old: O, context: Context) -> O:  # noqa: ARG002
        """Return an object of which only the status may have changed."""
        return new

    def validate_status_update(self, new: O, old: O, context: Context) -> ErrorList:  # noqa: ARG002
        """Return the errors of an update of the status."""
        return []

    def warnings_on_prepare(self, new: O) -> list[str]:  # noqa: ARG002
        """Return warnings for the user of a new object, accepted or not, before it is prepared."""
        return []

    def warnings_on_create(self, new: O) -> list[str]:  # noqa: ARG002
        """Return warnings for the user of a new object that is accepted."""
        return []

    def warnings_on_update(self, new: O, old: O) -> list[str]:  # noqa: ARG002
        """Return warnings for the user of an update that is accepted."""
        return self.warnings_on_create(new)

    def warnings_on_status_update(self, new: O) -> list[str]:  # noqa: ARG002
        """Return warnings for the user of an update of the status that is accepted."""
        return []


class ObjectStrategy(Strategy[O]):
    """The steps that most kinds share; a kind adds rules for its own fields.

    The status belongs to its subresource: a new object starts with an empty one, and an update
    keeps the old one. `tracks_generation`: an update that changes the spec is a new generation.
    `qualified_finalizers`: a finalizer that is not a standard one must have a domain.
    `rechecks_metadata`: the metadata of an updated object is also checked as that of a new one.
    `keeps_metadata_with_status`: an update of the status cannot change labels and the like; older
    kinds allow it.
    """

    namespaced = True
    tracks_generation = False
    qualified_finalizers = True
    rechecks_metadata = False
    keeps_metadata_with_status = True
    validate_name: NameCheck = staticmethod(names.dns1123_subdomain)

    def validate_fields(self, new: O) -> ErrorList:  # noqa: ARG002
        """Return the errors of an object, new or updated, besides those of its metadata."""
        return []

    def validate_changes(self, new: O, old: O) -> ErrorList:  # noqa: ARG002
        """Return an error for each field that changed and must not."""
        return []

    def validate_status(self, new: O, old: O) -> ErrorList:  # noqa: ARG002
        """Return the errors of a status."""
        return []

    def drop_disabled_fields(self, new: O, old: O | None, context: Context) -> O:  # noqa: ARG002
        """Return an object without fields of disabled features that the old one does not use."""
        return new

    def prepare_for_create(self, new: O, context: Context) -> O:
        """Drop the status and disabled fields; start in generation 1."""
        new = self.drop_disabled_fields(new, None, context)
        if hasattr(new, "status"):
            empty: Any = type(new)()
            new = replace(new, status=empty.status)
        return _with_generation(new, 1) if self.tracks_generation else new

    def validate(self, new: O, context: Context) -> ErrorList:  # noqa: ARG002
        """Validate everything."""
        return self.validate_metadata(new) + self.validate_fields(new)

    def prepare_for_update(self, new: O, old: O, context: Context) -> O:
        """Keep the status; drop disabled fields that were not in use."""
        after: Any = self.drop_disabled_fields(new, old, context)
        before: Any = old
        if hasattr(after, "status"):
            after = replace(after, status=before.status)
        if not self.tracks_generation or semantic_equal(after.spec, before.spec):
            return cast("O", after)
        return cast("O", _with_generation(after, next_generation(before.metadata.generation)))

    def validate_update(self, new: O, old: O, context: Context) -> ErrorList:  # noqa: ARG002
        """Validate everything, and that only fields that may change did."""
        found = self.validate_metadata_update(new, old)
        return found + self.validate_fields(new) + self.validate_changes(new, old)

    def prepare_for_status_update(self, new: O, old: O, context: Context) -> O:  # noqa: ARG002
        """Keep everything but the status and, in older kinds, the metadata."""
        after: Any = new
        before: Any = old
        metadata = after.metadata
        if self.keeps_metadata_with_status:
            metadata = metadata_for_status(metadata, before.metadata)
        return replace(old, status=after.status, metadata=metadata)

    def validate_status_update(self, new: O, old: O, context: Context) -> ErrorList:  # noqa: ARG002
        """Validate the status."""
        return self.validate_metadata_update(new, old) + self.validate_status(new, old)

    def validate_metadata(self, new: O) -> ErrorList:
        """Validate the metadata, if the kind has any."""
        metadata: ObjectMeta | None = getattr(new, "metadata", None)
        if metadata is None:
            return []
        return validate_metadata(
            metadata,
            namespaced=self.namespaced,
            validate_name=self.validate_name,
            qualified_finalizers=self.qualified_finalizers,
        )

    def validate_metadata_update(self, new: O, old: O) -> ErrorList:
        """Validate changed metadata."""
        after: Any = new
        before: Any = old
        found = self.validate_metadata(new) if self.rechecks_metadata else []
        update = validate_metadata_update(
            after.metadata, before.metadata, qualified_finalizers=self.qualified_finalizers
        )
        return found + update


def _with_generation(value: O, generation: int) -> O:
    counted: Any = value
    return replace(value, metadata=replace(counted.metadata, generation=generation))


def _dropping_gates(prepare: Callable[[Context], O], context: Context) -> Iterable[Gate]:
    """Return the gates without which an object is prepared differently than with all of them."""
    gates = context.gates
    if gates.on == _ALL_GATES:
        return ()

    def with_gates(on: frozenset[Gate]) -> Context:
        return context._replace(gates=dataclasses.replace(gates, on=on))

    complete = prepare(with_gates(_ALL_GATES))
    if prepare(context) == complete:
        return ()
    off = (gate for gate in Gate if not gates.enabled(gate))
    return [gate for gate in off if prepare(with_gates(_ALL_GATES - {gate})) != complete]


# --- inputs of the steps besides the object -----------------------------------------------


class DriverRefusal(NamedTuple):
    """Why a user may not report for a driver, and the verbs of which one would be enough."""

    verbs: tuple[str, ...]
    reason: str


class StatusAuthorizer(Protocol):
    """Authorizes writes to those fields of a claim's status that need a permission of their own.

    Each method returns None, or the reason why the user may not.
    """

    def refuse_binding(self) -> str | None:
        """Authorize setting the allocation and reservations."""
        ...

    def refuse_driver(self, driver: str, *, node: str | None) -> DriverRefusal | None:
        """Authorize reporting for a driver on the node of the allocation."""
        ...


class AllowEverything:
    """The authorizer of files and tests."""

    def refuse_binding(self) -> str | None:
        """Allow it."""
        return None

    def refuse_driver(self, driver: str, *, node: str | None) -> None:
        """Allow it."""


def _accept_any_size(_: Any) -> None:  # no lambda: a World can be pickled, for sweeps in processes
    pass


class Context(NamedTuple):
    """Everything besides the objects on which a strategy depends: gates, time, namespace, user."""

    gates: Gates
    now: Timestamp
    extensions: bool = True
    expressions: ExpressionChecker | None = None  # None: compile as the gates allow
    namespace_is_admin: bool = False
    authorizer: StatusAuthorizer = AllowEverything()
    verb: str = "update"
    check_size: Callable[[Any], None] = (
        _accept_any_size  # raises if an object is too large to store
    )
    scheduler: KubeSchedulerConfiguration | None = None  # of plans, if it is not the default

    @property
    def yaml_schema(self) -> Schema:
        """How plain scalars of YAML are read: without extensions, as Kubernetes reads them."""
        return CORE if self.extensions else KUBERNETES

    def enabled(self, gate: Gate) -> bool:
        """Whether a feature is on."""
        return self.gates.enabled(gate)

    def check_expression(
        self, expression: str, purpose: ExpressionPurpose
    ) -> AcceptedExpression | RejectedExpression:
        """Compile a new expression."""
        checker = self.expressions
        if checker is None:
            checker = _cel_checker(CelFeatures.of(self.gates), self.extensions)
        return checker.check(expression, purpose)


# --- CEL expressions: validation never looks into one itself ------------------------------


class ExpressionPurpose(Enum):
    """The purpose of an expression, which decides its allowed types."""

    SELECTOR = auto()
    DERIVED_ATTRIBUTE = auto()


class AcceptedExpression(NamedTuple):
    """The expression compiles; evaluating it costs at most this much."""

    cost_max: int = 0
    unpaid: int = 0  # work of compiling it, beyond its length


class RejectedExpression(NamedTuple):
    """The expression does not compile."""

    type: ErrorType
    detail: str
    unpaid: int = 0


class ExpressionChecker(Protocol):
    """Compiles expressions as new ones."""

    def check(
        self, expression: str, purpose: ExpressionPurpose
    ) -> AcceptedExpression | RejectedExpression:
        """Return the estimated cost of the expression, or why it is rejected."""
        ...


class CelChecker:
    """Compiles expressions in Kubernetes' CEL environment for devices."""

    def __init__(self, features: CelFeatures, *, extensions: bool) -> None:
        self._compiler = DeviceCompiler(features, extensions=extensions)

    def check(
        self, expression: str, purpose: ExpressionPurpose
    ) -> AcceptedExpression | RejectedExpression:
        """Return the estimated cost of the expression, or why it is rejected."""
        kind: ExpressionKind = "selector" if purpose is ExpressionPurpose.SELECTOR else "derived"
        compiled = self._compiler.compile(expression, kind=kind, scope=Scope.NEW)
        if compiled.error is None:
            return AcceptedExpression(compiled.cost_max, compiled.unpaid)
        type_ = ErrorType.INTERNAL if compiled.is_internal else ErrorType.INVALID
        return RejectedExpression(type_, compiled.error, compiled.unpaid)


@lru_cache(maxsize=16)
def _cel_checker(features: CelFeatures, extensions: bool) -> CelChecker:
    return CelChecker(features, extensions=extensions)


class MetadataStrategy(ObjectStrategy[Any]):
    """The strategy of kinds of which Moorage validates the metadata only."""

    def __init__(self, kind: Kind) -> None:
        self.namespaced = kind.namespaced
