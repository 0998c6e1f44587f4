"""Connections that send hostile requests and check the answers."""

from __future__ import annotations

import asyncio
import heapq
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random

from soak._hostile.answers import AnswerLaws, Findings
from soak._hostile.requests import Attack, Requests
from soak._hostile.site import HostileSite
from soak._http import Connection, LostError, Reply

WORKERS = 10
ASIDE_MAX = 24  # watches, streams and odd bytes at a time
ANSWER_S_MAX = 60.0  # as the server gives up by itself
GOES_ON_S = 0.5  # how long an answer that goes on is read
ODD_S = 0.15
SLOWEST = 5


class Attackers:
    """Sends the requests of a case over several connections."""

    def __init__(
        self, site: HostileSite, requests: Requests, laws: AnswerLaws, findings: Findings
    ) -> None:
        self.counts: Counter[str] = Counter()
        self.sent = 0
        self.slowest: list[tuple[float, int, Attack]] = []
        self._site, self._requests, self._laws, self._findings = site, requests, laws, findings
        self._aside = asyncio.Semaphore(ASIDE_MAX)
        self._tasks: set[asyncio.Task[None]] = set()
        self._in_flight: dict[int, tuple[float, Attack]] = {}
        self._number = 0
        self._address = site.address()

    async def run(self, total: int, seed: str) -> None:
        """Send requests until there were so many."""
        async with asyncio.TaskGroup() as group:
            for number in range(WORKERS):
                group.create_task(self._work(total, Random(f"{seed}/{number}")))  # noqa: S311
        await asyncio.gather(*self._tasks)

    def in_flight(self) -> list[Attack]:
        """Return what is not answered yet, the oldest first."""
        return [attack for _, attack in sorted(self._in_flight.values(), key=lambda each: each[0])]

    async def _work(self, total: int, random: Random) -> None:
        connection: Connection | None = None
        while self.sent < total:
            attack = self._requests.make(random)
            self.sent += 1
            self.counts[f"of {attack.user.name}"] += 1
            if attack.shape != "whole":
                await self._aside.acquire()
                task = asyncio.create_task(self._play_aside(attack))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
                continue
            if connection is None:
                connection = await self._site.connect(self._address)
            if not await self._play(connection, attack):
                connection.cut()
                connection = None
        if connection is not None:
            connection.cut()

    async def _play(self, connection: Connection, attack: Attack) -> bool:
        """Send a request; return whether the connection can be used further."""
        kills = self._site.kills["server"]
        connection.send(attack.data)
        try:
            with self._timed(attack):
                async with asyncio.timeout(ANSWER_S_MAX):
                    reply = await connection.answer(has_body=attack.method != "HEAD")
        except LostError:
            is_killed = self._site.kills["server"] != kills or not self._site.serving.is_set()
            self.counts["lost by a kill" if is_killed else "refused by closing"] += 1
            return False
        except TimeoutError:
            self._findings.note("no answer", f"within {ANSWER_S_MAX:g} s: {attack.path}", attack)
            return False
        except ValueError as error:
            self._findings.note("HTTP", str(error), attack)
            return False
        self._count(attack, reply.status)
        self._laws.check(attack, reply)
        return reply.headers.get("connection", "").lower() != "close"

    @contextmanager
    def _timed(self, attack: Attack) -> Iterator[None]:
        self._number += 1
        number, began = self._number, time.monotonic()
        self._in_flight[number] = began, attack
        try:
            yield
        finally:
            del self._in_flight[number]
            if attack.shape == "whole":
                entry = (time.monotonic() - began, number, attack)
                change = heapq.heappush if len(self.slowest) < SLOWEST else heapq.heappushpop
                change(self.slowest, entry)

    def _count(self, attack: Attack, status: int) -> None:
        self.counts[f"answers {status // 100}xx"] += 1
        self.counts[f"answered {status}"] += 1
        if status < 300 and attack.method in ("POST", "PUT", "PATCH") and attack.kind is not None:
            self.counts[f"accepted {attack.kind.name}"] += 1

    # --- beside -------------------------------------------------------------------------------

    async def _play_aside(self, attack: Attack) -> None:
        try:
            connection = await self._site.connect(self._address)
            try:
                with self._timed(attack):
                    await self._play_long(connection, attack)
            finally:
                connection.cut()
        finally:
            self._aside.release()

    async def _play_long(self, connection: Connection, attack: Attack) -> None:
        """Read what comes for a while; the connection is not used again."""
        connection.send(attack.data)
        received = bytearray()
        limit_s = ODD_S if attack.shape == "odd" else GOES_ON_S
        try:
            async with asyncio.timeout(limit_s):
                async for part in connection.rest():
                    received += part
        except (LostError, TimeoutError):
            pass
        for head in received.split(b"HTTP/1.1 ")[1:] if attack.shape == "odd" else (received[9:],):
            status = int(head[:3]) if head[:3].isdigit() else 0
            body = bytes(head.partition(b"\r\n\r\n")[2])
            self.counts[f"answers {status // 100}xx" if status else "no answer to odd bytes"] += 1
            if status >= 500:
                self._laws.check(attack, Reply(status, {}, body))
        self._laws.check_bytes(attack, bytes(received))
