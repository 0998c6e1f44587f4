"""What validation wants to know of an expression, and who tells it.

Validation never looks into an expression itself. It asks an ExpressionChecker, which compiles it
as a new one, with the features that the gates allow.
"""

from __future__ import annotations

from enum import Enum, auto
from functools import lru_cache
from typing import NamedTuple, Protocol

from mooring.api.gates import Gates
from mooring.cel.device import DeviceCompiler, Features, Kind, Scope
from mooring.validation.errors import ErrorType


class Purpose(Enum):
    """What an expression is for, which decides the types it may have."""

    SELECTOR = auto()
    DERIVED_ATTRIBUTE = auto()


class Accepted(NamedTuple):
    """The expression compiles; evaluating it costs at most this much."""

    cost_max: int = 0


class Refused(NamedTuple):
    """The expression does not compile."""

    type: ErrorType
    detail: str


class ExpressionChecker(Protocol):
    """Compiles expressions as new ones."""

    def check(self, expression: str, purpose: Purpose) -> Accepted | Refused:
        """Return the estimated cost of the expression, or why it is refused."""
        ...


class CelChecker:
    """Compiles expressions with Kubernetes' environment for devices."""

    def __init__(self, features: Features, *, extensions: bool) -> None:
        self._compiler = DeviceCompiler(features, extensions=extensions)

    def check(self, expression: str, purpose: Purpose) -> Accepted | Refused:
        """Return the estimated cost of the expression, or why it is refused."""
        kind: Kind = "selector" if purpose is Purpose.SELECTOR else "derived"
        compiled = self._compiler.compile(expression, kind=kind, scope=Scope.NEW)
        if compiled.error is None:
            return Accepted(compiled.cost_max)
        type_ = ErrorType.INTERNAL if compiled.is_internal else ErrorType.INVALID
        return Refused(type_, compiled.error)


def checker_for(gates: Gates, *, extensions: bool) -> CelChecker:
    """Return the checker for new expressions under these gates."""
    return _checker(Features.of(gates), extensions)


@lru_cache(maxsize=16)
def _checker(features: Features, extensions: bool) -> CelChecker:
    return CelChecker(features, extensions=extensions)
