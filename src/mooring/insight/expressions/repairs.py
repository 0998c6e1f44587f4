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
from functools import cached_property
from heapq import heappop, heappush
from typing import Final, NamedTuple

from mooring.cel.device import DeviceCompiler
from mooring.cel.lang import ast
from mooring.cel.lang.interpretable import Failure
from mooring.insight.expressions.contradictions import contradictions
from mooring.insight.expressions.evaluation import (
    ExpressionEvaluator,
    InvalidExpression,
    MatchOutcome,
    evaluator_of,
)
from mooring.insight.expressions.explanation import Atom, atoms
from mooring.insight.expressions.mistake import (
    Mistake,
    MistakeKind,
    Option,
    RepairKind,
    fitting,
)
from mooring.insight.expressions.published_devices import DeviceGroup, PublishedDevice
from mooring.insight.expressions.questions import Devices, Questions
from mooring.insight.expressions.respelling import misspelt
from mooring.insight.expressions.syntax import DeviceField, reads_of, terms

STEPS_MAX: Final = 5
TRIED_MAX: Final = 48
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
    found: list[Mistake] = []
    for mistake in _Terms(search, (expression,)).doubtful():
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

    def evaluator(self, text: str) -> ExpressionEvaluator | InvalidExpression:
        """Return the evaluator of a selector, or why it is none."""
        found = self._evaluators.get(text)
        if found is None:
            found = evaluator_of(text, self._compiler)
            if isinstance(found, ExpressionEvaluator) and found.caveat:
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
        concerned = {each.index for each in self._devices.concerned(reads)}
        devices, failing = list(self._devices.candidates), 0
        for evaluator in found:
            passing: list[PublishedDevice] = []
            for result in evaluator.results(self._devices.fleet, devices):
                if result.outcome is MatchOutcome.MATCH:
                    passing += result.devices
                elif result.outcome is not MatchOutcome.NO_MATCH:
                    failing += sum(each.index in concerned for each in result.devices)
            devices = passing
        return _Result(compiles=True, matching=len(devices), failing=failing)

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
        while waiting and tried < TRIED_MAX and found < REPAIRS_MAX:
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
        for number, text in enumerate(expressions):
            evaluator = self.evaluator(text)
            if isinstance(evaluator, InvalidExpression):
                found = misspelt(text, evaluator.error, self._compiler, self._devices)
                return [_of_selector(found, number)]
        return _Terms(self, expressions).mistakes()

    @property
    def devices(self) -> Devices:
        """The devices."""
        return self._devices


def _of_selector(mistake: Mistake, number: int) -> Mistake:
    return mistake._replace(selector=number)


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


# --- terms of selectors -------------------------------------------------------------------------


class _Term(NamedTuple):
    """A term of a selector: all terms of all selectors must be true."""

    selector: int
    node: ast.Expr
    questions: Questions

    def atoms(self) -> list[Atom]:
        """Return the questions of the term."""
        return list(atoms(self.node))


