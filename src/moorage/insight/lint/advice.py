"""Advice about expressions: what it says was compiled and evaluated for the devices before.

A selector is put behind its guards, `has(x) && x > 3`. That is a bool: a derived attribute chooses
between its value and one that matches nothing, `has(x) ? x : []`. Advice that does not hold is not
given.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from moorage.api.gates import Gate
from moorage.insight.answer.devices.bridges import Surroundings, bridges_between
from moorage.insight.answer.devices.compared import (
    ComparedRequest,
    Values,
    derived_values,
    published_values,
)
from moorage.insight.explain.situation import RequestPath
from moorage.insight.expressions.derived_repairs import derived_repairs
from moorage.insight.expressions.evaluation import ExpressionEvaluator
from moorage.insight.lint.context import ExpressionStage, LintContext
from moorage.insight.lint.subjects import DeviceSelection

NOTHING_HELPS: Final = "write it so that it has a value on such devices; `moor cel` tries it"


def repaired(stage: ExpressionStage, context: LintContext) -> str:
    """Return how to write a derived attribute that fails on some candidates."""
    if not isinstance(stage.evaluator, ExpressionEvaluator):
        return NOTHING_HELPS
    devices = [context.devices.devices[index] for index in sorted(stage.candidates)]
    repairs = derived_repairs(stage.evaluator, devices, context.devices, context.compiler)
    first = next(repairs, None)
    return NOTHING_HELPS if first is None else f"write `{first.expression}`"


# --- requests of a constraint ---------------------------------------------------------------


def compared_requests(
    selections: Iterable[DeviceSelection], attribute: str, context: LintContext
) -> list[ComparedRequest]:
    """Return what a constraint would compare, on whichever nodes the devices are."""
    found = []
    names: dict[str, int] = {}
    for number, selection in enumerate(selections):
        request = names.setdefault(selection.reference.partition("/")[0], len(names))
        indices = sorted(context.selected(selection))
        devices = tuple(context.devices.devices[index] for index in indices)
        derived = dict(selection.derived).get(attribute)
        values: Values = published_values(devices, attribute)
        faults: dict[int, str] = {}
        if derived is not None:
            evaluator = context.evaluator(derived)
            if not isinstance(evaluator, ExpressionEvaluator):
                return []
            values, given = derived_values(devices, evaluator)
            faults = dict(given)
        text = None if derived is None else derived.text
        place = RequestPath(0, request, number)
        name = selection.reference
        found.append(ComparedRequest(place, name, 1, text, devices, (), values, faults))
    return found


def bridged(requests: list[ComparedRequest], attribute: str, context: LintContext) -> str | None:
    """Return the advice to write derived attributes with which requests could match."""
    around = Surroundings(
        context.devices,
        context.compiler,
        context.compiler.features.list_attributes,
        lambda request: request.fitting,
    )
    bridge = next(bridges_between(requests, attribute, around), None)
    if bridge is None:
        return None
    parts = (f"in request {p.request.name} as `{p.expression}`" for p in bridge.parts)
    gate = Gate.DRA_DERIVED_ATTRIBUTES
    first = (
        "" if context.objects.context.enabled(gate) else f"switch on {gate} in the cluster, and "
    )
    return f"{first}derive {attribute} {', '.join(parts)}"
