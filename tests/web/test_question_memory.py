"""A question leaves nothing behind: what it made is gone with its answer, without the collector."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

import pytest

from moorage.insight.plan.planner import plan
from moorage.web.asking import Asking
from moorage.web.errors import PageError
from moorage.web.questions.cel import cel_answer
from moorage.web.questions.details import device_answer, object_answer
from moorage.web.questions.explain import explain_answer
from moorage.web.questions.moment import ShownMoment
from moorage.web.questions.what_if import fix_answer, what_if_answer
from tests.web.fleets import GPU, waiting
from tests.web.test_questions import CLUSTER, moment_of

DEAR = "device.attributes['gpu.example.com'].all(a, " * 3 + "a != 'x'" + ")" * 3
QUESTIONS: dict[str, Callable[[ShownMoment], Any]] = {
    "machines": lambda moment: what_if_answer(moment, ["add-profile dgx-h100-mig=2"]),
    "changes": lambda moment: what_if_answer(moment, ["delete-claim team/busy", "drain n2"]),
    "taint": lambda moment: what_if_answer(moment, [f"taint-device {GPU}/n1/gpu-1=a:NoExecute"]),
    "removed": lambda moment: what_if_answer(moment, ["remove-node n1"]),
    "refused": lambda moment: what_if_answer(moment, ["drain nowhere"]),
    "unreadable": lambda moment: what_if_answer(moment, ["add {"]),
    "fix": lambda moment: fix_answer(moment, "team", "big", 1),
    "explain": lambda moment: explain_answer(moment, "team", "big"),
    "no pod": lambda moment: explain_answer(moment, "team", "none"),
    "cel": lambda moment: cel_answer(moment, 'device.driver == "gpu.exampel.com"'),
    "cel, dear": lambda moment: cel_answer(moment, DEAR),
    "cel, invalid": lambda moment: cel_answer(moment, "device."),
    "device": lambda moment: device_answer(moment, GPU, "n1", "gpu-0"),
    "object": lambda moment: object_answer(moment, "Pod", "team", "big"),
    "plan": lambda moment: plan(moment.snapshot, moment.context).cluster,
}


@contextmanager
def without_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_question_leaves_nothing_to_the_collector(question: str) -> None:
    def ask() -> None:
        with suppress(PageError):
            QUESTIONS[question](moment_of(*CLUSTER, *waiting("also", count=7)))

    ask()  # what is made once stays
    with without_collector():
        ask()
        left = gc.collect()
    assert left == 0


@pytest.mark.parametrize("deadline_s", [60.0, 0.0])
@pytest.mark.parametrize("question", ["changes", "refused", "no pod"])
def test_neither_do_answers_errors_and_questions_that_are_given_up(
    question: str, deadline_s: float
) -> None:
    async def run() -> None:
        asking = Asking(deadline_s=deadline_s)
        moment = moment_of(*CLUSTER)

        async def ask() -> None:
            with suppress(PageError):
                await asking.answer("ann", partial(QUESTIONS[question], moment))
            while asking.busy:
                await asyncio.sleep(0)
            await asyncio.sleep(0)

        await ask()
        with without_collector():
            await ask()
            left = gc.collect()
        asking.close()
        assert left == 0

    asyncio.run(run())
