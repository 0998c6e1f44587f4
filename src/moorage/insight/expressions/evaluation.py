"""The result of an expression for each device.

text ─ evaluator_of ─┬─ ExpressionEvaluator ─ results(devices): one result for each group of
                     │                        devices that the expression cannot distinguish
                     └─ InvalidExpression
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from functools import cached_property
from typing import Any, Final, NamedTuple

from moorage.api.gates import Gates
from moorage.api.names import byte_length
from moorage.api.resource.v1 import DeviceClass, ResourceSlice
from moorage.api.tolerations import DeviceName
from moorage.cel.device import COST_LIMIT, CelFeatures, Compiled, DeviceCompiler, Scope
from moorage.cel.device_values import attribute_value, with_hint
from moorage.cel.lang import ast
from moorage.cel.lang.errors import COST_EXCEEDED
from moorage.cel.lang.interpretable import Failure
from moorage.insight.expressions.explanation import SINCE, Parts, Reason, Reasons, Valued, explain
from moorage.insight.expressions.published_devices import (
    DeviceGroup,
    PublishedDevice,
    PublishedDevices,
)
from moorage.insight.expressions.syntax import DeviceField, reads_of, shown
from moorage.insight.expressions.values import tallied
from moorage.insight.messages import counted
from moorage.validation.device_fields import EXPRESSION_MAX_BYTES

TOO_LONG: Final = f"Too long: may not be more than {EXPRESSION_MAX_BYTES} bytes"
TOO_COMPLEX: Final = "too complex, exceeds cost limit"
ABORTS: Final = "scheduling aborts when it looks at one of them"
ALIKE_MAX: Final = 3


class Selected(NamedTuple):
    """The devices that expressions match, and a concern if others give an error."""

    names: frozenset[DeviceName]
    concern: str = ""


class MatchOutcome(StrEnum):
    """The outcome of an expression for a device."""

    MATCH = "match"
    NO_MATCH = "no match"
    VALUE = "value"  # neither true nor false
    ERROR = "error"


class DeviceResult(NamedTuple):
    """The result of an expression for devices that it cannot distinguish.

    Kubernetes does not accept a VALUE with an error.
    """

    devices: tuple[PublishedDevice, ...]
    outcome: MatchOutcome
    value: Any = None
    cost: int | None = None
    error: str = ""


class InvalidExpression(NamedTuple):
    """Why an expression cannot be used, with Kubernetes' message."""

    error: str


class ExpressionEvaluator:
    """An expression that compiles, ready to be evaluated for many devices."""

    def __init__(self, compiled: Compiled, *, caveat: str = "") -> None:
        assert compiled.program is not None
        self.compiled = compiled
        self.parts = Parts(compiled.program, compiled.meter)
        self.caveat = caveat  # why Kubernetes would not accept it, although Moorage does

    @property
    def root(self) -> ast.Expr:
        """The tree of the expression."""
        return self.parts.root

    @property
    def is_too_complex(self) -> bool:
        """Whether Kubernetes rejects the expression because of its estimated cost."""
        return self.compiled.cost_max > COST_LIMIT

    def results(
        self, fleet: PublishedDevices, among: Sequence[PublishedDevice] | None = None
    ) -> list[DeviceResult]:
        """Return the results for every device, or for some."""
        return [self._answer(group) for group in fleet.groups(self._reads, among)]

    @cached_property
    def _reads(self) -> frozenset[DeviceField]:
        return reads_of(self.root)

    def reasons(self, result: DeviceResult) -> Reasons:
        """Return the reasons for a result; none if the device itself cannot be read."""
        self.compiled.meter.check()
        variables = result.devices[0].variables
        return () if variables is None else self._reasons(variables, result.error)

    def reasons_for(self, variables: dict[str, Any]) -> Reasons:
        """Return the reasons for the result of one device."""
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

    def _answer(self, group: DeviceGroup) -> DeviceResult:
        self.compiled.meter.check()
        variables = group.first.variables
        if variables is None:
            return DeviceResult(group.devices, MatchOutcome.ERROR, error=group.first.problem or "")
        value, cost, error = self.compiled.evaluate_variables(variables)
        if error is not None:
            return self._failed(group.devices, variables, cost, with_hint(error))
        match self.compiled.kind, value:
            case "derived", _:
                return DeviceResult(group.devices, MatchOutcome.VALUE, attribute_value(value), cost)
            case _, True:
                return DeviceResult(group.devices, MatchOutcome.MATCH, value, cost)
            case _, False:
                return DeviceResult(group.devices, MatchOutcome.NO_MATCH, value, cost)
            case _:
                return DeviceResult(group.devices, MatchOutcome.VALUE, value, cost)

    def _failed(
        self,
        devices: tuple[PublishedDevice, ...],
        variables: dict[str, Any],
        cost: int | None,
        error: str,
    ) -> DeviceResult:
        """Return an error, or the value that a selector gives instead of true or false."""
        if self.compiled.kind == "selector":
            value = self.parts.value(self.root, variables)
            if not isinstance(value, Failure):
                return DeviceResult(devices, MatchOutcome.VALUE, value, cost, error)
        return DeviceResult(devices, MatchOutcome.ERROR, None, cost, error)


