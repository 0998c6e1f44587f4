"""Readers: a few threads with a connection each, which never write."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import Concatenate, ParamSpec, TypeVar

from mooring.store.errors import ClosedError, OverloadedError, UnavailableError
from mooring.store.sqlite.schema import connect_reader

READERS = 4
WAITING_READS_MAX = 20_000

P = ParamSpec("P")
R = TypeVar("R")


class Readers:
    """Runs reads beside the event loop, each in a read transaction of its own."""

    def __init__(self, database: Path) -> None:
        self._connections = [connect_reader(database) for _ in range(READERS)]
        self._idle: SimpleQueue[sqlite3.Connection] = SimpleQueue()
        for connection in self._connections:
            self._idle.put(connection)
        self._threads = ThreadPoolExecutor(READERS, thread_name_prefix="store-reader")
        self._waiting = 0
        self._is_closed = False

    async def run(
        self,
        read: Callable[Concatenate[sqlite3.Connection, P], R],
        *arguments: P.args,
        **options: P.kwargs,
    ) -> R:
        """Return what a read returns, which sees all that was committed before."""
        if self._is_closed:
            raise ClosedError
        if self._waiting >= WAITING_READS_MAX:
            raise OverloadedError(f"{self._waiting} requests are waiting; try again later")
        self._waiting += 1
        try:
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(
                self._threads, lambda: self._read(read, *arguments, **options)
            )
        except sqlite3.Error as error:
            raise UnavailableError(f"reading failed: {error}") from error
        finally:
            self._waiting -= 1

    def close(self) -> None:
        """Finish the reads that were begun and close; called beside the event loop."""
        self._is_closed = True
        self._threads.shutdown(cancel_futures=True)
        for connection in self._connections:
            connection.close()

    def _read(
        self,
        read: Callable[Concatenate[sqlite3.Connection, P], R],
        *arguments: P.args,
        **options: P.kwargs,
    ) -> R:
        connection = self._idle.get()
        try:
            connection.execute("BEGIN")
            try:
                return read(connection, *arguments, **options)
            finally:
                connection.execute("ROLLBACK")  # nothing to commit; frees the snapshot
        finally:
            self._idle.put(connection)
