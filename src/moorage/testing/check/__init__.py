"""Checks of a driver in any language, through its real sockets; here are their results and errors.

bench          an API server, a node and the folders of a kubelet, for one driver
plugin_client  the sockets of a driver, as a kubelet uses them, and its responses
claims         claims for the devices that the driver published
trial          one driver under test: started, called, killed
checks         the checks, in order; claim_checks has those of claims
suite          runs the checks

# check: one promise of a driver; it passes, fails or is skipped, with a reason

Errors:  BenchError          the bench cannot be set up
         PluginCallError     a call to the driver failed
         CheckFailedError    the driver does not keep a promise
           CheckAdvisedError    ... that nobody requires
         CheckSkippedError   the check does not apply
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

from msgspec import Struct

START_S = 60.0  # to register, and to publish
# Deleted slices may come back late: Go's library resyncs after 30 s by default, and again a minute
# after it published. Twice as long avoids a race.
REPUBLISH_S = 180.0


class Result(Enum):
    """The result of a check."""

    PASSED = "pass"
    FAILED = "fail"
    ADVISED = "advice"  # failed, but nobody requires it
    SKIPPED = "skip"


class Outcome(Struct, frozen=True):
    """The outcome of one check."""

    check: str
    promise: str  # the promise, in a sentence
    result: Result
    why: str = ""  # the reason, or a remark on a check that passed


class Report(Struct, frozen=True):
    """All outcomes for one driver."""

    driver: str
    outcomes: Sequence[Outcome]

    @property
    def is_good(self) -> bool:
        """Whether nothing failed."""
        return all(each.result is not Result.FAILED for each in self.outcomes)

    def count(self, result: Result) -> int:
        """Return the number of checks with a result."""
        return sum(each.result is result for each in self.outcomes)


class CheckFailedError(Exception):
    """The driver does not keep a promise; the text says what happened."""


class CheckAdvisedError(CheckFailedError):
    """The driver does not keep a promise that is only recommended."""


class CheckSkippedError(Exception):
    """The check does not apply or cannot run here; the text says why."""
