"""Run all checks on one driver, one after the other; a failure does not stop the rest."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import AsyncExitStack, suppress
from functools import partial
from pathlib import Path

from moorage.client.errors import ClientError
from moorage.testing.check import (
    REPUBLISH_S,
    START_S,
    CheckAdvisedError,
    CheckFailedError,
    CheckSkippedError,
    Outcome,
    Report,
    Result,
)
from moorage.testing.check.bench import Bench, DriverProcess
from moorage.testing.check.checks import ADVICE, CHECKS, SETTLE_S, Check, end, promise_of
from moorage.testing.check.plugin_client import PluginCallError
from moorage.testing.check.trial import Trial

LOG_NAME = "driver.log"
START = "start"

OutcomeSink = Callable[[Outcome], None]
Progress = Callable[[str, str], None]  # called with a check and the event it waits for


def check_process(
    bench: Bench,
    command: Sequence[str],
    *,
    name: str = "",
    start_s: float = START_S,
    republish_s: float = REPUBLISH_S,
) -> Trial:
    """Return the trial of a driver that the bench starts; `name` chooses among several."""
    process = DriverProcess(command, bench.words, bench.folders.root / LOG_NAME)
    return Trial(bench, process=process, name=name, start_s=start_s, republish_s=republish_s)


def check_socket(
    bench: Bench, socket: Path, *, start_s: float = START_S, republish_s: float = REPUBLISH_S
) -> Trial:
    """Return the trial of a driver that runs already, by its registration socket."""
    return Trial(bench, socket=socket, start_s=start_s, republish_s=republish_s)


async def run_checks(
    trial: Trial,
    *,
    only: Collection[str] = (),
    tell: OutcomeSink = lambda _: None,
    progress: Progress = lambda _, __: None,
) -> Report:
    """Run the checks and return the report; `tell` is called with each outcome at once.

    Raises BenchError or ClientError if the bench fails, not the driver.
    """
    outcomes: list[Outcome] = []

    def note(outcome: Outcome) -> None:
        outcomes.append(outcome)
        tell(outcome)

    async with AsyncExitStack() as stack:
        stack.push_async_callback(trial.end)
        trial.progress = partial(progress, START)
        try:
            name = (await trial.begin()).name
        except PluginCallError as error:
            note(Outcome(START, "It starts, and can be registered.", Result.FAILED, str(error)))
            return Report("", outcomes)
        for check, function in CHECKS.items():
            if not only or check in only:
                trial.progress = partial(progress, check)
                note(await _outcome(trial, check, function))
                if function is not end:
                    await _put_right(trial)
        return Report(name, outcomes)


async def _outcome(trial: Trial, name: str, check: Check) -> Outcome:
    promise = promise_of(check)
    why, is_advice = "", name in ADVICE
    try:
        await check(trial)
    except CheckSkippedError as error:
        return Outcome(name, promise, Result.SKIPPED, str(error))
    except (CheckFailedError, PluginCallError, ClientError) as error:
        why = str(error)
        is_advice = is_advice or isinstance(error, CheckAdvisedError)
    remarks = trial.take_remarks()
    if why and check is not end:
        await trial.has_ended(SETTLE_S)  # An exit may be the reason, and shows a moment later.
    death = None if check is end else trial.death()
    if death is not None and death not in why:
        why = f"{why}\n{death}".strip()
    if not why:
        return Outcome(name, promise, Result.PASSED, remarks)
    is_advice = is_advice and death is None  # exiting by itself is never right
    return Outcome(name, promise, Result.ADVISED if is_advice else Result.FAILED, why)


async def _put_right(trial: Trial) -> None:
    """Restore the state before the first check: no claims, and a running driver."""
    if trial.death() is not None:
        with suppress(PluginCallError):  # the next check reports that it is not registered
            await trial.revive()
    await trial.tidy()
