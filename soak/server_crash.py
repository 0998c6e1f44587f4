"""Kill an API server while it is written to, again and again: nothing that was answered is lost.

A case is one folder and some rounds. In each round a real `moor server` is started on the folder,
16 writers create, replace, patch and delete objects of four kinds and their status over TLS, and
the process is killed with SIGKILL: after a number of answers and a moment, or while it starts. Then
it is restarted and everything is listed. The laws:

1. an object is as its last answered write made it, or as the one write made it that was sent after
   that and not answered;
2. so every object is wholly one that was sent, and none is there that nobody sent;
3. revisions are given once, and the revision of the server never goes back;
4. the server never fails: no answer but the expected one, no traceback in its log, and the store
   finds nothing wrong with itself in the end.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from moorage.store.sqlite.maintenance import check
from soak import Outcome, Plan, Tally
from soak._http import Address, Connection, LostError
from soak._server_writes import KINDS, WRITERS, Key, Writer, prepare
from soak._servers import Server

CASES = 10
ROUNDS = 50
ANSWERS_MAX = 250  # before a kill
MOMENT_S = 0.01
STARTING_S = 0.6  # a kill within that after the start may hit the start
STARTING_SHARE = 0.15
ROUND_S_MAX = 120


@dataclass(frozen=True)
class CrashCase:
    """Some rounds of writing and killing on one folder."""

    seed: int
    number: int
    rounds: int

    def outcomes(self) -> Counter[str]:
        """Return the counts; raise when a law is broken."""
        with tempfile.TemporaryDirectory(prefix="server-crash-") as folder:
            server = Server(Path(folder) / "data")
            try:
                return asyncio.run(self._run(server))
            finally:
                server.kill()

    async def _run(self, server: Server) -> Counter[str]:
        random = Random(f"{self.seed}/{self.number}")  # noqa: S311
        writers = [Writer(n, Random(f"{self.seed}/{self.number}/{n}")) for n in range(WRITERS)]  # noqa: S311
        witness = Witness(writers)
        address = await server.start()
        connection = await Connection.open(address)
        await prepare(connection)
        connection.close()
        for _ in range(self.rounds):
            async with asyncio.timeout(ROUND_S_MAX):
                if random.random() < STARTING_SHARE:
                    await self._kill_while_starting(server, random, witness.counts)
                else:
                    await self._write_and_kill(server, address, writers, random)
                witness.counts["kills"] += 1
                under_way = sum(writer.under_way is not None for writer in writers)
                witness.counts["writes under way when killed"] += under_way
                address = await server.start()
                await witness.look(address)
        return self._counted(server, writers, witness)

    async def _write_and_kill(
        self, server: Server, address: Address, writers: list[Writer], random: Random
    ) -> None:
        wanted = sum(writer.answers for writer in writers) + random.randrange(1, ANSWERS_MAX)
        writing = [asyncio.create_task(_write(writer, address)) for writer in writers]
        while sum(writer.answers for writer in writers) < wanted:
            await asyncio.sleep(0.001)
            for task in writing:
                if task.done():
                    task.result()  # raises what went wrong
        await asyncio.sleep(random.random() * MOMENT_S)
        server.kill()
        await asyncio.gather(*writing)

    async def _kill_while_starting(
        self, server: Server, random: Random, counts: Counter[str]
    ) -> None:
        server.kill()
        server.begin()
        await asyncio.sleep(random.random() * STARTING_S)
        server.kill()
        counts["of these while it started"] += 1

    def _counted(self, server: Server, writers: list[Writer], witness: Witness) -> Counter[str]:
        log = server.faults()
        assert not log, log
        server.kill()
        findings = check(server.folder / "store")
        assert not findings, findings[0]
        witness.counts["answered writes"] = sum(writer.answers for writer in writers)
        witness.counts["starts"] = server.starts
        witness.counts["milliseconds of all starts"] = round(server.starting_s * 1e3)
        return witness.counts


async def _write(writer: Writer, address: Address) -> None:
    """Write until the server is gone."""
    try:
        connection = await Connection.open(address)
        while True:
            await writer.write(connection)
    except LostError:
        return


class Witness:
    """Looks at everything after a restart."""

    def __init__(self, writers: list[Writer]) -> None:
        self.counts: Counter[str] = Counter()
        self._writers = writers
        self._revision = 0

    async def look(self, address: Address) -> None:
        """List all objects and check the laws."""
        connection = await Connection.open(address)
        found: dict[Key, Any] = {}
        revision = 0
        for kind in KINDS:
            reply = await connection.ask("GET", kind.collection())
            assert reply.status == 200, reply
            tree = reply.json
            revision = int(tree["metadata"]["resourceVersion"])
            for item in tree["items"]:
                metadata = item["metadata"]
                found[Key(kind, metadata.get("namespace", ""), metadata["name"])] = item
        connection.close()
        self._check_revision(revision)
        for writer in self._writers:
            for key in writer.known:
                writer.take(key, found.pop(key, None))
                self.counts["objects compared"] += 1
        assert not found, f"nobody sent {next(iter(found))}"
        self._check_given()

    def _check_revision(self, revision: int) -> None:
        newest = max((w.revision or 0 for writer in self._writers for w in writer.log), default=0)
        newest = max(newest, self._revision)
        assert revision >= newest, f"revision went back from {newest} to {revision}"
        self._revision = revision

    def _check_given(self) -> None:
        given = [w.revision for writer in self._writers for w in writer.log if w.revision]
        assert len(given) == len(set(given)), "a revision was given twice"


def run(plan: Plan, rounds: int = ROUNDS) -> Outcome:
    """Run the campaign."""
    tally = Tally("server-crash", lambda seed, number: CrashCase(seed, number, rounds))
    started = time.monotonic()
    tally.run(plan)
    figures = {"cases": str(tally.cases), "seed": str(plan.seed)}
    starts, starting_ms = tally.counts.pop("starts", 0), "milliseconds of all starts"
    mean_ms = tally.counts.pop(starting_ms, 0) / max(starts, 1)
    figures |= {name: f"{count:,}" for name, count in tally.counts.items()}
    figures |= {"starts": f"{starts:,}", "mean start": f"{mean_ms:.0f} ms"}
    figures["seconds"] = f"{time.monotonic() - started:.0f}"
    return Outcome(figures, tuple(tally.faults.values()))
