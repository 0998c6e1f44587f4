"""Bulkheads: what fails unexpectedly is set aside, named once and counted; everything else goes on.

    with FAULTS.guard("scheduling", lambda: object_text(pod)):
        …

# place: the part of a program that could not handle something
# subject: what it could not handle: an object by kind, namespace, name and uid, or a task

Use one where objects of many users pass through one loop, and nowhere else. An error that is
expected is handled where it is understood, and never gets here: a fault is a bug of ours, met by an
object that should not exist. So tests fail for every fault that they do not expect.

A subject is logged when it fails, and again only if it fails for another reason. The traceback is
in the log at its debug level.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from moorage.kit.backoff import Backoff
from moorage.kit.clock import REAL, Clock
from moorage.kit.lru import LRU
from moorage.kit.metrics import Counter
from moorage.kit.printable import printable

LOG = logging.getLogger(__name__)

SUBJECTS_MAX = 10_000  # whose last fault is remembered
TEXT_MAX = 200  # characters of an error
RESTART_BACKOFF = Backoff(first_s=0.5, longest_s=60.0, jitter=0.25)
HEALTHY_S = 60.0  # after which the next failure of a task counts as its first


class Fault(NamedTuple):
    """What failed, where, and how."""

    place: str
    subject: str
    error: Exception


class FaultLog:
    """Counts faults, and logs each once, from any thread."""

    def __init__(self) -> None:
        self.total = Counter(
            "moorage_faults_total",
            "Objects and tasks that failed unexpectedly and were set aside, by place.",
            ("place",),
        )
        self.observer: Callable[[Fault], None] | None = None  # is told of every fault
        self._causes: LRU[tuple[str, str], str] = LRU(SUBJECTS_MAX)
        self._lock = threading.Lock()

    def note(
        self,
        place: str,
        subject: str | Callable[[], str],
        error: Exception,
        outcome: str = "is set aside",
    ) -> bool:
        """Count a fault, and log it unless the subject failed so before; return whether it did."""
        name = one_line(subject if isinstance(subject, str) else subject())
        cause = cause_text(error)
        with self._lock:
            self.total.inc(place)
            if self.observer is not None:
                self.observer(Fault(place, name, error))
            if self._causes.get((place, name)) == cause:
                return False
            self._causes.put((place, name), cause)
        LOG.error("%s: %s %s: %s", place, name, outcome, cause)
        LOG.debug("%s: %s", place, name, exc_info=error)
        return True

    def guard(self, place: str, subject: str | Callable[[], str]) -> Guard:
        """Note the failure of a block, and go on after it."""
        return Guard(self, place, subject)


class Guard:
    """The block that `FaultLog.guard` guards; it is entered several times for each pod."""

    __slots__ = ("_faults", "_place", "_subject")

    def __init__(self, faults: FaultLog, place: str, subject: str | Callable[[], str]) -> None:
        self._faults, self._place, self._subject = faults, place, subject

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: object
    ) -> bool:
        if not isinstance(error, Exception):
            return False
        self._faults.note(self._place, self._subject, error)
        return True


FAULTS = FaultLog()  # of this program


async def keep_running(
    place: str,
    work: Callable[[], Awaitable[object]],
    *,
    subject: str | Callable[[], str] = "the task",
    clock: Clock = REAL,
    backoff: Backoff = RESTART_BACKOFF,
    faults: FaultLog = FAULTS,
) -> None:
    """Do a task until it returns; begin it again, with backoff, when it fails."""
    failures = 0
    while True:
        began_s = clock.monotonic()
        try:
            await work()
            return
        except Exception as error:
            failures = 1 if clock.monotonic() - began_s > HEALTHY_S else failures + 1
            faults.note(place, subject, error, "begins again")
        await clock.sleep(backoff.delay_s(failures))


def cause_text(error: Exception) -> str:
    """Return the type and the message of an error in one line, for logs and never for users."""
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    text = str(error)
    return one_line(f"{type(error).__name__}: {text}" if text else type(error).__name__)


def one_line(text: str) -> str:
    """Return text from anywhere as one printable line, bounded in length."""
    if len(text) > TEXT_MAX:
        text = f"{text[:TEXT_MAX]}…"
    return printable(text)
