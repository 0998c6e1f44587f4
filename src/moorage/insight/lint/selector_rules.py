"""Rules about expressions, put to devices.

Expressions are evaluated for the devices that get as far as they do; their results are facts, not
guesses. What is wrong with them is said in the words of `moor explain` and `moor cel`, and every
remedy was run: with it the expression matches devices.
Where some device cannot be read by any expression, no rule says that something is true for none.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from moorage.api.resource.v1 import DeviceClass
from moorage.insight.expressions.derived import derived_mistakes
from moorage.insight.expressions.evaluation import ExpressionEvaluator
from moorage.insight.expressions.mistake import Mistake, MistakeKind, RepairKind
from moorage.insight.expressions.repairs import SelectorDiagnosis, diagnose, doubtful_questions
from moorage.insight.lint.advice import repaired
from moorage.insight.lint.context import ExpressionStage
from moorage.insight.lint.rule import SELECTING, Case, E, Needs, Oddity, RuleTable, W, devices_of
from moorage.insight.lint.subjects import selections_of
from moorage.insight.messages import counted

RULES = RuleTable(SELECTING)
SURE: Final = RepairKind.UNIT
_REMEDY: Final = "`moor cel` tells for each device which part says no"
_REMEDIES: Final = {
    MistakeKind.DOMAIN: "read a domain that devices have",
    MistakeKind.FIELD: "read an attribute or capacity that devices have",
    MistakeKind.ERROR: (
        "keep such devices out by a condition before it: `&&` does not look further once it is "
        "false"
    ),
    MistakeKind.VALUE: "compare with a value that devices have",
}


class _StageMistake(NamedTuple):
    """A mistake, and the expression that has it."""

    stage: ExpressionStage
    mistake: Mistake

    @property
    def oddity(self) -> Oddity:
        """The mistake as rules report it."""
        return Oddity(
            self.stage.expression.place,
            self.mistake.cause,
            self.mistake.remedy or _REMEDIES.get(self.mistake.kind, _REMEDY),
        )


def _stage_mistakes(case: Case) -> Iterator[_StageMistake]:
    """Yield the mistakes in all expressions of an object."""
    for selection in selections_of(case.subject):
        stages = [stage for stage in case.stages if stage.selection.place == selection.place]
        selectors = [stage for stage in stages if stage.expression.purpose == "selector"]
        yield from _in_selectors(case, selectors)
        for stage in stages:
            if stage.expression.purpose == "derived" and _compiles(stage):
                yield from (_StageMistake(stage, mistake) for mistake in _in_derived(case, stage))


def _in_derived(case: Case, stage: ExpressionStage) -> Iterator[Mistake]:
    """Yield what is wrong with a derived attribute, with the expression that was run."""
    devices = devices_of(case, stage)
    found = list(derived_mistakes(stage.expression.text, case.context.compiler, devices))
    for mistake in found or _derived_error(stage):
        is_name = mistake.kind in (MistakeKind.DOMAIN, MistakeKind.FIELD)
        remedy = mistake.remedy if is_name else repaired(stage, case.context)
        yield mistake._replace(remedy=remedy)


def _derived_error(stage: ExpressionStage) -> Iterator[Mistake]:
    failing = [
        (result.error, device)
        for result, devices in stage.looked_at()
        if result.error
        for device in devices
    ]
    if failing:
        error, device = failing[0]
        devices = counted(len(failing), "device")
        cause = f"it gives an error on {devices} such as {device}, which ends the search: {error}"
        yield Mistake(MistakeKind.ERROR, cause, ())


def _in_selectors(case: Case, stages: list[ExpressionStage]) -> Iterator[_StageMistake]:
    if not stages or not all(map(_compiles, stages)) or not stages[0].candidates:
        return
    compiler, devices = case.context.compiler, devices_of(case, stages[0])
    found = diagnose([stage.expression.text for stage in stages], compiler, devices)
    reported = _mistakes(found) if found is not None else []
    for mistake in reported:
        yield _StageMistake(stages[mistake.selector], mistake)
    if any(each.kind is not MistakeKind.GUARD for each in reported):
        return
    for stage in stages:
        for mistake in doubtful_questions(stage.expression.text, compiler, devices_of(case, stage)):
            yield _StageMistake(stage, mistake)


def _mistakes(found: SelectorDiagnosis) -> list[Mistake]:
    """Return the mistakes; a step that only lets another one compile comes with that one."""
    located: list[Mistake] = []
    for each in found.mistakes:
        last = located[-1] if located else None
        if each.kind is MistakeKind.SYNTAX and last is not None and last.remedy:
            located[-1] = last._replace(remedy=f"{last.remedy}, and {each.remedy}")
        else:
            located.append(each)
    return located


def _compiles(stage: ExpressionStage) -> bool:
    return isinstance(stage.evaluator, ExpressionEvaluator)


def _all_mistakes(case: Case) -> tuple[_StageMistake, ...]:
    return case.once(_stage_mistakes)


# --- names ------------------------------------------------------------------------------


@RULES.add(W, Needs.DEVICES, is_shared=True)
def unknown_domain(case: Case) -> Iterator[Oddity]:
    """A domain in which no device has attributes or capacity."""
    yield from _of_kind(case, MistakeKind.DOMAIN)


@RULES.add(W, Needs.DEVICES, is_shared=True)
def unknown_attribute(case: Case) -> Iterator[Oddity]:
    """An attribute or capacity that no device has."""
    yield from _of_kind(case, MistakeKind.FIELD)


def _of_kind(case: Case, kind: MistakeKind) -> Iterator[Oddity]:
    if not case.context.unreadable:
        yield from (
            located.oddity for located in _all_mistakes(case) if located.mistake.kind is kind
        )


# --- errors -----------------------------------------------------------------------------


@RULES.add(E, Needs.DEVICES, is_shared=True)
def missing_guard(case: Case) -> Iterator[Oddity]:
    """An attribute that only some devices have, read without has() or .?."""
    for located in _all_mistakes(case):
        if located.mistake.kind is MistakeKind.GUARD:
            yield located.oddity


@RULES.add(E, Needs.DEVICES, is_shared=True)
def run_time_error(case: Case) -> Iterator[Oddity]:
    """An expression that has no value for some device."""
    for located in _all_mistakes(case):
        if located.mistake.kind is MistakeKind.ERROR and _has_errors(located.stage):
            yield located.oddity


def _has_errors(stage: ExpressionStage) -> bool:
    return any(result.error for result, _ in stage.looked_at())


# --- results ----------------------------------------------------------------------------


@RULES.add(W, Needs.DEVICES, is_shared=True)
def never_true(case: Case) -> Iterator[Oddity]:
    """A comparison that is true for no device."""
    for located in _all_mistakes(case) if not case.context.unreadable else ():
        kind = located.mistake.kind
        is_value = kind is MistakeKind.VALUE or (
            kind is MistakeKind.ERROR and not _has_errors(located.stage)
        )
        if is_value and (not _is_of_class(case) or located.mistake.repair <= SURE):
            yield located.oddity


def _is_of_class(case: Case) -> bool:
    """Whether the object is a class, which may be for devices that are still to come."""
    return isinstance(case.subject.value, DeviceClass)


@RULES.add(W, Needs.DEVICES, is_shared=True)
def matches_nothing(case: Case) -> Iterator[Oddity]:
    """Selectors that no device passes together."""
    if _is_of_class(case) or case.context.unreadable:
        return
    for located in _all_mistakes(case):
        if located.mistake.kind is MistakeKind.TOGETHER:
            yield located.oddity
