"""Reads and checks the questions in request bodies."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Final

import msgspec
from msgspec import Struct

from moorage.web.errors import BadQuestionError
from moorage.web.questions.cel import cel_answer
from moorage.web.questions.explain import explain_answer
from moorage.web.questions.moment import ShownMoment
from moorage.web.questions.what_if import fix_answer, what_if_answer

Question = Callable[[ShownMoment], Mapping[str, Any]]


class ExplainQuestion(Struct, frozen=True, forbid_unknown_fields=True):
    """Why does a pod wait?"""

    needs: ClassVar[tuple[str, ...]] = ()

    namespace: str
    name: str
    at: int | str = ""

    def __call__(self, moment: ShownMoment) -> Mapping[str, Any]:
        """Return the answer."""
        return explain_answer(moment, self.namespace, self.name)


class ChosenFix(Struct, frozen=True, forbid_unknown_fields=True):
    """A fix of a pending pod."""

    namespace: str
    name: str
    number: int


class WhatIfQuestion(Struct, frozen=True, forbid_unknown_fields=True):
    """What would changes do, or a fix?

    The answer is about nodes and devices. Who may not list them would get work of the server only.
    """

    needs: ClassVar[tuple[str, ...]] = ("Node", "ResourceSlice", "DeviceClass")

    changes: tuple[str, ...] = ()
    fix: ChosenFix | None = None
    at: int | str = ""

    def __call__(self, moment: ShownMoment) -> Mapping[str, Any]:
        """Return the answer."""
        if self.fix is None:
            return what_if_answer(moment, self.changes)
        if self.changes:
            raise BadQuestionError("Give changes or a fix, not both.")
        return fix_answer(moment, self.fix.namespace, self.fix.name, self.fix.number)


class CelQuestion(Struct, frozen=True, forbid_unknown_fields=True):
    """Which devices does an expression select?"""

    needs: ClassVar[tuple[str, ...]] = ()

    expression: str
    at: int | str = ""

    def __call__(self, moment: ShownMoment) -> Mapping[str, Any]:
        """Return the answer."""
        return cel_answer(moment, self.expression)


AnyQuestion = ExplainQuestion | WhatIfQuestion | CelQuestion
QUESTIONS: Final[dict[str, type[AnyQuestion]]] = {
    "explain": ExplainQuestion,
    "what-if": WhatIfQuestion,
    "cel": CelQuestion,
}


def read_question(name: str, body: Mapping[str, Any]) -> AnyQuestion:
    """Return the question that a body asks, or raise BadQuestionError."""
    try:
        return msgspec.convert(body, QUESTIONS[name])
    except msgspec.ValidationError as error:
        raise BadQuestionError(f"The body is not a valid question: {error}.") from None
