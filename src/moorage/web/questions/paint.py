"""The check that rejects each device for a pod, for painting all devices of the fleet.

All devices are checked, whatever their node, for each of the pod's requests. If requests differ,
the one for which the device passes most checks counts. A device that passes all checks may still be
on a node that rejects the pod for other reasons.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from moorage.allocator.taints import BLOCKING
from moorage.api.core.pod import Pod
from moorage.api.resource.v1 import DeviceClass, DeviceToleration
from moorage.api.tolerations import tolerates
from moorage.cel.device import DeviceCompiler
from moorage.cel.lang.metering import Interrupt, Interrupted
from moorage.insight.devices import DeviceState, DeviceUsage
from moorage.insight.expressions.evaluation import ExpressionEvaluator, MatchOutcome, compiler_for
from moorage.insight.snapshot.snapshot import Snapshot
from moorage.web.columns import Column, encode
from moorage.web.pending import FindClaim, claim_specs, limits_of
from moorage.web.questions.moment import EVALUATION_S, ShownMoment, ends_after

QUESTIONS: Final = (
    "not of the class",
    "refused by a selector",
    "not usable",
    "taken",
    "blocked by counters",
    "tainted",
    "on a node that refuses the pod",
    "would do by itself",
)
CLASS, SELECTOR, UNUSABLE, TAKEN, COUNTERS, TAINT, NODE, WOULD_DO = range(len(QUESTIONS))
ASKS_MAX: Final = 64  # of requests, including alternatives
_LOST: Final = (DeviceState.UNUSABLE, DeviceState.MISSING)


class Ask(NamedTuple):
    """What a request, or an alternative of one, asks of a device."""

    class_selectors: tuple[str, ...] | None  # None: the class does not exist
    selectors: tuple[str, ...] = ()
    tolerations: tuple[DeviceToleration, ...] = ()
    is_admin: bool = False


def painted(
    moment: ShownMoment,
    pod: Pod,
    refusing: Collection[str] = (),
    *,
    interrupt: Interrupt | None = None,
) -> dict[str, Any] | None:
    """Return the question for each device; `refusing` are nodes that do not take the pod.

    None if `interrupt` ends the evaluation of the pod's expressions, by default after some seconds.
    """
    asks = dict.fromkeys(asks_of(pod, moment.find_spec, moment.snapshot))
    key = (tuple(asks)[:ASKS_MAX], frozenset(refusing))
    found = moment.paintings.get(key)
    if found is None:
        found = _paint(moment, *key, interrupt or ends_after(EVALUATION_S))
        if found is not None:
            moment.paintings.put(key, found)
    return found


def _paint(
    moment: ShownMoment, asks: Iterable[Ask], refusing: frozenset[str], interrupt: Interrupt
) -> dict[str, Any] | None:
    context = moment.context
    compiler = compiler_for(context.gates, extensions=context.extensions)
    painter = _Painter(moment, refusing, compiler)
    column = [0] * len(moment.devices)
    try:
        with compiler.meter.bounded(interrupt):
            for ask in asks:
                column = list(map(max, column, painter.questions(ask)))
    except Interrupted:
        return None
    return {"questions": QUESTIONS, "devices": encode(column)}


def asks_of(pod: Pod, find: FindClaim, snapshot: Snapshot) -> Iterator[Ask]:
    """Yield what the requests of a pod ask for."""
    classes = {each.metadata.name: each for each in snapshot.classes}
    for spec in claim_specs(pod, find):
        for request in spec.devices.requests or ():
            chosen: Sequence[Any] = request.first_available or ()
            for wanted in (request.exactly, *chosen) if request.exactly else chosen:
                found = classes.get(wanted.device_class_name)
                yield Ask(
                    None if found is None else _expressions(found),
                    tuple(each.cel.expression for each in wanted.selectors if each.cel),
                    tuple(wanted.tolerations),
                    bool(getattr(wanted, "admin_access", False)),
                )
    by_resource = {each.spec.extended_resource_name: each for each in snapshot.classes}
    for name in limits_of(pod):
        if (device_class := by_resource.get(name)) is not None:
            yield Ask(_expressions(device_class))


def _expressions(device_class: DeviceClass) -> tuple[str, ...]:
    return tuple(each.cel.expression for each in device_class.spec.selectors if each.cel)


class _Painter:
    def __init__(
        self, moment: ShownMoment, refusing: frozenset[str], compiler: DeviceCompiler
    ) -> None:
        self._moment = moment
        self._refusing = refusing
        self._compiler = compiler
        self._matching: dict[str, Column] = {}

    def questions(self, ask: Ask) -> Column:
        """Return the first check that each device fails."""
        devices = self._moment.devices
        if ask.class_selectors is None:
            return [CLASS] * len(devices)
        of_class, selected = self._all(ask.class_selectors), self._all(ask.selectors)
        return [
            CLASS if not in_class else SELECTOR if not is_selected else self._question(usage, ask)
            for usage, in_class, is_selected in zip(devices, of_class, selected, strict=True)
        ]

    def _question(self, usage: DeviceUsage, ask: Ask) -> int:
        """Return the first check that a selected device fails."""
        if usage.state in _LOST:
            return UNUSABLE
        if not ask.is_admin:
            if usage.state is DeviceState.TAKEN:
                return TAKEN
            if usage.state is DeviceState.BLOCKED:
                return COUNTERS
        blocking = (mark.taint for mark in usage.taints if mark.taint.effect in BLOCKING)
        if any(not any(tolerates(t, taint) for t in ask.tolerations) for taint in blocking):
            return TAINT
        return NODE if usage.node_selection.node in self._refusing else WOULD_DO

    def _all(self, expressions: Sequence[str]) -> Column:
        """Return 1 for the devices that all expressions select."""
        found = [1] * len(self._moment.devices)
        for each in expressions:
            found = list(map(min, found, self._selected(each)))
        return found

    def _selected(self, expression: str) -> Column:
        found = self._matching.get(expression)
        if found is None:
            found = self._matching[expression] = _selected(self._moment, expression, self._compiler)
        return found


def _selected(moment: ShownMoment, expression: str, compiler: DeviceCompiler) -> Column:
    """Return 1 for the devices for which an expression is true; 0 for all if it is invalid."""
    compiled = compiler.compile(expression)
    if compiled.program is None:
        return moment.column(())
    results = ExpressionEvaluator(compiled).results(moment.published)
    return moment.column(
        (each.devices, 1) for each in results if each.outcome is MatchOutcome.MATCH
    )
