"""Send random requests to an API server: it answers all of them, and none with a server error.

One real `moor server` over TLS; a case is one request. Most are nearly right: objects of every kind
in every version and form, whole and damaged, patches, selectors, options; some are hardly HTTP. The
laws:

1. every whole request is answered within a bound, and no answer is a 5xx;
2. a rejection in JSON is a Status with reason and code;
3. a request that was refused, or was a dry run, has changed nothing: the revision is the same, or
   only what the server keeps by itself is newer;
4. now and then: what is stored can be read, in every version and form, and all of it is listed;
5. the server goes on serving, its log has no traceback, and its store finds nothing wrong.

State carries over from case to case, so a case alone may not reproduce its result in the sequence.
"""

from __future__ import annotations

import asyncio
import re
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from random import Random
from typing import Any

from moorage.store.sqlite.maintenance import check
from soak import Outcome, Plan, Tally
from soak._http import Address, Connection, LostError, Reply
from soak._requests import FORMS, NAMESPACE, SERVED, Sent, make_request
from soak._servers import Server

ANSWER_S_MAX = 10.0
ODD_ANSWER_S = 0.3  # how long an answer to what may be no whole request is waited for
WATCH_S = 0.05
LOOK_EVERY = 1000  # cases
WRITES = ("POST", "PUT", "PATCH", "DELETE")
SHOWN_BYTES = 3000
# Counts of quotas, default accounts, rules of roles and the state of definitions are written by the
# server, by and by.
SERVERS_OWN = (
    *("resourcequotas", "serviceaccounts", "clusterroles", "namespaces"),
    "customresourcedefinitions",
)


class ServerFaultError(AssertionError):
    """A server error in an answer; the log decides its kind."""

    def __init__(self, text: str, log: str) -> None:
        super().__init__(f"{text}\n{log}")
        self.kind = re.sub(r"\d+|0x[0-9a-f]+", "", log.split("Invalid HTTP")[0][-300:]) or text


class Session:
    """A server, a connection to it, and its known state."""

    def __init__(self, server: Server) -> None:
        self.counts: Counter[str] = Counter()
        self.server = server
        self._runner = asyncio.Runner()
        self._address: Address | None = None
        self._connection: Connection | None = None
        self._revision = 0

    def open(self) -> None:
        """Start the server."""
        self._address = self._runner.run(self.server.start())
        self._runner.run(self._prepare())

    def close(self) -> None:
        """End the server."""
        if self._connection is not None:
            self._connection.cut()
        self._runner.run(asyncio.sleep(0))
        self.server.kill()
        self._runner.close()

    def end(self) -> None:
        """Look at everything, also at the store that the server leaves."""
        self.look()
        self.server.kill()
        findings = check(self.server.folder / "store")
        assert not findings, findings[0]

    def play(self, sent: Sent) -> Counter[str]:
        """Send a request and check the laws."""
        return self._runner.run(self._play(sent))

    def look(self) -> None:
        """Read everything that is stored, and then remove most of it."""
        self._runner.run(self._look())

    def ask(self, method: str, path: str, **options: Any) -> Reply:
        """Send a plain request and return the answer."""
        return self._runner.run(self._ask(method, path, **options))

    # --- one case -----------------------------------------------------------------------------

    async def _play(self, sent: Sent) -> Counter[str]:
        if not sent.is_whole:
            return await self._play_odd(sent)
        connection = await self._connected()
        connection.send(sent.data)
        if sent.is_watch:
            return await self._play_watch(connection)
        try:
            async with asyncio.timeout(ANSWER_S_MAX):
                reply = await connection.answer(has_body=sent.method != "HEAD")
        except LostError:
            # What HTTP itself does not allow is refused by closing, or with a plain 400.
            self._connection = None
            await self._check_serving()
            return Counter({"closed": 1})
        self._check_reply(sent, reply)
        if reply.headers.get("connection", "").lower() == "close":
            self._drop()
        if sent.method in WRITES:
            await self._check_unchanged(sent, reply)
        return Counter({f"answers {reply.status // 100}xx": 1, f"answered {reply.status}": 1})

    async def _play_watch(self, connection: Connection) -> Counter[str]:
        """Look at the beginning of the answer, which may go on."""
        try:
            async with asyncio.timeout(ANSWER_S_MAX):
                status, _ = await connection.head()
            if status >= 500 and status != HTTPStatus.GATEWAY_TIMEOUT:
                raise ServerFaultError(f"a watch: {status}", self.server.faults())
            await asyncio.sleep(WATCH_S if status == 200 else 0)
        except (LostError, OSError, EOFError):
            await self._check_serving()
        finally:
            self._drop()
        return Counter({"watches": 1})

    async def _play_odd(self, sent: Sent) -> Counter[str]:
        """Send what may be no request, and see that the server goes on."""
        assert self._address is not None
        connection = await Connection.open(self._address)
        connection.send(sent.data)
        try:
            async with asyncio.timeout(ODD_ANSWER_S):
                reply = await connection.answer()
            assert reply.status < 500, reply
            outcome = "odd bytes answered"
        except LostError:
            outcome = "odd bytes refused by closing"
        except TimeoutError:
            outcome = "odd bytes that want more"
        connection.cut()
        await self._check_serving()
        self._revision = await self._read_revision()
        return Counter({outcome: 1})

    def _check_reply(self, sent: Sent, reply: Reply) -> None:
        if reply.status >= 500 and not _is_due(sent, reply):
            text = f"answered {reply.status}: {reply.body[:1000]!r}"
            raise ServerFaultError(text, self.server.faults())
        assert reply.status >= 200, reply
        is_json = reply.headers.get("content-type", "").startswith("application/json")
        if reply.status >= 400 and is_json and sent.method != "HEAD":
            tree = reply.json
            assert (tree["kind"], tree["code"]) == ("Status", reply.status), tree
            assert tree["message"], tree

    async def _check_unchanged(self, sent: Sent, reply: Reply) -> None:
        revision = await self._read_revision()
        is_dry = any(name == "dryRun" and value == "All" for name, value in sent.query)
        if reply.status >= 400 or is_dry:
            changed = [] if revision == self._revision else await self._newer(self._revision)
            assert not changed, f"{reply.status}, yet there is a new revision of {changed}"
            self.counts["refused writes that changed nothing"] += 1
        self._revision = revision

    # --- the state ----------------------------------------------------------------------------

    async def _connected(self) -> Connection:
        if self._connection is None:
            assert self._address is not None
            self._connection = await Connection.open(self._address)
        return self._connection

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.cut()
            self._connection = None

    async def _ask(self, method: str, path: str, **options: Any) -> Reply:
        connection = await self._connected()
        async with asyncio.timeout(ANSWER_S_MAX):
            return await connection.ask(method, path, **options)

    async def _check_serving(self) -> None:
        reply = await self._ask("GET", "/livez")
        assert reply.status == 200, reply

    async def _read_revision(self) -> int:
        reply = await self._ask("GET", "/api/v1/namespaces?limit=1")
        return int(reply.json["metadata"]["resourceVersion"])

    async def _newer(self, revision: int) -> list[str]:
        """Return the objects that changed since, but for those that the server itself keeps."""
        newer: list[str] = []
        for kind in SERVED:
            if kind.api_version != kind.hub_version or kind.plural in SERVERS_OWN:
                continue
            start = f"/apis/{kind.api_version}" if kind.group else f"/api/{kind.version}"
            reply = await self._ask("GET", f"{start}/{kind.plural}")
            found = [item["metadata"] for item in reply.json.get("items", ())]
            changed = [each for each in found if int(each["resourceVersion"]) > revision]
            newer += [f"{kind.name}/{each['name']}" for each in changed]
        return newer

    async def _prepare(self) -> None:
        connection = await self._connected()
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
        reply = await connection.ask("POST", "/api/v1/namespaces", body)
        assert reply.status in (201, 409), reply
        self._revision = await self._read_revision()

    async def _look(self) -> None:
        found = 0
        for kind in SERVED:
            start = f"/apis/{kind.api_version}" if kind.group else f"/api/{kind.version}"
            path = f"{start}/{kind.plural}"
            for accept in FORMS:
                reply = await self._ask("GET", path, accept=accept)
                is_json_only = kind.group == "apiextensions.k8s.io" and reply.status == 406
                assert reply.status in (200, 405) or is_json_only, f"{path} as {accept}: {reply}"
                if reply.status == 200 and accept == "application/json":
                    found += len(reply.json["items"])
        self.counts["objects read in every version and form"] += found
        await self._clean()
        if log := self.server.faults():
            raise ServerFaultError("the log", log)

    async def _clean(self) -> None:
        """Remove what gathered, so that the campaign goes on with little."""
        for kind in SERVED:
            if not kind.namespaced or kind.plural in ("bindings", "secrets"):
                continue
            start = f"/apis/{kind.api_version}" if kind.group else f"/api/{kind.version}"
            path = f"{start}/namespaces/{NAMESPACE}/{kind.plural}"
            reply = await self._ask("DELETE", f"{path}?gracePeriodSeconds=0")
            assert reply.status in (200, 405), f"{path}: {reply}"
        self._revision = await self._read_revision()


