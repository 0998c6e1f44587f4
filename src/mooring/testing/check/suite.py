"""All checks on one driver, one after the other; one that fails does not end the rest."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import AsyncExitStack
from pathlib import Path

from mooring.client.errors import ClientError
from mooring.testing.check.bench import Bench, DriverProcess
from mooring.testing.check.checks import ADVICE, CHECKS, Check
from mooring.testing.check.outcomes import (
    CheckFailedError,
    CheckSkippedError,
    Outcome,
    Report,
    Result,
)
from mooring.testing.check.plug import PlugError
from mooring.testing.check.trial import Trial

LOG_NAME = "driver.log"
START = "start"

Tell = Callable[[Outcome], None]


def check_process(bench: Bench, command: Sequence[str]) -> Trial:
    """Return the trial of a driver that the bench starts."""
    return Trial(bench, process=DriverProcess(command, bench.words, bench.folders.root / LOG_NAME))


def check_socket(bench: Bench, socket: Path) -> Trial:
    """Return the trial of a driver that runs already, by its socket for registration."""
    return Trial(bench, socket=socket)


async def run_checks(
    trial: Trial, *, only: Collection[str] = (), tell: Tell = lambda _: None
) -> Report:
    """Return what came of the checks; each is told as soon as it is over."""
    outcomes: list[Outcome] = []

    def note(outcome: Outcome) -> None:
        outcomes.append(outcome)
        tell(outcome)

    async with AsyncExitStack() as stack:
        stack.push_async_callback(trial.end)
        try:
            name = (await trial.begin()).name
        except PlugError as error:
            note(Outcome(START, "It starts, and can be registered.", Result.FAILED, str(error)))
            return Report("", outcomes)
        for check, function in CHECKS.items():
            if not only or check in only:
                note(await _outcome(trial, check, function))
        return Report(name, outcomes)


async def _outcome(trial: Trial, name: str, check: Check) -> Outcome:
    promise = (check.__doc__ or "").strip()
    try:
        await check(trial)
    except CheckSkippedError as error:
        return Outcome(name, promise, Result.SKIPPED, str(error))
    except (CheckFailedError, PlugError, ClientError) as error:
        result = Result.ADVISED if name in ADVICE else Result.FAILED
        return Outcome(name, promise, result, str(error))
    return Outcome(name, promise, Result.PASSED)
