"""Break the disk under stores, files and clusters: nothing that was answered may be lost.

Three kinds of cases, in turn:

- a store on a disk whose writes and syncs fail, and that loses power (`soak._disk.store_case`);
- atomic files and a driver's checkpoint on a disk that fails (`soak._disk.files_case`);
- a real `moor up` on a small file system that becomes full, with kills (`soak._disk.cluster_case`):
  only as root, because it mounts a tmpfs. Elsewhere the figures say that it was skipped.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from soak import Case, Outcome, Plan, Tally
from soak._disk.cluster_case import ClusterCase, NoMountError
from soak._disk.faulty_sqlite import find_library
from soak._disk.files_case import FilesCase
from soak._disk.store_case import StoreCase

CASES = 600
ROUNDS = 4  # of a store
CYCLES = 6  # of a cluster
CLUSTER_EVERY = 60  # cases
FILES_EVERY = 3


@dataclass(frozen=True)
class DiskCase:
    """A case of any kind; one that is impossible here is counted as skipped."""

    kind: str
    case: Case
    find_hindrance: Callable[[], object] = lambda: None

    def outcomes(self) -> Counter[str]:
        """Return the counts; raise when a law is broken."""
        try:
            self.find_hindrance()
            found = self.case.outcomes()
        except (NoMountError, LibraryError) as error:
            return Counter({f"skipped: {self.kind}: {error}": 1})
        return Counter({f"{self.kind}: {name}": count for name, count in found.items()})


class LibraryError(Exception):
    """Faults cannot be put into SQLite here."""


def make_case(seed: int, number: int, rounds: int = ROUNDS, cycles: int = CYCLES) -> DiskCase:
    """Return the case of a number."""
    if number % CLUSTER_EVERY == CLUSTER_EVERY - 1:
        return DiskCase("cluster", ClusterCase(seed, number, cycles))
    if number % FILES_EVERY == 1:
        return DiskCase("files", FilesCase(seed, number))
    return DiskCase("store", StoreCase(seed, number, rounds), _check_library)


def _check_library() -> None:
    try:
        find_library()
    except OSError as error:
        raise LibraryError(str(error)) from None


def run(plan: Plan, rounds: int = ROUNDS, cycles: int = CYCLES) -> Outcome:
    """Run the campaign."""
    tally = Tally("disk", lambda seed, number: make_case(seed, number, rounds, cycles))
    started = time.monotonic()
    logging.getLogger("moorage.store").setLevel(logging.CRITICAL)  # it says what we do to it
    try:
        tally.run(plan)
    finally:
        logging.getLogger("moorage.store").setLevel(logging.NOTSET)
    figures = {"cases": str(tally.cases), "seed": str(plan.seed)}
    figures |= {name: f"{count:,}" for name, count in sorted(tally.counts.items())}
    figures["seconds"] = f"{time.monotonic() - started:.0f}"
    return Outcome(figures, tuple(tally.faults.values()))
