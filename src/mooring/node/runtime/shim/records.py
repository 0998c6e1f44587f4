"""What is kept on disk of containers, so that the next keeper and the agent find it.

    FOLDER/<pod uid>/<container>/<attempt>/record     JSON
    FOLDER/<pod uid>/<container>/<attempt>/log…

A record is replaced as a whole. It is not forced onto the disk: a machine that loses power loses
its containers, too.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, NamedTuple

from mooring.node.runtime.shim.launches import Key, LaunchError

NAME = "record"
RECORD_BYTES_MAX = 64 * 1024


class Record(NamedTuple):
    """One try to run a container."""

    key: Key
    digest: str = ""
    boot: str = ""  # of which start of the machine
    pid: int = 0
    pid_started: int = 0  # ticks since the boot: tells a process from a later one with its number
    started: float = 0.0
    finished: float | None = None
    exit_code: int = 0
    signal: int = 0
    reason: str = ""
    message: str = ""

    @property
    def is_running(self) -> bool:
        """Whether its end is not known."""
        return self.finished is None


class Records:
    """The records of a folder."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def folder_of(self, key: Key) -> str:
        """Return where the files of a container are."""
        return os.path.join(self.folder, key.pod_uid, key.name, str(key.attempt))

    def write(self, record: Record) -> None:
        """Keep a record."""
        path = os.path.join(self.folder_of(record.key), NAME)
        with open(path + ".new", "w", encoding="utf-8") as file:
            json.dump(record._asdict(), file)
        os.replace(path + ".new", path)

    def remove(self, key: Key) -> None:
        """Forget a container with its files, and folders that are empty then."""
        folder = self.folder_of(key)
        for name in _names(folder):
            _try(os.unlink, os.path.join(folder, name))
        pods_folder = os.path.dirname(os.path.dirname(folder))
        for each in (folder, os.path.dirname(folder), pods_folder):
            _try(os.rmdir, each)  # the last two only when no others are in it

    def all(self) -> Iterator[Record]:
        """Yield every record; of one that is damaged, what its place tells."""
        for pod_uid in _names(self.folder):
            for name in _names(os.path.join(self.folder, pod_uid)):
                for attempt in _names(os.path.join(self.folder, pod_uid, name)):
                    if attempt.isdecimal():
                        try:
                            key = Key.read([pod_uid, name, int(attempt)])
                        except LaunchError:
                            continue  # not ours
                        if (found := self._read(key)) is not None:
                            yield found

    def _read(self, key: Key) -> Record | None:
        try:
            with open(os.path.join(self.folder_of(key), NAME), "rb") as file:
                return read_record(json.loads(file.read(RECORD_BYTES_MAX)))._replace(key=key)
        except FileNotFoundError:  # nothing ran before there was a record
            self.remove(key)
            return None
        except (OSError, ValueError, TypeError, KeyError, RecursionError):
            return Record(key)


def read_record(tree: Any) -> Record:
    """Return the record that JSON has, or raise ValueError or TypeError."""
    return Record(**{**tree, "key": Key.read(tree["key"])})


def _try(call: Callable[[str], None], path: str) -> None:
    with suppress(OSError):
        call(path)


def _names(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []
