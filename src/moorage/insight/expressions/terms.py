"""The terms of selectors, and which of them are mistakes.

All terms of all selectors must be true. If all but one are true for some devices, and that one is
for none of these, it is the mistake. If several are, the first that is true for no device at all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

from moorage.cel.lang import ast
from moorage.cel.lang.interpretable import Failure
from moorage.insight.expressions.candidates import Devices
from moorage.insight.expressions.contradictions import contradictions
from moorage.insight.expressions.evaluation import ExpressionEvaluator
from moorage.insight.expressions.explanation import Atom, atoms
from moorage.insight.expressions.mistake import Mistake, MistakeKind, Option, RepairKind
from moorage.insight.expressions.questions import Questions
from moorage.insight.expressions.syntax import reads_of, terms
from moorage.insight.messages import fitting


class _Term(NamedTuple):
    """A term of a selector: all terms of all selectors must be true."""

    selector: int
    node: ast.Expr
    questions: Questions

    def atoms(self) -> list[Atom]:
        """Return the questions of the term."""
        return list(atoms(self.node))


class Terms:
    """The terms of all selectors, and on which rows of devices each is true or fails."""

    def __init__(self, evaluators: Sequence[ExpressionEvaluator], devices: Devices) -> None:
        self._evaluators = evaluators
        self._devices = devices
        reads = frozenset(read for each in self._evaluators for read in reads_of(each.root))
        self._rows = devices.concerned(reads)
        self._terms = [
            _Term(number, node, questions)
            for number, each in enumerate(self._evaluators)
            for questions in [Questions(each.parts, self._rows, self._devices)]
            for node in _conjuncts(each.root)
        ]

    @cached_property
    def _values(self) -> list[list[object]]:
        return [
            [term.questions.parts.value(term.node, row.variables) for row in self._rows]
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
        return [self._droppable(of_selector(each, term.selector), term) for each in found]

    def _contradictions(self) -> list[Mistake]:
        return [
            of_selector(each, number)
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
                    yield from (of_selector(each, term.selector) for each in found)


def _conjuncts(node: ast.Expr) -> list[ast.Expr]:
    if isinstance(node, ast.Call) and node.function == "_&&_":
        return list(terms(node))
    return [node]


def of_selector(mistake: Mistake, number: int) -> Mistake:
    """Return a mistake as that of one of several selectors."""
    return mistake._replace(selector=number)
