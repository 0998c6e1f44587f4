"""The seam to CEL: what validation wants to know of an expression.

Validation never compiles CEL itself. Whoever calls it passes an ExpressionChecker; until a
compiler is given, NonEmpty stands in for it.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import NamedTuple, Protocol

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
    """Compiles expressions as new ones, with the gates it was made for."""

    def check(self, expression: str, purpose: Purpose) -> Accepted | Refused:
        """Return the estimated cost of the expression, or why it is refused."""
        ...


class NonEmpty:
    """Accepts every expression that is not empty."""

    def check(self, expression: str, purpose: Purpose) -> Accepted | Refused:  # noqa: ARG002
        """Return a verdict on nothing but emptiness."""
        if expression.strip():
            return Accepted()
        return Refused(ErrorType.INVALID, "compilation failed: the expression is empty")
