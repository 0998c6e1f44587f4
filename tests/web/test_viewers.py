"""What one viewer of the page asks neither stops others nor shows what is not theirs to see."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from mooring.api.meta import ObjectMeta
from mooring.api.resource.v1 import (
    CELDeviceSelector,
    DeviceClass,
    DeviceClassSpec,
    DeviceSelector,
)
from mooring.web.asking import Asking
from mooring.web.errors import DeadlineError, UnusableError
from mooring.web.questions.cel import cel_answer
from mooring.web.questions.explain import explain_answer
from mooring.web.questions.moment import ShownMoment
from mooring.web.questions.paint import painted
from mooring.web.questions.what_if import what_if_answer
from mooring.web.rights import ALL
from mooring.web.view import Views
from tests.insight.topologies import device, node, slice_of
from tests.web.fleets import SMALL, feed_of, machine, waiting


def until(loop: asyncio.AbstractEventLoop, event: asyncio.Event) -> Callable[[], Any]:
    """Return a question whose thread is busy until an event."""
    return lambda: asyncio.run_coroutine_threadsafe(event.wait(), loop).result(60)


def test_a_viewer_with_long_questions_leaves_a_thread_to_others() -> None:
    async def run() -> None:
        asking, held = Asking(deadline_s=60.0, threads=2), asyncio.Event()
        loop = asyncio.get_running_loop()
        long = [
            asyncio.create_task(asking.answer("ann", until(loop, held))) for _ in range(4)
        ]
        await asyncio.sleep(0)
        async with asyncio.timeout(60):
            assert await asking.answer("bob", lambda: 3) == 3
        assert not any(each.done() for each in long)
        held.set()
        await asyncio.gather(*long)
        asking.close()

    asyncio.run(run())


def test_a_question_whose_turn_does_not_come_is_never_asked() -> None:
    async def run() -> None:
        asking, held = Asking(deadline_s=0.01, threads=1), asyncio.Event()
        loop, asked = asyncio.get_running_loop(), []
        with pytest.raises(DeadlineError):
            await asking.answer("ann", until(loop, held))
        with pytest.raises(DeadlineError):
            await asking.answer("bob", lambda: asked.append("bob"))
        held.set()
        async with asyncio.timeout(60):
            while asking.busy:
                await asyncio.sleep(0)
        assert not asked
        asking.close()

    asyncio.run(run())


# --- expressions that are much work -----------------------------------------------------------

DIGITS = "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]"
MUCH = f"{DIGITS}.all(a, {DIGITS}.all(b, {DIGITS}.all(c, {DIGITS}.all(d, {{}} || a + b > 0))))"


class Interrupts:
    """Ends evaluations when it was asked so often."""

    def __init__(self, most: int) -> None:
        self.asked, self._most = 0, most

    def __call__(self) -> str | None:
        self.asked += 1
        return "enough" if self.asked > self._most else None


def moment_of(objects: list[Any]) -> ShownMoment:
    async def run() -> ShownMoment:
        views = Views(feed_of(objects))
        moment = await (await views.get(ALL)).moment()
        await views.close()
        return moment

    return asyncio.run(run())


def test_an_expression_that_is_too_much_for_all_devices_together_is_ended() -> None:
    devices = [device(f"gpu-{n}", {"serial": f"s{n}"}) for n in range(60)]
    moment = moment_of([node("n1"), slice_of(*devices, pool="n1", name="slice-n1")])
    read = 'device.attributes["gpu.example.com"].serial'
    for expression in (
        MUCH.format(f'{read} == "x"'),  # much for each device
        f'{read} == "x"',  # little, for many
        f'{read}.matches("x") && {read} == "x"',
        f"{MUCH.format(f'{read} == 3')} && {read} == 3",  # much to explain
    ):
        interrupts = Interrupts(20)
        with pytest.raises(UnusableError, match="too much work for all devices: enough"):
            cel_answer(moment, expression, interrupt=interrupts)
        assert interrupts.asked == 21


def test_a_pod_with_expressions_that_are_too_much_is_explained_without_paint() -> None:
    gpus = DeviceClass(
        metadata=ObjectMeta(name="gpu"),
        spec=DeviceClassSpec(
            selectors=(DeviceSelector(cel=CELDeviceSelector(expression=MUCH.format("false"))),)
        ),
    )
    moment = moment_of([gpus, *machine("n1"), *waiting("big")])
    (pod,) = moment.snapshot.pods
    assert painted(moment, pod, interrupt=Interrupts(1)) is None
    assert painted(moment, pod, interrupt=Interrupts(1_000_000)) is not None


# --- questions that are large or long ---------------------------------------------------------


def test_what_if_adds_a_bounded_number_of_machines() -> None:
    moment = moment_of(SMALL)
    for changes in (
        ["add-profile dgx-h100=1001"],
        ["add-profile dgx-h100=10000"] * 50,
        ["add-profile dgx-h100=1", "add-profile gb200-nvl72=100"],
    ):
        with pytest.raises(UnusableError, match=r"at most (1,000|999) can be added here"):
            what_if_answer(moment, changes)


def test_a_pod_is_explained_while_another_question_has_the_kept_cluster() -> None:
    moment = moment_of(SMALL)
    expected = explain_answer(moment, "team", "big")
    with moment.alone(), ThreadPoolExecutor(1) as threads:
        assert threads.submit(explain_answer, moment, "team", "big").result(60) == expected
