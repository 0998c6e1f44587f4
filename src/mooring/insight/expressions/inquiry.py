"""What an expression gives for each device of a fleet.

text ─ inquire ─ Inquiry ─ answers(fleet) ─ Answers: one for each group of devices that the
                    or                               expression cannot tell apart
                 Refusal
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Final, NamedTuple

from mooring.api.gates import Gates
from mooring.api.names import byte_length
from mooring.cel.device import COST_LIMIT, Compiled, DeviceCompiler, Features, Scope
from mooring.cel.inputs import attribute_value
from mooring.cel.lang import ast
from mooring.cel.lang.steps import COST_EXCEEDED, Failure
from mooring.cel.results import with_hint
from mooring.insight.expressions.explanation import Reason, Reasons, explain
from mooring.insight.expressions.fleet import Fleet, FleetDevice, Group
from mooring.insight.expressions.parts import Parts
from mooring.insight.expressions.reads import reads_of
from mooring.insight.wording import shown
from mooring.validation.devices import EXPRESSION_MAX_BYTES

TOO_LONG: Final = f"Too long: may not be more than {EXPRESSION_MAX_BYTES} bytes"
TOO_COMPLEX: Final = "too complex, exceeds cost limit"


class Outcome(StrEnum):
    """What an expression says of a device."""

    MATCH = "match"
    NO_MATCH = "no match"
    VALUE = "value"  # neither yes nor no
    ERROR = "error"


class Answer(NamedTuple):
    """What an expression gives for devices that it cannot tell apart.

    A VALUE with an error is one that Kubernetes does not take.
    """

    devices: tuple[FleetDevice, ...]
    outcome: Outcome
    value: Any = None
    cost: int | None = None
    error: str = ""


class Refusal(NamedTuple):
    """Why an expression cannot be used, in Kubernetes' words."""

    error: str


class Inquiry:
    """An expression that compiles, ready to be put to many devices."""

    def __init__(self, compiled: Compiled, *, caveat: str = "") -> None:
        assert compiled.program is not None
        self.compiled = compiled
        self.parts = Parts(compiled.program)
        self.caveat = caveat  # why Kubernetes would not take it, although we do

    @property
    def root(self) -> ast.Expr:
        """The tree of the expression."""
        return self.parts.root

    @property
    def is_too_complex(self) -> bool:
        """Whether Kubernetes refuses the expression because of what it may cost."""
        return self.compiled.cost_max > COST_LIMIT

    def answers(self, fleet: Fleet) -> list[Answer]:
        """Return what the expression gives for every device."""
        return [self._answer(group) for group in fleet.groups(reads_of(self.root))]

    def reasons(self, answer: Answer) -> Reasons:
        """Return why an answer is what it is; nothing if not the expression is to blame."""
        variables = answer.devices[0].variables
        return () if variables is None else self._reasons(variables, answer.error)

    def reasons_for(self, variables: dict[str, Any]) -> Reasons:
        """Return why the expression gives what it gives for a device."""
        return self._reasons(variables, self.compiled.evaluate_variables(variables).error or "")

    def _reasons(self, variables: dict[str, Any], error: str) -> Reasons:
        whole = self.parts.text(self.root)
        if COST_EXCEEDED in error:
            return (Reason(whole, "has no value", detail=error),)
        if error:
            value = self.parts.value(self.root, variables)
            if not isinstance(value, Failure):
                return (Reason(whole, f"is {shown(value)}", detail=error),)
        return explain(self.parts, variables)

    def _answer(self, group: Group) -> Answer:
        variables = group.first.variables
        if variables is None:
            return Answer(group.devices, Outcome.ERROR, error=group.first.problem or "")
        value, cost, error = self.compiled.evaluate_variables(variables)
        if error is not None:
            return self._failed(group.devices, variables, cost, with_hint(error))
        match self.compiled.kind, value:
            case "derived", _:
                return Answer(group.devices, Outcome.VALUE, attribute_value(value), cost)
            case _, True:
                return Answer(group.devices, Outcome.MATCH, value, cost)
            case _, False:
                return Answer(group.devices, Outcome.NO_MATCH, value, cost)
            case _:
                return Answer(group.devices, Outcome.VALUE, value, cost)

    def _failed(
        self,
        devices: tuple[FleetDevice, ...],
        variables: dict[str, Any],
        cost: int | None,
        error: str,
    ) -> Answer:
        """Return an error, or the value that a selector has instead of yes or no."""
        if self.compiled.kind == "selector":
            value = self.parts.value(self.root, variables)
            if not isinstance(value, Failure):
                return Answer(devices, Outcome.VALUE, value, cost, error)
        return Answer(devices, Outcome.ERROR, None, cost, error)


def compiler_for(gates: Gates, *, extensions: bool) -> DeviceCompiler:
    """Return the compiler of new expressions under these gates."""
    return DeviceCompiler(Features.of(gates), extensions=extensions)


def inquire(text: str, compiler: DeviceCompiler, *, derived: bool = False) -> Inquiry | Refusal:
    """Return a new expression ready for use, or why it cannot be used.

    Unless it must be that of a derived attribute, it may have any type: what is no selector
    still has values to look at.
    """
    if byte_length(text) > EXPRESSION_MAX_BYTES:
        return Refusal(TOO_LONG)
    compiled = compiler.compile(text, kind="derived" if derived else "selector", scope=Scope.NEW)
    if compiled.error is None:
        return Inquiry(compiled)
    untyped = compiler.compile(text, kind="raw", scope=Scope.NEW)
    if derived or untyped.error is not None:
        return Refusal(compiled.error)
    return Inquiry(untyped, caveat=compiled.error)
