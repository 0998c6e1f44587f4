"""What is wrong with selectors that too few devices pass, and the selectors that were meant.

The terms of all selectors are put to the devices that come as far as they do. If one of them alone
leaves none, that is where the mistake is; if each leaves some, they exclude each other. Every
option for the mistake is a step; a mistake may hide behind another, so steps follow each other:

    productname == "h100"  ─►  productName == "h100"  ─►  productName == "NVIDIA H100 80GB HBM3"
        NAME, matches none           VALUE, matches 8: a repair of two steps

The surest steps are tried first. Nothing is returned that was not run: a repair compiles, gives no
error on any device, and matches some.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from heapq import heappop, heappush
from typing import Final, NamedTuple

from moorage.cel.device import COST_LIMIT, DeviceCompiler
from moorage.insight.expressions.candidates import Devices, Row
from moorage.insight.expressions.evaluation import (
    TOO_COMPLEX,
    ExpressionEvaluator,
    InvalidExpression,
    evaluator_of,
)
from moorage.insight.expressions.mistake import Mistake, MistakeKind, Option, RepairKind
from moorage.insight.expressions.respelling import misspelt
from moorage.insight.expressions.syntax import DeviceField, reads_of
from moorage.insight.expressions.terms import Terms, of_selector
from moorage.insight.messages import fitting

STEPS_MAX: Final = 4  # of more mistakes nobody knows what was meant
TRIED_MAX: Final = 48
EVALUATIONS_MAX: Final = 100_000
SPENT_MAX: Final = 2 * COST_LIMIT
REPAIRS_MAX: Final = 6
Expressions = tuple[str, ...]


class ExpressionRepair(NamedTuple):
    """Selectors without their mistakes."""

    kind: RepairKind  # of its least sure step
    cause: str
    text: str  # what to do
    expressions: Expressions
    matching: int  # how many candidates
    mistakes: tuple[Mistake, ...]

    def changed(self, expressions: Sequence[str]) -> dict[int, str]:
        """Return the selectors that are new, by number."""
        pairs = enumerate(zip(expressions, self.expressions, strict=True))
        return {number: new for number, (old, new) in pairs if new != old}


class SelectorDiagnosis(NamedTuple):
    """Why too few devices pass selectors, and repairs that were run, the surest first."""

    cause: str
    mistakes: tuple[Mistake, ...]
    repairs: tuple[ExpressionRepair, ...]


def diagnose(
    expressions: Sequence[str], compiler: DeviceCompiler, devices: Devices, *, wanted: int = 1
) -> SelectorDiagnosis | None:
    """Return what is wrong with selectors; None if enough devices pass without errors."""
    search = _Search(compiler, devices, wanted)
    given = tuple(expressions)
    result = search.result(given)
    if result.is_good(1 if result.matching else wanted) and result.matching >= wanted:
        return None
    if search.spent > SPENT_MAX:
        return SelectorDiagnosis("", (), ())
    found = search.mistakes(given)
    repairs = tuple(search.repairs(given))
    if repairs and repairs[0].kind < RepairKind.DROPPED:
        best = repairs[0]
        return SelectorDiagnosis(best.cause, best.mistakes, repairs)
    if not found:
        return SelectorDiagnosis("", (), repairs)
    return SelectorDiagnosis(found[0].cause, tuple(found), repairs)


def doubtful_questions(
    expression: str, compiler: DeviceCompiler, devices: Devices
) -> list[Mistake]:
    """Return the questions that hold for no candidate, though the expression may match some.

    A remedy is given where the expression matches more devices with it.
    """
    search = _Search(compiler, devices, 1)
    evaluator = search.evaluator(expression)
    if isinstance(evaluator, InvalidExpression):
        return []
    before = search.result((expression,))
    if search.spent > SPENT_MAX:
        return []
    found: list[Mistake] = []
    for mistake in search.terms((expression,)).doubtful():
        remedy = next(
            (
                option
                for option in mistake.options
                if search.improves(before, (evaluator.parts.rewritten(option.instead),))
            ),
            None,
        )
        if remedy is not None:
            cause = remedy.cause or mistake.cause
            mistake = mistake._replace(cause=cause, remedy=remedy.text, repair=remedy.kind)
        found.append(mistake)
    return found


class _Result(NamedTuple):
    """How many candidates selectors match, and on how many they fail."""

    compiles: bool
    matching: int = 0
    failing: int = 0

    def is_good(self, wanted: int) -> bool:
        return self.compiles and not self.failing and self.matching >= wanted


class _Step(NamedTuple):
    mistake: Mistake
    option: Option


class _Search:
    def __init__(self, compiler: DeviceCompiler, devices: Devices, wanted: int) -> None:
        self._compiler = compiler
        self._devices = devices
        self._wanted = wanted
        self._evaluators: dict[str, ExpressionEvaluator | InvalidExpression] = {}
        self._results: dict[Expressions, _Result] = {}
        self._mistakes: dict[Expressions, list[Mistake]] = {}
        self.evaluations = 0  # of selectors on rows
        self.spent = 0  # what they cost

    def evaluator(self, text: str) -> ExpressionEvaluator | InvalidExpression:
        """Return the evaluator of a selector, or why it is none."""
        found = self._evaluators.get(text)
        if found is None:
            found = evaluator_of(text, self._compiler)
            if isinstance(found, ExpressionEvaluator) and found.is_too_complex:
                found = InvalidExpression(TOO_COMPLEX)
            elif isinstance(found, ExpressionEvaluator) and found.caveat:
                found = InvalidExpression(found.caveat)
            self._evaluators[text] = found
        return found

    # --- results ------------------------------------------------------------------------------

    def result(self, expressions: Expressions) -> _Result:
        """Return what selectors match, evaluated one after the other."""
        if expressions not in self._results:
            self._results[expressions] = self._result(expressions)
        return self._results[expressions]

    def _result(self, expressions: Expressions) -> _Result:
        reads: set[DeviceField] = set()
        found: list[ExpressionEvaluator] = []
        for text in expressions:
            evaluator = self.evaluator(text)
            if isinstance(evaluator, InvalidExpression):
                return _Result(compiles=False)
            found.append(evaluator)
            reads |= reads_of(evaluator.root)
        concerned = {row.first.index for row in self._devices.concerned(reads)}
        rows = self._devices.rows(reads)
        self.evaluations += len(rows)
        matching = failing = 0
        for row in rows:
            if self.spent > SPENT_MAX:
                break
            outcome = self._outcome(found, row)
            matching += row.size if outcome is True else 0
            failing += row.size if outcome is None and row.first.index in concerned else 0
        return _Result(compiles=True, matching=matching, failing=failing)

    def _outcome(self, evaluators: Sequence[ExpressionEvaluator], row: Row) -> bool | None:
        """Return whether devices pass selectors, one after the other; None for an error."""
        for evaluator in evaluators:
            value, cost, error = evaluator.compiled.evaluate_variables(row.variables)
            self.spent += cost or 0
            if error is not None or value is not True:
                return None if error is not None else False
        return True

    def improves(self, before: _Result, expressions: Expressions) -> bool:
        """Whether selectors match more candidates than before, and fail on no more."""
        result = self.result(expressions)
        return (
            result.compiles
            and result.matching > before.matching
            and result.failing <= before.failing
        )

    # --- repairs ------------------------------------------------------------------------------

    def repairs(self, given: Expressions) -> Iterator[ExpressionRepair]:
        """Yield repairs, the surest first; what gives something up only if there is no other."""
        waiting: list[tuple[tuple[int, ...], int, Expressions, tuple[_Step, ...]]] = []
        heappush(waiting, ((0,), 0, given, ()))
        seen, found, tried = {given}, 0, 0
        enough: list[ExpressionRepair] = []
        while waiting and found < REPAIRS_MAX:
            if tried == TRIED_MAX or self.evaluations > EVALUATIONS_MAX or self.spent > SPENT_MAX:
                break
            _, _, expressions, steps = heappop(waiting)
            tried += 1
            result = self.result(expressions)
            if steps and result.is_good(1):
                if steps[-1].option.kind is RepairKind.DROPPED and found:
                    continue
                found += 1
                enough.append(_repair(expressions, steps, result.matching))
                continue
            if len(steps) == STEPS_MAX or (steps and steps[-1].option.kind is RepairKind.DROPPED):
                continue
            for new, step in self._next(expressions):
                if new not in seen:
                    seen.add(new)
                    path = (*steps, step)
                    kinds = sorted((each.option.kind for each in path), reverse=True)
                    heappush(waiting, ((*kinds,), len(seen), new, path))
        yield from sorted(enough, key=lambda each: each.matching < self._wanted)

    def _next(self, expressions: Expressions) -> Iterator[tuple[Expressions, _Step]]:
        for mistake in self.mistakes(expressions):
            for option in mistake.options:
                number = mistake.selector
                text = option.whole or self._rewritten(expressions[number], option)
                if text:
                    new = (*expressions[:number], text, *expressions[number + 1 :])
                    yield new, _Step(mistake, option)

    def _rewritten(self, text: str, option: Option) -> str:
        evaluator = self.evaluator(text)
        if isinstance(evaluator, InvalidExpression):
            return ""
        return evaluator.parts.rewritten(option.instead)

    # --- mistakes -----------------------------------------------------------------------------

    def mistakes(self, expressions: Expressions) -> list[Mistake]:
        """Return the mistakes of which one has to be repaired next."""
        if expressions not in self._mistakes:
            self._mistakes[expressions] = self._found(expressions)
        return self._mistakes[expressions]

    def _found(self, expressions: Expressions) -> list[Mistake]:
        for number, text in enumerate(expressions):
            evaluator = self.evaluator(text)
            if isinstance(evaluator, InvalidExpression):
                found = misspelt(text, evaluator.error, self._compiler, self._devices)
                return [of_selector(found, number)]
        return self.terms(expressions).mistakes()

    def terms(self, expressions: Expressions) -> Terms:
        """Return the terms of selectors that compile."""
        evaluators = [self.evaluator(text) for text in expressions]
        compiled = [each for each in evaluators if isinstance(each, ExpressionEvaluator)]
        return Terms(compiled, self._devices)


def _repair(expressions: Expressions, steps: tuple[_Step, ...], matching: int) -> ExpressionRepair:
    mistakes = [
        each.mistake._replace(
            cause=each.option.cause or each.mistake.cause,
            remedy=each.option.text,
            repair=each.option.kind,
        )
        for each in steps
    ]
    syntax = [each for each in mistakes if each.kind is MistakeKind.SYNTAX]
    told = [each for each in mistakes if each not in syntax[1:]]
    causes = list(dict.fromkeys(each.cause for each in told))
    cause = fitting(*("; ".join(causes[:n]) for n in range(len(causes), 0, -1)))
    kind = max(step.option.kind for step in steps)
    text = ", and ".join(dict.fromkeys(step.option.text for step in steps))
    return ExpressionRepair(kind, cause, text, expressions, matching, tuple(mistakes))
