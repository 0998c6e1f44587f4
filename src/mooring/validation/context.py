"""What an admission depends on besides the objects: gates, time, the namespace, the user."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from mooring.api.gates import Gate, Gates
from mooring.api.timestamp import Timestamp
from mooring.validation.expressions import (
    Accepted,
    ExpressionChecker,
    Purpose,
    Refused,
    checker_for,
)


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

    def check_expression(self, expression: str, purpose: Purpose) -> Accepted | Refused:
        """Return what a new expression may cost, or why it is refused."""
        checker = self.expressions or checker_for(self.gates, extensions=self.extensions)
        return checker.check(expression, purpose)