def _is_due(sent: Sent, reply: Reply) -> bool:
    """Return whether a 5xx is as in Kubernetes: for a revision to come, a scale without number."""
    if sent.path.endswith("/scale") and b"the spec replicas field" in reply.body:
        return True
    if reply.status != HTTPStatus.GATEWAY_TIMEOUT:
        return False
    if sent.method == "HEAD":
        return any(name == "resourceVersion" for name, _ in sent.query)
    return b"Too large resource version" in reply.body


@dataclass(frozen=True)
class FuzzCase:
    """One request to a server that has answered others before."""

    session: Session
    number: int
    sent: Sent

    def outcomes(self) -> Counter[str]:
        """Return what became of the request; raises when a law is broken."""
        counts = self.session.play(self.sent)
        if self.number % LOOK_EVERY == LOOK_EVERY - 1:
            self.session.look()
        return counts

    def __str__(self) -> str:
        return f"{self.sent.data[:SHOWN_BYTES]!r}"


def make_case(session: Session, seed: int, number: int) -> FuzzCase:
    """Return a case of a seed."""
    random = Random(f"{seed}/{number}")  # noqa: S311
    return FuzzCase(session, number, make_request(random))


@contextmanager
def running() -> Iterator[Session]:
    """Run a server for a session."""
    with tempfile.TemporaryDirectory(prefix="http-fuzz-") as folder:
        session = Session(Server(Path(folder) / "data"))
        try:
            session.open()
            yield session
        finally:
            session.close()


def run(plan: Plan) -> Outcome:
    """Run the campaign."""
    started = time.monotonic()
    with running() as session:
        tally = Tally("http-fuzz", lambda seed, number: make_case(session, seed, number))
        tally.run(plan)
        tally.finish(session.end)
    figures = {"cases": f"{tally.cases:,}", "seed": str(plan.seed)}
    counts = tally.counts + session.counts
    figures |= {name: f"{count:,}" for name, count in sorted(counts.items())}
    figures["seconds"] = f"{time.monotonic() - started:.0f}"
    return Outcome(figures, tuple(tally.faults.values()))
