"""Bulkheads: the faulty is named once and counted, and the rest goes on."""

from __future__ import annotations

import asyncio
import logging
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from moorage.kit.bulkhead import FAULTS, FaultLog, cause_text, keep_running
from moorage.kit.clock import LoopClock, run_simulated


def test_others_go_on_and_the_faulty_is_counted() -> None:
    log, done = FaultLog(), []
    for name in ("a", "bad", "c"):
        with log.guard("listing", name):
            done.append(int(name == "a") or 1 // (name != "bad"))
    assert done == [1, 1]
    assert log.total.value("listing") == 1


def test_a_fault_is_named_once_until_it_is_another(caplog: pytest.LogCaptureFixture) -> None:
    log = FaultLog()
    with caplog.at_level(logging.INFO):
        for error in (KeyError("x"), KeyError("x"), KeyError("y"), ValueError()):
            log.note("listing", lambda: "Pod default/web (uid 1)", error)
    assert [record.getMessage() for record in caplog.records] == [
        "listing: Pod default/web (uid 1) is set aside: KeyError: 'x'",
        "listing: Pod default/web (uid 1) is set aside: KeyError: 'y'",
        "listing: Pod default/web (uid 1) is set aside: ValueError",
    ]
    assert not any(record.exc_info for record in caplog.records)
    assert log.total.value("listing") == 4


def test_the_traceback_is_at_the_debug_level(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        FaultLog().note("listing", "x", KeyError("x"))
    assert [record.exc_info is not None for record in caplog.records] == [False, True]


def test_the_log_line_is_one_bounded_printable_line() -> None:
    assert cause_text(ValueError("a\nb\x1b[31m")) == r"ValueError: a\x0ab\x1b[31m"
    assert len(cause_text(ValueError("x" * 10_000))) < 250


def test_cancellation_and_exit_are_no_faults() -> None:
    for error in (asyncio.CancelledError, SystemExit, KeyboardInterrupt):
        with pytest.raises(error), FaultLog().guard("listing", "x"):
            raise error


def test_faults_of_many_threads_are_all_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("moorage.kit.bulkhead.SUBJECTS_MAX", 2)
    log, seen = FaultLog(), list[str]()
    log.observer = lambda fault: seen.append(fault.subject)

    def fail(number: int) -> None:
        for turn in range(500):
            log.note("listing", f"pod {(number + turn) % 5}", KeyError("x"))

    switching_s = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as threads:
            list(threads.map(fail, range(4)))
    finally:
        sys.setswitchinterval(switching_s)
    assert log.total.value("listing") == len(seen) == 2000


def test_a_task_that_fails_is_begun_again_with_backoff() -> None:
    log, tries = FaultLog(), list[float]()

    async def scenario() -> None:
        clock = LoopClock()

        async def work() -> None:
            tries.append(clock.monotonic())
            if len(tries) < 4:
                raise RuntimeError("no")

        await keep_running("following", work, clock=clock, faults=log)

    run_simulated(scenario())
    first, *others = tries
    assert [round(each - first, 1) for each in others] == [0.5, 1.5, 3.5]
    assert log.total.value("following") == 3


def test_a_test_that_expects_no_faults_would_fail(faults: list[object]) -> None:
    FAULTS.note("listing", "x", KeyError("x"))
    assert len(faults) == 1
