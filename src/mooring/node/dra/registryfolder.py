"""The folder in which plugins put their sockets: what is there, and again when it changes.

Whatever happens in it, the whole folder is looked at again, so no event can be missed or
misunderstood. Events only say when to look; without them we look every second.
"""

from __future__ import annotations

import contextlib
import logging
import os
import stat
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path
from typing import NamedTuple

from mooring.kit.clock import REAL, Clock
from mooring.node.dra.inotify import FolderEvents

LOG = logging.getLogger(__name__)

ENTRIES_MAX = 4096  # files and folders that are looked at
DEPTH_MAX = 8
POLL_S = 1.0
LOOK_ANYWAY_S = 60.0  # with events, in case they stop
PAUSE_S = 0.02  # between two looks, however much happens
PATH_BYTES_MAX = 107
SAID_MAX = 100  # complaints


class Socket(NamedTuple):
    """A socket; one that is made anew under its name is another one."""

    path: Path
    inode: int
    made_ns: int


async def follow(
    folder: Path, *, clock: Clock = REAL, has_events: bool = True
) -> AsyncGenerator[frozenset[Socket], None]:
    """Yield the sockets in a folder and below it, at once and whenever they are others."""
    with contextlib.closing(FolderEvents()) as events:
        if not (has_events and events.is_available):
            LOG.info("%s is looked at every %g s", folder, POLL_S)
            events.close()
        before: frozenset[Socket] | None = None
        said: set[str] = set()
        while True:
            with contextlib.suppress(OSError):  # then reading it says why
                folder.mkdir(mode=0o755, parents=True, exist_ok=True)
            found = frozenset(_look(folder, events, said))
            if found != before:
                before = found
                yield found
            await _wait(events, clock)


async def _wait(events: FolderEvents, clock: Clock) -> None:
    if not events.is_available:
        await clock.sleep(POLL_S)
        return
    timer = clock.call_later(LOOK_ANYWAY_S, events.happened.set)
    try:
        await events.happened.wait()
    finally:
        timer.cancel()
    await clock.sleep(PAUSE_S)
    events.happened.clear()


def _look(folder: Path, events: FolderEvents, said: set[str]) -> Iterator[Socket]:
    seen = 0
    todo = [(folder, 0)]
    while todo:
        place, depth = todo.pop()
        events.watch(place)  # before it is read, so that nothing comes between
        try:
            with os.scandir(place) as entries:
                for entry in entries:
                    seen += 1
                    if seen > ENTRIES_MAX:
                        _say_once(
                            f"{folder}: of more than {ENTRIES_MAX} files some are ignored", said
                        )
                        return
                    if entry.name.startswith("."):
                        continue
                    if entry.is_dir(follow_symlinks=False):
                        if depth < DEPTH_MAX:
                            todo.append((Path(entry.path), depth + 1))
                    elif (socket := _socket(entry)) is not None:
                        yield socket
        except OSError as error:
            _say_once(f"{place}: {error.strerror or error}", said)


def _socket(entry: os.DirEntry[str]) -> Socket | None:
    try:
        found = entry.stat()
    except OSError:  # gone meanwhile, or a link to nowhere
        return None
    if not stat.S_ISSOCK(found.st_mode) or len(os.fsencode(entry.path)) > PATH_BYTES_MAX:
        return None
    return Socket(Path(entry.path), found.st_ino, found.st_mtime_ns)


def _say_once(text: str, said: set[str]) -> None:
    if text not in said and len(said) < SAID_MAX:
        said.add(text)
        LOG.warning("%s", text)