class _Terms:
    """The terms of all selectors, and on which rows of devices each is true or fails."""

    def __init__(self, search: _Search, expressions: Expressions) -> None:
        self._devices = search.devices
        evaluators = [search.evaluator(text) for text in expressions]
        self._evaluators = [each for each in evaluators if isinstance(each, ExpressionEvaluator)]
        reads = frozenset(read for each in self._evaluators for read in reads_of(each.root))
        devices = self._devices.concerned(reads)
        rows = self._devices.fleet.groups(reads, devices)
        self._rows: list[DeviceGroup] = [row for row in rows if row.first.is_readable]
        self._terms = [
            _Term(number, node, questions)
            for number, each in enumerate(self._evaluators)
            for questions in [Questions(each.parts, self._rows, self._devices)]
            for node in _conjuncts(each.root)
        ]

    @cached_property
    def _values(self) -> list[list[object]]:
        return [
            [term.questions.parts.value(term.node, row.first.variables or {}) for row in self._rows]
            for term in self._terms
        ]

    def mistakes(self) -> list[Mistake]:
        """Return the mistakes of which one has to be repaired next."""
        if not self._rows:
            return []
        holding = [{n for n, value in enumerate(each) if value is True} for each in self._values]
        alone = [
            (term, others)
            for number, term in reversed(list(enumerate(self._terms)))
            if (others := self._without(number, holding)) and not others & holding[number]
        ]
        everything = set(range(len(self._rows)))
        found: list[Mistake] = []
        if not set.intersection(everything, *holding):
            found = self._contradictions()
            if not found:
                found = [each for term, rows in alone for each in self._of_term(term, sorted(rows))]
            if not found and not alone:
                found = self._of_several(holding, everything)
        if not found:
            found = list(self._failures())
        return found

    def doubtful(self) -> Iterator[Mistake]:
        """Yield what is wrong with questions that hold on no row but have a value on some."""
        rows = list(range(len(self._rows)))
        for term in self._terms:
            for atom in term.atoms():
                values = [term.questions.value(atom, atom.node, number) for number in rows]
                never = not any(value is atom.wants_yes for value in values)
                if never and atom.wants_yes and not all(isinstance(v, Failure) for v in values):
                    yield from term.questions.mistakes(atom, rows)
                elif never and atom.wants_yes:
                    found = term.questions.mistakes(atom, rows)
                    unknown = (MistakeKind.FIELD, MistakeKind.DOMAIN)
                    yield from (each for each in found if each.kind in unknown)

    def _without(self, number: int, holding: list[set[int]]) -> set[int]:
        """Return the rows on which all terms but one hold."""
        rest = [each for index, each in enumerate(holding) if index != number]
        return set.intersection(set(range(len(self._rows))), *rest)

    def _of_several(self, holding: list[set[int]], everything: set[int]) -> list[Mistake]:
        """Return the first of several mistakes: a term that is never true, or those that exclude
        each other."""
        for term, rows in zip(self._terms, holding, strict=True):
            if not rows:
                others = set.intersection(everything, *(each for each in holding if each))
                return self._of_term(term, sorted(others or everything))
        first = self._terms[0].selector
        names = [self._evaluators[first].parts.text(term.node) for term in self._terms[:2]]
        cause = f"no device passes the selectors together: {' and '.join(names)} exclude each other"
        short = "no device passes all selectors together, though each alone has some"
        return [Mistake(MistakeKind.TOGETHER, fitting(cause, short))]

    def _of_term(self, term: _Term, rows: list[int]) -> list[Mistake]:
        found: list[Mistake] = []
        for atom in term.atoms():
            if not any(term.questions.holds(atom, number) for number in rows):
                found += term.questions.mistakes(atom, rows)
                found += term.questions.guards(atom, rows)
        return [self._droppable(_of_selector(each, term.selector), term) for each in found]

    def _contradictions(self) -> list[Mistake]:
        return [
            _of_selector(each, number)
            for number, evaluator in enumerate(self._evaluators)
            for each in contradictions(evaluator.parts)
        ]

    def _droppable(self, mistake: Mistake, term: _Term) -> Mistake:
        """Return a mistake with the option to give up the question, if others are left."""
        parts = self._evaluators[term.selector].parts
        rest = [
            parts.text(each.node, tight=True)
            for each in self._terms
            if each.selector == term.selector and each.node is not term.node
        ]
        if not rest or mistake.kind in (MistakeKind.FIELD, MistakeKind.DOMAIN, MistakeKind.GUARD):
            return mistake
        said = f"give up {parts.text(term.node)}"
        option = Option(RepairKind.DROPPED, said, {}, " && ".join(rest))
        return mistake._replace(options=(*mistake.options, option))

    def _failures(self) -> Iterator[Mistake]:
        """Yield what is wrong with questions that have no value on some rows."""
        for term, values in zip(self._terms, self._values, strict=True):
            rows = [n for n, value in enumerate(values) if isinstance(value, Failure)]
            if not rows:
                continue
            everything = list(range(len(self._rows)))
            for atom in term.atoms():
                failing = [
                    n for n in rows if isinstance(term.questions.value(atom, atom.node, n), Failure)
                ]
                if failing:
                    found = [*term.questions.guards(atom, everything)]
                    found = found or [*term.questions.mistakes(atom, failing)]
                    found = found or [term.questions.error(atom, failing)]
                    yield from (_of_selector(each, term.selector) for each in found)


def _conjuncts(node: ast.Expr) -> list[ast.Expr]:
    if isinstance(node, ast.Call) and node.function == "_&&_":
        return list(terms(node))
    return [node]
