"""Files of other packages on a disk that fails: atomic files, and the checkpoint of a driver.

`FaultyOs` stands for the module `os` in `moorage.kit.atomic_file` and `moorage.driver.checkpoint`:
opening, writing, syncing, renaming and removing fail now and then, with the errors of a full disk,
a quota, a read-only file system, a broken disk, and too many open files. The laws:

1. a file that was replaced has its new content; one that was not has its old content, or the new
   one if only the sync of its folder failed; there is never a mixture, and nothing is left beside;
2. a checkpoint that is read anew has what was noted, and of the changes that failed since then all
   of one of them or nothing.
"""

from __future__ import annotations

import errno
import os
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from moorage.driver import checkpoint as checkpoint_module
from moorage.driver.checkpoint import Checkpoint, FileSystem, PreparedClaim, PreparedDevice
from moorage.kit import atomic_file

STEPS = 60
FAULTS = (
    errno.ENOSPC,
    errno.EDQUOT,
    errno.EROFS,
    errno.EIO,
    errno.EMFILE,
    errno.ENFILE,
    errno.EACCES,
)
FAULT_SHARES = (0.0, 0.05, 0.3, 1.0)
CALLS = ("open", "write", "fsync", "fdatasync", "replace", "fchmod")


class FaultyOs:
    """The module `os`, with calls that fail."""

    def __init__(self, random: Random) -> None:
        self.share = 0.0
        self.faults = 0
        self._random = random

    def __getattr__(self, name: str) -> Any:
        call = getattr(os, name)
        return self._failing(name, call) if name in CALLS else call

    def _failing(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def attempt(*given: Any, **options: Any) -> Any:
            if self._random.random() >= self.share:
                return call(*given, **options)
            self.faults += 1
            if name == "write" and self._random.random() < 0.5:  # the disk takes a part
                return call(given[0], given[1][: len(given[1]) // 2])
            number = self._random.choice(FAULTS)
            raise OSError(number, os.strerror(number))

        return attempt

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Have the modules use this one during a block."""
        modules: tuple[Any, ...] = (atomic_file, checkpoint_module)
        for module in modules:
            module.os = self
        try:
            yield
        finally:
            for module in modules:
                module.os = os


@dataclass(frozen=True)
class FilesCase:
    """Some steps on one disk."""

    seed: int
    number: int

    def outcomes(self) -> Counter[str]:
        """Return the counts; raise when a law is broken."""
        random = Random(f"{self.seed}/{self.number}")  # noqa: S311
        disk, counts = FaultyOs(random), Counter[str]()
        with tempfile.TemporaryDirectory(prefix="disk-files-") as folder, disk.installed():
            _replace_files(Path(folder), random, disk, counts)
            _keep_checkpoint(Path(folder) / "driver", random, disk, counts)
        counts["faults of the disk"] = disk.faults
        return counts


def _replace_files(folder: Path, random: Random, disk: FaultyOs, counts: Counter[str]) -> None:
    path, content = folder / "state", b"first"
    atomic_file.replace_file(path, content)
    for number in range(STEPS):
        disk.share = random.choice(FAULT_SHARES)
        new = f"{number} ".encode() * random.choice((1, 100, 20_000))
        try:
            atomic_file.replace_file(path, new, is_durable=random.random() < 0.8)
        except OSError:
            counts["files that were not replaced"] += 1
            found = path.read_bytes()
            assert found in (content, new), "neither the old content nor the new"
            content = found
        else:
            counts["files that were replaced"] += 1
            assert path.read_bytes() == new, "not the new content"
            content = new
        assert [each.name for each in folder.iterdir()] == ["state"], "something is left"


def _keep_checkpoint(folder: Path, random: Random, disk: FaultyOs, counts: Counter[str]) -> None:
    claims: dict[str, PreparedClaim] = {}
    disk.share = 0.0
    folder.mkdir()
    kept = _loaded(folder)
    possible = [claims]
    for number in range(STEPS):
        disk.share = random.choice(FAULT_SHARES)
        after, change = _change(kept, claims, random, number)
        try:
            change()
        except OSError:
            counts["changes of a checkpoint that failed"] += 1
            disk.share = 0.0
            found = {each.uid: each for each in _loaded(folder)}
            possible.append(after)
            assert found in possible, "neither before nor after"
            assert {each.uid: each for each in kept} == claims, "a change that failed is noted"
        else:
            counts["changes of a checkpoint"] += 1
            claims, possible, disk.share = after, [after], 0.0
            assert {each.uid: each for each in _loaded(folder)} == claims, "a change is lost"
        if random.random() < 0.1:  # the driver starts again
            disk.share = 0.0
            kept = _loaded(folder)
            claims = {each.uid: each for each in kept}
            possible = [claims]


def _change(
    kept: Checkpoint, claims: dict[str, PreparedClaim], random: Random, number: int
) -> tuple[dict[str, PreparedClaim], Callable[[], None]]:
    """Return the claims after a change, and what makes it."""
    if claims and random.random() < 0.4:
        uid = random.choice(sorted(claims))
        left = {key: each for key, each in claims.items() if key != uid}
        return left, lambda: kept.remove(uid)
    device = PreparedDevice("r", "pool", f"device-{number}")
    claim = PreparedClaim(f"uid-{random.randrange(8)}", "default", f"claim-{number}", (device,))
    return {**claims, claim.uid: claim}, lambda: kept.put(claim)


def _loaded(folder: Path) -> Checkpoint:
    found = Checkpoint(folder, FileSystem())
    found.load()
    return found