def compiler_for(gates: Gates, *, extensions: bool) -> DeviceCompiler:
    """Return the compiler of new expressions under these feature gates."""
    return DeviceCompiler(CelFeatures.of(gates), extensions=extensions)


def evaluator_of(
    text: str, compiler: DeviceCompiler, *, derived: bool = False
) -> ExpressionEvaluator | InvalidExpression:
    """Return the evaluator of a new expression, or why the expression is invalid.

    Unless it belongs to a derived attribute, it may have any type: an expression that is no
    selector still has values to look at.
    """
    if byte_length(text) > EXPRESSION_MAX_BYTES:
        return InvalidExpression(TOO_LONG)
    compiled = compiler.compile(text, kind="derived" if derived else "selector", scope=Scope.NEW)
    if compiled.error is None:
        return ExpressionEvaluator(compiled)
    untyped = compiler.compile(text, kind="raw", scope=Scope.NEW)
    if derived or untyped.error is not None:
        return InvalidExpression(compiled.error)
    return ExpressionEvaluator(untyped, caveat=compiled.error)


# --- devices that a class or an expression selects --------------------------------------


def selected_by_expression(
    slices: Iterable[ResourceSlice], expression: str, compiler: DeviceCompiler
) -> Selected | InvalidExpression:
    """Return the devices for which an expression is true, or why it is invalid."""
    evaluator = evaluator_of(expression, compiler)
    if isinstance(evaluator, InvalidExpression):
        return evaluator
    if evaluator.caveat:
        return InvalidExpression(evaluator.caveat)
    results = evaluator.results(PublishedDevices(slices, names=compiler.extensions))
    return _selected(_with(MatchOutcome.MATCH, results), _failed_results(results))


def selected_by_class(
    slices: Iterable[ResourceSlice], device_class: DeviceClass, compiler: DeviceCompiler
) -> Selected | InvalidExpression:
    """Return the devices that all selectors of a class match, or why one is invalid."""
    published = PublishedDevices(slices, names=compiler.extensions)
    devices: Sequence[PublishedDevice] = published.devices
    failed: list[DeviceResult] = []
    for number, selector in enumerate(device_class.spec.selectors):
        compiled = compiler.compile("" if selector.cel is None else selector.cel.expression)
        if compiled.error is not None:
            name = device_class.metadata.name
            return InvalidExpression(f"class {name}: selector #{number}: {compiled.error}")
        results = ExpressionEvaluator(compiled).results(published, devices)
        devices = _with(MatchOutcome.MATCH, results)
        failed += _failed_results(results)
    return _selected(devices, failed)


def _with(outcome: MatchOutcome, results: Iterable[DeviceResult]) -> list[PublishedDevice]:
    return [device for each in results if each.outcome is outcome for device in each.devices]


def _failed_results(results: Iterable[DeviceResult]) -> list[DeviceResult]:
    return [each for each in results if each.outcome is MatchOutcome.ERROR]


def _selected(devices: Iterable[PublishedDevice], failed: Sequence[DeviceResult]) -> Selected:
    names = frozenset(DeviceName(each.driver, each.pool, each.name) for each in devices)
    number = sum(len(each.devices) for each in failed)
    if not number:
        return Selected(names)
    first = failed[0].devices[0]
    gives = f"{counted(number, 'device')} {'gives' if number == 1 else 'give'} an error"
    where = f"{first.driver}/{first.pool}/{first.name}"
    return Selected(names, f"{gives}, such as {where}: {failed[0].error}; {ABORTS}")


# --- everything together, for display ---------------------------------------------------


class Explained(NamedTuple):
    """Devices with the same outcome for the same reasons."""

    outcome: MatchOutcome
    error: str
    reasons: Reasons
    devices: tuple[PublishedDevice, ...]


