"""Send the largest and worst requests to a server, and measure how long others wait meanwhile.

One real `moor server` over TLS. A case is one request of a user with ordinary rights in a namespace
of their own: one of the worst known, or a random one of the same kinds, with any list, map or text
of any kind filled up to 3 MiB. Meanwhile another client, in a process of its own, creates, reads,
lists and deletes small objects. The laws:

1. every request is answered, and no answer is a 5xx;
2. a small request of the other client never takes longer than a bound;
3. the server's log has no traceback.

The figures say how long small requests took, and how many took longer than 100 ms. On a machine
that is busy with other things, some do; a probe before the first case shows how many.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random

from soak import Outcome, Plan, Tally
from soak._http import Address, Connection, LostError, request
from soak._servers import Server, environment
from soak._worst_requests import Worst, known, random_request

NAMESPACES = ("mallory-1", "mallory-2", "mallory-3")
OPERATOR = "mallory-3"  # may write objects of the cluster, too
QUIET_S = 2.0
SLOW_S = 0.1
WAIT_S_MAX = 1.0
ANSWER_S_MAX = 60.0


class Session:
    """A server, its users, and the client that measures."""

    def __init__(self, folder: Path) -> None:
        tokens = folder / "tokens.csv"
        tokens.write_text("".join(f"token-{name},{name},{name}\n" for name in NAMESPACES))
        self.server = Server(folder / "data", "--token-auth-file", str(tokens))
        self._folder = folder
        self._runner = asyncio.Runner()
        self._address: Address | None = None
        self._prober: subprocess.Popen[bytes] | None = None
        self._probes = folder / "probes"
        self._quiet_until = 0.0
        self._read = 0

    def open(self) -> None:
        """Start the server and the client that measures, and let it measure a quiet server."""
        self._address = self._runner.run(self.server.start())
        self._runner.run(self._prepare())
        command = [sys.executable, "-m", "soak._prober", str(self._address.port)]
        with self._probes.open("wb") as output:
            self._prober = subprocess.Popen(  # noqa: S603
                [*command, str(self.server.folder)],
                env=environment(),
                stdin=subprocess.PIPE,
                stdout=output,
            )
        time.sleep(QUIET_S)
        self._quiet_until = time.monotonic()

    def close(self) -> None:
        """End everything."""
        if self._prober is not None:
            self._prober.kill()
            self._prober.communicate()
        self.server.kill()
        self._runner.close()

    def play(self, worst: Worst, user: str) -> Counter[str]:
        """Send a request and check the laws."""
        return self._runner.run(self._play(worst, user))

    def end(self) -> None:
        """Let the client that measures finish, and check what it measured."""
        assert self._prober is not None
        assert self._prober.stdin is not None
        self._prober.stdin.close()
        assert self._prober.wait(ANSWER_S_MAX) == 0, "the other client failed"
        if log := self.server.faults():
            raise AssertionError(f"the log:\n{log}")
        worst_s = max(self.waits())
        assert worst_s < WAIT_S_MAX, f"a small request waited {worst_s:.2f} s"

    def waits(self, *, quiet: bool = False) -> list[float]:
        """Return how long small requests took, before the first case or since."""
        rows = [line.split() for line in self._probes.read_text().splitlines()]
        assert all(row[3] in ("200", "201") for row in rows if len(row) == 4), rows
        return [
            float(took_s)
            for _, sent, took_s, _ in (row for row in rows if len(row) == 4)
            if (float(sent) < self._quiet_until) == quiet
        ]

    async def _prepare(self) -> None:
        assert self._address is not None
        admin = await Connection.open(self._address)
        for name in NAMESPACES:
            namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
            reply = await admin.ask("POST", "/api/v1/namespaces", namespace)
            assert reply.status == 201, reply
            is_operator = name == OPERATOR
            binding = {
                "apiVersion": "rbac.authorization.k8s.io/v1",
                "kind": "ClusterRoleBinding" if is_operator else "RoleBinding",
                "metadata": {"name": name},
                "roleRef": {
                    "apiGroup": "rbac.authorization.k8s.io",
                    "kind": "ClusterRole",
                    "name": "cluster-admin",
                },
                "subjects": [{"kind": "User", "name": name}],
            }
            where = "" if is_operator else f"/namespaces/{name}"
            kind = "clusterrolebindings" if is_operator else "rolebindings"
            path = f"/apis/rbac.authorization.k8s.io/v1{where}/{kind}"
            reply = await admin.ask("POST", path, binding)
            assert reply.status == 201, reply
        admin.cut()

    async def _play(self, worst: Worst, user: str) -> Counter[str]:
        assert self._address is not None
        connection = await Connection.open(self._address)
        try:
            if worst.before is not None:
                path, body = worst.before
                connection.send(_as_user(request("POST", path, body), user))
                reply = await connection.answer()
                assert reply.status < 500, reply
            data = request(
                worst.method, worst.path, worst.body, media=worst.media, accept=worst.accept
            )
            connection.send(_as_user(data, user))
            reply = await connection.answer()
        except LostError:
            # A body that is too large is refused before it is read.
            return Counter({"closed": 1})
        finally:
            connection.cut()
        assert reply.status < 500, f"{reply.status}: {reply.body[:1000]!r}"
        return Counter({f"answers {reply.status // 100}xx": 1, f"answered {reply.status}": 1})


def _as_user(data: bytes, user: str) -> bytes:
    head, line_end, rest = data.partition(b"\r\n")
    return head + line_end + f"Authorization: Bearer token-{user}\r\n".encode() + rest


@dataclass(frozen=True)
class StallCase:
    """One request to a server that others use."""

    session: Session
    worst: Worst
    user: str

    def outcomes(self) -> Counter[str]:
        """Return what became of the request; raises when a law is broken."""
        return self.session.play(self.worst, self.user)

    def __str__(self) -> str:
        worst = self.worst
        shown = f"{worst.method} {worst.path[:200]} ({worst.media}, {len(worst.body)} bytes)"
        return f"{worst.name}: {shown} by {self.user}: {worst.body[:300]!r}"


def make_case(session: Session, seed: int, number: int) -> StallCase:
    """Return a case of a seed: first the worst known ones, then random ones."""
    random = Random(f"{seed}/{number}")  # noqa: S311
    user = NAMESPACES[number % len(NAMESPACES)]
    worst = known(user)
    if number < len(worst) * len(NAMESPACES):
        return StallCase(session, worst[number // len(NAMESPACES)], user)
    return StallCase(session, random_request(random, user), user)


@contextmanager
def running() -> Iterator[Session]:
    """Run a server for a session."""
    with tempfile.TemporaryDirectory(prefix="stall-") as folder:
        session = Session(Path(folder))
        try:
            session.open()
            yield session
        finally:
            session.close()


def run(plan: Plan) -> Outcome:
    """Run the campaign."""
    started = time.monotonic()
    with running() as session:
        tally = Tally("stall", lambda seed, number: make_case(session, seed, number))
        tally.run(plan)
        tally.finish(session.end)
        quiet, waits = session.waits(quiet=True), session.waits()
        memory = session.server.memory_bytes()
    figures = {"cases": f"{tally.cases:,}", "seed": str(plan.seed)}
    figures |= {name: f"{count:,}" for name, count in sorted(tally.counts.items())}
    figures["small requests before"] = _shown(quiet)
    figures["small requests meanwhile"] = _shown(waits)
    figures["memory of the server"] = f"{memory / 2**20:.0f} MiB"
    figures["seconds"] = f"{time.monotonic() - started:.0f}"
    return Outcome(figures, tuple(tally.faults.values()))


def _shown(waits: list[float]) -> str:
    ranked = sorted(waits)
    p50, p99 = (ranked[int(len(ranked) * part)] * 1e3 for part in (0.5, 0.99))
    slow = sum(wait > SLOW_S for wait in ranked)
    return (
        f"{len(ranked):,}: p50 {p50:.1f} ms, p99 {p99:.1f} ms, max {ranked[-1] * 1e3:.1f} ms;"
        f" {slow} over {SLOW_S * 1e3:.0f} ms"
    )
