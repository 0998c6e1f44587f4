"""What lint knows besides the object at hand: devices, classes, and what expressions give.

The scheduler looks at a device for a request in this order: the selectors of the class, then those
of the request, and it stops at the first that is false. So each expression has its candidates, the
devices that come as far as to it; only for them does it matter what it gives.

# stage: an expression of an ask, and the devices that come as far as to it
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import NamedTuple

from mooring.api.resource.v1 import DeviceClass
from mooring.cel.device import DeviceCompiler, Scope
from mooring.claims.classindex import ClassIndex
from mooring.insight.expressions.evaluation import (
    DeviceResult,
    ExpressionEvaluator,
    InvalidExpression,
    MatchOutcome,
    evaluator_of,
)
from mooring.insight.expressions.published_devices import PublishedDevice, PublishedDevices
from mooring.insight.lint.subjects import Ask, Expression, asks_of
from mooring.insight.lint.surroundings import Surroundings
from mooring.insight.objects import Object

Indices = frozenset[int]  # devices, by their index in the fleet


class Stage(NamedTuple):
    """An expression of an ask, and the devices that come as far as to it."""

    ask: Ask
    expression: Expression
    inquiry: ExpressionEvaluator | InvalidExpression
    answers: tuple[DeviceResult, ...]  # for the whole fleet
    candidates: Indices
    is_class_known: bool  # else the candidates are too many

    def looked_at(self) -> Iterator[tuple[DeviceResult, list[PublishedDevice]]]:
        """Give the answers that matter, each with its candidates."""
        for answer in self.answers:
            devices = [device for device in answer.devices if device.index in self.candidates]
            if devices and devices[0].variables is not None:
                yield answer, devices

    @property
    def passing(self) -> Indices:
        """The candidates that match."""
        return self.candidates & matching(self.answers)


class World:
    """All devices and classes, the objects around, and a memory of what expressions gave."""

    def __init__(
        self,
        fleet: PublishedDevices,
        classes: Iterable[DeviceClass],
        compiler: DeviceCompiler,
        around: Surroundings | None = None,
    ) -> None:
        self.fleet = fleet
        self.classes = {class_.metadata.name: class_ for class_ in classes}
        self.compiler = compiler
        self.around = around or Surroundings()
        self._inquiries: dict[tuple[str, str], ExpressionEvaluator | InvalidExpression] = {}
        self._answers: dict[tuple[str, str], tuple[DeviceResult, ...]] = {}
        self._class_members: dict[str, Indices | None] = {}

    @cached_property
    def class_index(self) -> ClassIndex:
        """The classes by the extended resources that they stand behind."""
        index = ClassIndex()
        for class_ in self.classes.values():
            index.put_class(class_)
        return index

    @cached_property
    def unreadable(self) -> dict[str, list[PublishedDevice]]:
        """The devices that no expression can read, by slice."""
        found: dict[str, list[PublishedDevice]] = {}
        for device in self.fleet.devices:
            if device.problem is not None:
                found.setdefault(device.slice_name, []).append(device)
        return found

    @cached_property
    def selected_drivers(self) -> frozenset[str] | None:
        """The drivers of devices in some class, None if a class cannot be told."""
        members = [self.members(name) for name in self.classes]
        if any(each is None for each in members):
            return None
        selected = frozenset[int]().union(*(each for each in members if each is not None))
        return frozenset(self.fleet.devices[index].driver for index in selected)

    def stages(self, subject: Object) -> tuple[Stage, ...]:
        """Return the expressions of an object with their candidates."""
        return tuple(stage for ask in asks_of(subject) for stage in self._stages_of(ask))

    def candidates(self, ask: Ask) -> tuple[Indices, bool]:
        """Return the devices that come as far as to an ask, and whether its class is known."""
        admitted = frozenset(d.index for d in self.fleet.devices if ask.admits(d))
        if not ask.class_name:
            return admitted, True
        members = self.members(ask.class_name)
        return (admitted, False) if members is None else (admitted & members, True)

    def selected(self, ask: Ask) -> Indices:
        """Return the devices that an ask selects."""
        indices, _ = self.candidates(ask)
        for expression in ask.selectors:
            indices &= matching(self.answers(expression))
        return indices

    def members(self, class_name: str) -> Indices | None:
        """Return the devices of a class, None if it is not known or does not compile."""
        if class_name not in self._class_members:
            self._class_members[class_name] = self._members(class_name)
        return self._class_members[class_name]

    def answers(self, expression: Expression) -> tuple[DeviceResult, ...]:
        """Return what an expression gives for every device; nothing if it does not compile."""
        key = (expression.text, expression.purpose)
        if key not in self._answers:
            inquiry = self.inquiry(expression)
            given = inquiry.answers(self.fleet) if isinstance(inquiry, ExpressionEvaluator) else ()
            self._answers[key] = tuple(given)
        return self._answers[key]

    def inquiry(self, expression: Expression) -> ExpressionEvaluator | InvalidExpression:
        """Return an expression that compiles as a new one of its purpose, or why it does not."""
        key = (expression.text, expression.purpose)
        if key not in self._inquiries:
            is_derived = expression.purpose == "derived"
            inquiry = evaluator_of(expression.text, self.compiler, derived=is_derived)
            if isinstance(inquiry, ExpressionEvaluator) and inquiry.caveat:
                inquiry = InvalidExpression(inquiry.caveat)
            self._inquiries[key] = inquiry
        return self._inquiries[key]

    def compiles_when_stored(self, expression: Expression) -> bool:
        """Whether an expression would compile with every feature on."""
        kind = expression.purpose
        return self.compiler.compile(expression.text, kind=kind, scope=Scope.STORED).error is None

    def _members(self, class_name: str) -> Indices | None:
        class_ = self.classes.get(class_name)
        if class_ is None:
            return None
        members = frozenset(range(len(self.fleet)))
        for selector in class_.spec.selectors:
            expression = Expression((), selector.cel.expression if selector.cel else "")
            if isinstance(self.inquiry(expression), InvalidExpression):
                return None
            members &= matching(self.answers(expression))
        return members

    def _stages_of(self, ask: Ask) -> Iterator[Stage]:
        candidates, is_class_known = self.candidates(ask)
        for expression in (*ask.selectors, *(derived for _, derived in ask.derived)):
            stage = Stage(
                ask=ask,
                expression=expression,
                inquiry=self.inquiry(expression),
                answers=self.answers(expression),
                candidates=candidates,
                is_class_known=is_class_known,
            )
            yield stage
            if expression.purpose == "selector" and isinstance(stage.inquiry, ExpressionEvaluator):
                candidates = stage.passing


def matching(answers: Iterable[DeviceResult]) -> Indices:
    """Return the devices that match."""
    return frozenset(
        device.index
        for answer in answers
        if answer.outcome is MatchOutcome.MATCH
        for device in answer.devices
    )