class EvaluationReport:
    """The results of an expression for all devices."""

    def __init__(self, evaluator: ExpressionEvaluator, fleet: PublishedDevices) -> None:
        self.evaluator = evaluator
        self.devices = fleet
        given = evaluator.results(fleet)
        kind = evaluator.compiled.kind
        self.is_about_values = kind != "selector" or any(
            a.outcome is MatchOutcome.VALUE for a in given
        )
        # A bool among other values is a value too: the expression is no condition.
        self.results = [_as_value(a) for a in given] if self.is_about_values else given

    @property
    def wanted(self) -> MatchOutcome:
        """The outcome whose devices are listed."""
        return MatchOutcome.VALUE if self.is_about_values else MatchOutcome.MATCH

    @property
    def is_good(self) -> bool:
        """Whether a device matches or, if the expression gives values, all devices have one."""
        if self.evaluator.is_too_complex:
            return False
        if self.is_about_values:
            return bool(self.devices.devices) and not self.count(MatchOutcome.ERROR)
        return self.count(MatchOutcome.MATCH) > 0

    @property
    def caveat(self) -> str:
        """Why Kubernetes would not accept the expression, or ""."""
        if self.evaluator.is_too_complex:
            return TOO_COMPLEX
        wrong = (a.error for a in self.results if a.outcome is MatchOutcome.VALUE and a.error)
        return self.evaluator.caveat or next(wrong, "")

    @property
    def costs(self) -> tuple[int, int] | None:
        """The lowest and highest cost of an evaluation, if there was one."""
        costs = [result.cost for result in self.results if result.cost is not None]
        return (min(costs), max(costs)) if costs else None

    def count(self, outcome: MatchOutcome) -> int:
        """Return how many devices have the outcome."""
        return sum(len(a.devices) for a in self.results if a.outcome is outcome)

    def by_device(self) -> Iterator[tuple[PublishedDevice, DeviceResult]]:
        """Yield every device with its result, in order."""
        pairs = [(device, result) for result in self.results for device in result.devices]
        pairs.sort(key=lambda pair: pair[0].index)
        yield from pairs

    @cached_property
    def explained(self) -> tuple[Explained, ...]:
        """Why devices are not listed, grouped by reason."""
        found: dict[tuple[MatchOutcome, str, Reasons], list[PublishedDevice]] = {}
        for result in self.results:
            if result.outcome is not self.wanted:
                key = (result.outcome, result.error, self.evaluator.reasons(result))
                found.setdefault(key, []).extend(result.devices)
        return tuple(Explained(*key, _sorted(devices)) for key, devices in found.items())


def _as_value(result: DeviceResult) -> DeviceResult:
    if result.outcome is MatchOutcome.ERROR:
        return result
    return result._replace(outcome=MatchOutcome.VALUE)


def _sorted(devices: Iterable[PublishedDevice]) -> tuple[PublishedDevice, ...]:
    return tuple(sorted(devices, key=lambda device: device.index))


# --- explanations that differ in values only --------------------------------------------


def condensed(explained: Iterable[Explained]) -> list[Explained]:
    """Merge explanations that differ only in values, where there are many."""
    alike: dict[tuple[object, ...], list[Explained]] = {}
    for one in explained:
        parts = tuple((reason.part, reason.detail) for reason in one.reasons)
        alike.setdefault((one.outcome, one.error, parts), []).append(one)
    return [
        one
        for group in alike.values()
        for one in (group if len(group) <= ALIKE_MAX else [_merged(group)])
    ]


def _merged(group: list[Explained]) -> Explained:
    reasons = tuple(
        _merged_reason([(one.reasons[i], len(one.devices)) for one in group])
        for i in range(len(group[0].reasons))
    )
    devices = _sorted(device for one in group for device in one.devices)
    return group[0]._replace(reasons=reasons, devices=devices)


def _merged_reason(weighted: list[tuple[Reason, int]]) -> Reason:
    first, _ = weighted[0]
    tallies: dict[tuple[str, str], Counter[str]] = {}
    for reason, devices in weighted:
        for valued in reason.values:
            tallies.setdefault((valued.part, valued.label), Counter())[valued.value] += devices
    return first._replace(
        # The deciding elements of a loop differ from device to device.
        outcome=first.outcome.partition(SINCE)[0],
        values=tuple(Valued(*names, tallied(tally)) for names, tally in tallies.items()),
    )
