"""Derived attributes that cannot be evaluated on some device, and expressions that can.

An error on one device ends the search for the whole pod. What `has(…) && (…)` is for a selector,
a bool, is no answer here: a derived attribute needs a value for every device. So a guard chooses
between the value and something that matches nothing:

    name     no device has what is read           ─► the most similar name
    type     "numa-" + numa, and numa is an int   ─► "numa-" + string(numa)
    key      some devices lack what is read       ─► has(…) ? x : []
    index    topology.split("-")[1], too short    ─► size(…) > 1 ? [x] : []
    number   int(numa), and numa is "none"        ─► numa.matches(…) ? [x] : []

An empty list matches nothing. Where lists are off, devices without a value share one that no
device should have. Every repair that is returned was compiled as a derived attribute and evaluated
for all candidates without an error.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, Final, NamedTuple

from moorage.api.semver import Version
from moorage.cel.device import DeviceCompiler, Scope
from moorage.cel.device_values import NO_SUCH_KEY, attribute_value
from moorage.cel.lang import ast
from moorage.cel.lang.interpretable import Failure
from moorage.insight.expressions.evaluation import (
    ExpressionEvaluator,
    InvalidExpression,
    evaluator_of,
)
from moorage.insight.expressions.fields import as_read
from moorage.insight.expressions.published_devices import (
    PublishedDevice,
    PublishedDevices,
    field_candidates,
    written,
)
from moorage.insight.expressions.syntax import DeviceField, DeviceRead, readings, walk

NAMES_TRIED_MAX: Final = 3
_WRAPPED: Final = ("string({})", "int({})", "{}[0]")
_CONVERTED: Final = {
    "int": '{}.matches("^-?[0-9]+$")',
    "semver": "isSemver({})",
    "quantity": "isQuantity({})",
}
_NO_VALUE: Final = {int: "-1", str: '"unknown"', Version: 'semver("0.0.0")'}


class DerivedFault(NamedTuple):
    """Devices for which a derived attribute has no value, and the error of the first."""

    devices: tuple[PublishedDevice, ...]
    message: str
    lacking: tuple[DeviceField, ...]  # what is read, and one of them does not have


class DerivedRepair(NamedTuple):
    """An expression without the mistake, and what was done."""

    text: str
    expression: str
    is_guard: bool = False  # devices are passed over


def stored_evaluator(text: str, compiler: DeviceCompiler) -> ExpressionEvaluator | None:
    """Return the evaluator of a derived attribute as the scheduler has it; None if it is wrong."""
    compiled = compiler.compile(text, kind="derived", scope=Scope.STORED)
    return ExpressionEvaluator(compiled) if compiled.error is None else None


def derived_value(evaluator: ExpressionEvaluator, device: PublishedDevice) -> Any:
    """Return the value of a derived attribute for a device, or a Failure."""
    if device.variables is None:
        return Failure(device.problem or "cannot be read")
    value, _, error = evaluator.compiled.evaluate_variables(device.variables)
    return attribute_value(value) if error is None else Failure(error)


def fault_of(
    evaluator: ExpressionEvaluator, candidates: Iterable[PublishedDevice]
) -> DerivedFault | None:
    """Return for which candidates an expression has no value; None if it has one for all."""
    failed: list[PublishedDevice] = []
    message = ""
    for device in candidates:
        value = derived_value(evaluator, device)
        if isinstance(value, Failure):
            failed.append(device)
            message = message or value.message
    if not failed:
        return None
    lacking = dict.fromkeys(each.read for d in failed for each in _lacking(evaluator, d))
    return DerivedFault(tuple(failed), message, tuple(lacking))


def derived_repairs(
    evaluator: ExpressionEvaluator,
    candidates: Sequence[PublishedDevice],
    fleet: PublishedDevices,
    compiler: DeviceCompiler,
) -> Iterator[DerivedRepair]:
    """Yield expressions that have a value for all candidates, the likeliest first."""
    readable = [each for each in candidates if each.variables is not None]
    fault = fault_of(evaluator, readable)
    if fault is None or not readable:
        return
    search = _Search(evaluator, readable, fault)
    tried = chain(search.renamed(fleet), search.wrapped(), search.guarded(compiler))
    for repair in tried:
        if has_values(repair.expression, readable, compiler):
            yield repair
            if repair.is_guard:
                return


def has_values(
    expression: str, candidates: Iterable[PublishedDevice], compiler: DeviceCompiler
) -> bool:
    """Return whether an expression is valid and has a value for all devices, a list for some."""
    evaluator = evaluator_of(expression, compiler, derived=True)
    if isinstance(evaluator, InvalidExpression) or evaluator.is_too_complex:
        return False
    values = [derived_value(evaluator, device) for device in candidates]
    is_error = any(isinstance(value, Failure) for value in values)
    return not is_error and any(value != () for value in values)


class _Search:
    def __init__(
        self,
        evaluator: ExpressionEvaluator,
        candidates: Sequence[PublishedDevice],
        fault: DerivedFault,
    ) -> None:
        self._parts, self._root = evaluator.parts, evaluator.root
        self._evaluator = evaluator
        self._candidates = candidates
        self._fault = fault

    def renamed(self, fleet: PublishedDevices) -> Iterator[DerivedRepair]:
        """Yield the expression with a name that no candidate has replaced by a similar one."""
        unknown = [
            each
            for each in readings(self._root)
            if each.read.name and not any(d.has(each.read) for d in self._candidates)
        ]
        if not unknown:
            return
        first = unknown[0].read
        tried = [f for f in field_candidates(first, fleet) if self._is_known(f)][:NAMES_TRIED_MAX]
        for field in tried:
            instead = {e.node.id: as_read(e.node, field) for e in unknown if e.read == first}
            text = f"read {written(field)} instead of {first.name}"
            yield DerivedRepair(text, self._parts.rewritten(instead))

    def _is_known(self, field: DeviceField) -> bool:
        return any(device.has(field) for device in self._candidates)

    def wrapped(self) -> Iterator[DerivedRepair]:
        """Yield the expression with an attribute in the type that is needed."""
        reads = [each for each in readings(self._root) if each.read.name and not each.is_guarded]
        for template in _WRAPPED:
            new = {each.node.id: template.format(self._parts.text(each.node)) for each in reads}
            # One attribute, or all: the elements of a list literal have one type.
            for instead in (*({node: text} for node, text in new.items()), new):
                expression = self._parts.rewritten(instead)
                yield DerivedRepair(f"write {expression}", expression)

    def guarded(self, compiler: DeviceCompiler) -> Iterator[DerivedRepair]:
        """Yield the expression behind a condition that the failing devices do not fulfil."""
        conditions = dict.fromkeys(
            condition for device in self._fault.devices for condition in self._conditions(device)
        )
        if not conditions:
            return
        condition, whole = " && ".join(conditions), self._parts.text(self._root)
        nested = f"({whole})" if " ? " in whole else whole
        if compiler.features.list_attributes:
            yield _guard(condition, nested, "[]")
            yield _guard(condition, f"[{whole}]", "[]")
            return
        values = [derived_value(self._evaluator, device) for device in self._candidates]
        for no_value in dict.fromkeys(_NO_VALUE.get(type(value), "") for value in values):
            if no_value:
                yield _guard(condition, nested, no_value)

    def _conditions(self, device: PublishedDevice) -> Iterator[str]:
        """Yield what would have to hold for a device, so that the expression has a value."""
        missing = list(_lacking(self._evaluator, device))
        if missing:
            yield from (f"has({written(each.read)})" for each in missing)
            return
        variables = device.variables or {}
        for node in walk(self._root):
            match node:
                case ast.Call(function="_[_]", args=(target, ast.Literal(value=int(index)))):
                    value = self._parts.value(target, variables)
                    if isinstance(value, list | tuple) and len(value) <= index:
                        yield f"size({self._parts.text(target)}) > {index}"
                case ast.Call(function="_/_" | "_%_", args=(_, divisor)):
                    if self._parts.value(divisor, variables) == 0:
                        yield f"({self._parts.text(divisor)}) != 0"
                case ast.Call(function=name, args=(operand,)) if name in _CONVERTED:
                    value = self._parts.value(operand, variables)
                    fails = isinstance(self._parts.value(node, variables), Failure)
                    if isinstance(value, str) and fails:
                        yield _CONVERTED[name].format(self._parts.text(operand))


def _guard(condition: str, some: str, none: str) -> DerivedRepair:
    expression = f"{condition} ? {some} : {none}"
    return DerivedRepair(f"guard it: {expression}", expression, is_guard=True)


def _lacking(evaluator: ExpressionEvaluator, device: PublishedDevice) -> Iterator[DeviceRead]:
    """Yield the unguarded reads of fields that a device does not have, if that is its error."""
    value = evaluator.parts.value(evaluator.root, device.variables or {})
    if isinstance(value, Failure) and NO_SUCH_KEY in value.message:
        for each in readings(evaluator.root):
            if each.read.name and not each.is_guarded and not device.has(each.read):
                yield each
