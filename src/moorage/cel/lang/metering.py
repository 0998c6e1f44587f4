"""The meter of a caller's evaluations: whether they may go on, and which expressions took longest.

Evaluations are pure, so one that was ended can be tried again. Two questions may end them:

    # interrupt: asked within an evaluation, each time its cost has grown by CHECK_EVERY_COST
    # admit: asked before an evaluation, with its estimated cost; for callers that take turns

Costs are counted anyway, in generated code as in plans, so between two checks asking is free.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

CHECK_EVERY_COST = 10_000  # about a millisecond in generated code, ten in a plan
EXPRESSIONS_MAX = 256

Interrupt = Callable[[], str | None]  # a text ends the evaluation
Admit = Callable[[int], str | None]
More = Callable[[int], int]  # takes a cost above the limit; returns the next limit, or raises


class Interrupted(Exception):  # noqa: N818 - it is not an error of the expression
    """The caller ended an evaluation; there is no answer."""


class NotAdmitted(Interrupted):
    """The caller did not admit an evaluation; it may later."""


class CostExceeded(Exception):  # noqa: N818 - a signal to run the plan, which words the error
    """Generated code exceeded the cost limit."""


@dataclass(slots=True)
class ExpressionWork:
    """How much work an expression was."""

    evaluations: int = 0
    cost: int = 0  # of evaluations whose cost was looked at: those of expensive expressions
    cost_most: int = 0
    seconds: float = 0.0  # only counted with a clock

    @property
    def rank(self) -> tuple[float, int, int]:
        """The sort key: the slowest has the highest."""
        return self.seconds, self.cost, self.evaluations


@dataclass(slots=True)
class _Interrupts:
    """The questions that may end evaluations; generated code asks them without the meter."""

    asked: tuple[Interrupt, ...] = ()

    def check(self) -> None:
        for interrupt in self.asked:
            cause = interrupt()
            if cause is not None:
                raise Interrupted(cause)


class Meter:
    """Counts evaluations, and asks whether they may go on."""

    def __init__(self) -> None:
        self.clock: Callable[[], float] | None = None
        self.evaluations = 0
        self.seconds = 0.0  # of evaluating and compiling
        self._interrupts = _Interrupts()
        self._admits: tuple[Admit, ...] = ()
        self._works: dict[str, ExpressionWork] = {}
        self._checkpoints: tuple[int, tuple[int, More]] | None = None  # of the last limit

    @contextmanager
    def bounded(
        self, interrupt: Interrupt | None = None, admit: Admit | None = None
    ) -> Iterator[None]:
        """Ask these questions too, while the context lasts."""
        interrupts, before = self._interrupts, (self._interrupts.asked, self._admits)
        if interrupt is not None:
            interrupts.asked = (*interrupts.asked, interrupt)
        if admit is not None:
            self._admits = (*self._admits, admit)
        try:
            yield
        finally:
            interrupts.asked, self._admits = before

    def check(self) -> None:
        """Raise Interrupted if evaluations must end."""
        self._interrupts.check()

    def admit(self, cost: int) -> None:
        """Raise NotAdmitted if evaluations of this estimated cost must not begin."""
        self._interrupts.check()
        for admit in self._admits:
            cause = admit(cost)
            if cause is not None:
                raise NotAdmitted(cause)

    def checkpoints(self, limit: int) -> tuple[int, More]:
        """Return the first limit of generated code, and the function that returns the next."""
        if self._checkpoints is not None and self._checkpoints[0] == limit:
            return self._checkpoints[1]
        check = self._interrupts.check  # This meter keeps `more`, so that must not keep the meter.

        def more(cost: int) -> int:
            if cost > limit:
                raise CostExceeded
            check()
            return min(cost + CHECK_EVERY_COST, limit)

        found = min(CHECK_EVERY_COST, limit), more
        self._checkpoints = (limit, found)
        return found

    # --- which expressions were slow ------------------------------------------------------------

    def record(
        self, expression: str, evaluations: int, start_s: float, costs: tuple[int, ...] = ()
    ) -> None:
        """Count evaluations of an expression that began at a time of the clock, and ended now."""
        self.evaluations += evaluations
        work = self._works.get(expression)
        if work is None:
            if len(self._works) >= EXPRESSIONS_MAX:
                self._forget_half()
            work = self._works[expression] = ExpressionWork()
        work.evaluations += evaluations
        seconds = self.now_s() - start_s
        work.seconds += seconds
        self.seconds += seconds
        if costs:
            work.cost += sum(costs)
            work.cost_most = max(work.cost_most, *costs)

    def now_s(self) -> float:
        """Return the clock's time; without a clock it stands still."""
        return 0.0 if self.clock is None else self.clock()

    def work(self, expression: str) -> ExpressionWork:
        """Return how much work an expression was so far."""
        return self._works.get(expression, ExpressionWork())

    def slowest(self, count: int) -> list[tuple[str, ExpressionWork]]:
        """Return the expressions that took longest, the slowest first."""
        ranked = sorted(self._works.items(), key=lambda each: each[1].rank, reverse=True)
        return ranked[:count]

    def _forget_half(self) -> None:
        """Forget the quicker half of the expressions."""
        self._works = dict(self.slowest(EXPRESSIONS_MAX // 2))
