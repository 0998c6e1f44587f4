"""The way to the keeper: it is started when there is none, and found again when it was lost.

Everything that is asked can be asked again, so a question whose answer was lost is.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import mooring
from mooring.kit.clock import REAL, Clock
from mooring.node.runtime.contract import RuntimeRefusedError
from mooring.node.runtime.shim.frames import (
    PROTOCOL,
    FrameError,
    Frames,
    message_frame,
    read_message,
)
from mooring.node.runtime.shim.main import ANOTHER_ONE, SOCKET

TRIES_MAX = 100
RETRY_S = 0.05
CHUNK_BYTES = 256 * 1024
UNAVAILABLE = "RuntimeUnavailable"
# Without `site`, which the keeper does not need; so it must be told where we are.
_PROGRAM = (
    "import json, sys; sys.path.insert(0, sys.argv[1]); "
    "from mooring.node.runtime.shim.main import main; "
    "sys.exit(main(json.loads(sys.argv[2])))"
)

Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]
State = dict[str, Any]


class KeeperLostError(ConnectionError):
    """The keeper went away before it answered."""


class KeeperLink:
    """One connection to the keeper of a folder, for questions and changes."""

    def __init__(
        self,
        folder: Path,
        *,
        on_state: Callable[[State], None],
        on_lost: Callable[[], None],
        options: dict[str, Any] | None = None,
        clock: Clock = REAL,
    ) -> None:
        """Take whom to tell: states that change, and all states after a new connection."""
        self._folder, self._clock = folder, clock
        self._on_state, self._on_lost = on_state, on_lost
        self._options = {"folder": str(folder), **(options or {})}
        self._writer: asyncio.StreamWriter | None = None
        self._reading: asyncio.Task[None] | None = None
        self._answers: dict[int, asyncio.Future[Any]] = {}
        self._number = 0
        self._opening = asyncio.Lock()
        self.controllers: tuple[str, ...] = ()
        self.keeper_pid = 0
        self.has_greeted = False  # what was there before is no change
        self.is_closed = False

    @property
    def is_open(self) -> bool:
        """Whether there is a keeper that listens."""
        return self._writer is not None

    async def ask(self, question: str, **fields: Any) -> Any:
        """Return the answer of the keeper, or raise RuntimeRefusedError."""
        for _ in range(TRIES_MAX):
            await self.ensure()
            with suppress(KeeperLostError):
                return await self._ask_once(question, **fields)
        raise RuntimeRefusedError(UNAVAILABLE, f"the keeper of {self._folder} does not stay up")

    async def ensure(self) -> None:
        """Be connected, with a keeper that is there."""
        async with self._opening:
            if self._writer is not None:
                return
            for _ in range(TRIES_MAX):
                reader, writer = await self.connect()
                self._writer, self.is_closed = writer, False
                self._reading = asyncio.create_task(self._read(reader, writer))
                try:
                    await self._greet()
                except KeeperLostError:
                    continue
                except RuntimeRefusedError:
                    await self.close()
                    raise
                return
            raise RuntimeRefusedError(UNAVAILABLE, f"the keeper of {self._folder} does not stay up")

    async def close(self) -> None:
        """Let go of the keeper; it stays with its containers."""
        self.is_closed = True
        writer, reading = self._writer, self._reading
        if writer is not None:
            writer.close()
        if reading is not None:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)

    async def connect(self) -> Stream:
        """Return a new connection to the keeper, which is started if there is none."""
        for _ in range(TRIES_MAX):
            with suppress(FileNotFoundError, ConnectionError, BlockingIOError):
                return await self._open()
            if not await self._start_keeper():
                await self._clock.sleep(RETRY_S)  # another one starts it, or one just ends
        raise RuntimeRefusedError(UNAVAILABLE, f"the keeper of {self._folder} does not answer")

    async def _open(self) -> Stream:
        # By the folder's descriptor: the path of a socket has at most 107 bytes.
        descriptor = os.open(self._folder, os.O_PATH | os.O_CLOEXEC)
        try:
            return await asyncio.open_unix_connection(f"/proc/self/fd/{descriptor}/{SOCKET}")
        finally:
            os.close(descriptor)

    async def _start_keeper(self) -> bool:
        source = str(Path(mooring.__file__).parents[1])
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-I", "-S", "-c", _PROGRAM, source, json.dumps(self._options)),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
            cwd="/",
        )
        _, said = await process.communicate()
        if process.returncode not in (0, ANOTHER_ONE):
            words = said.decode(errors="replace").strip().splitlines()[-1:]
            text = f"the keeper of {self._folder} cannot be started: {' '.join(words)}"
            raise RuntimeRefusedError(UNAVAILABLE, text)
        return process.returncode == 0

    async def _greet(self) -> None:
        hello = await self._ask_once("hello")
        if hello["protocol"] != PROTOCOL:
            raise RuntimeRefusedError(
                UNAVAILABLE,
                f"process {hello['pid']} keeps the containers of {self._folder} and is of another "
                "version; end it with SIGTERM when its containers may end",
            )
        self.controllers, self.keeper_pid = tuple(hello["controllers"]), hello["pid"]
        for state in await self._ask_once("watch"):
            self._on_state(state)
        self.has_greeted = True

    async def _ask_once(self, question: str, **fields: Any) -> Any:
        if self._writer is None:
            raise KeeperLostError
        self._number += 1
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._answers[self._number] = answer
        try:
            self._writer.write(message_frame({"n": self._number, "ask": question, **fields}))
            return await answer
        finally:
            self._answers = {n: each for n, each in self._answers.items() if each is not answer}

    async def _read(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        frames = Frames()
        try:
            while data := await reader.read(CHUNK_BYTES):
                for _, payload in frames.feed(data):
                    self._take(read_message(payload))
        except (ConnectionError, FrameError):
            pass
        finally:
            writer.close()
            self._writer = None
            for answer in self._answers.values():
                if not answer.done():
                    answer.set_exception(KeeperLostError())
            self._on_lost()

    def _take(self, message: dict[str, Any]) -> None:
        if "changed" in message:
            self._on_state(message["changed"])
            return
        answer = self._answers.get(message.get("n", 0))
        if answer is None or answer.done():
            return  # nobody waits for it any more
        if "refused" in message:
            answer.set_exception(RuntimeRefusedError(*message["refused"]))
        else:
            answer.set_result(message.get("ok"))
