"""What a pod would cost at least: the steps that nobody can leave out, and nothing else.

    dev.py bench floor

Each step is measured alone, with the libraries that Moorage uses: reading and writing JSON of an
allocated claim with msgspec, TLS records with OpenSSL, parsing requests with httptools,
SQLite with sixteen writes a commit, asyncio waking up for a message on a socket. A table multiplies
them by how often they happen for a pod with a claim from a template. What Kubernetes asks for
(authorization, admission, validation, managed fields, scheduling) is not among them, so no server
reaches the floor; the distance to `bench live` is what could be gained at most.

CPU time of one core, the best of five; "client" is whoever creates pods.
"""

from __future__ import annotations

import asyncio
import socket
import sqlite3
import ssl
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import httptools
import msgspec

from benchmarks._clientserver import CLAIM
from moorage.api.resource.v1 import ResourceClaim
from moorage.api.timestamp import Timestamp
from moorage.apiserver.auth.certificates import authority_certificate, new_key, server_certificate

REPEAT = 5
WRITES = 7  # pod, claim, claim in the pod's status, finalizer, allocation, binding, event
OWN_WRITES = 6  # of the programs: all but the pod
EVENTS = 6  # of pods and claims, which the programs watch
CLIENT_EVENTS = 1  # of bound pods
COMMIT = 16  # writes
BODY = len(CLAIM)  # bytes


class Step(NamedTuple):
    """A step: what it takes, and how often it happens for a pod."""

    name: str
    us: float
    processes: float  # times, if programs are processes
    together: float  # times, if all is in one process


def main() -> None:
    """Print the steps and their sums."""
    print(f"{'step':44}{'µs':>8}{'times a pod':>24}{'ms a pod':>22}")
    print(f"{'':52}{'processes':>12}{'one process':>12}{'processes':>11}{'one process':>12}")
    apart_ms = together_ms = 0.0
    for step in steps():
        apart, together = step.us * step.processes / 1e3, step.us * step.together / 1e3
        apart_ms, together_ms = apart_ms + apart, together_ms + together
        print(
            f"{step.name:44}{step.us:8.1f}{step.processes:12.0f}{step.together:12.0f}"
            f"{apart:11.3f}{together:12.3f}"
        )
    print(f"{'floor':76}{apart_ms:11.3f}{together_ms:12.3f}")
    print(f"{'pods/s on one core':76}{1e3 / apart_ms:11,.0f}{1e3 / together_ms:12,.0f}")


def steps() -> list[Step]:
    """Return all steps. A message is a request, a response, or an event of a watch."""
    messages = 2 * WRITES + EVENTS + CLIENT_EVENTS
    client = 2 + CLIENT_EVENTS  # messages that are left in one process: the client is apart
    decode, encode, tls = _decoding(CLAIM, ResourceClaim), _encoding(CLAIM, ResourceClaim), _tls()
    return [
        # The receiver of each message reads it; the server reads what it has stored from memory.
        Step("decode an object (msgspec)", decode, messages, client),
        # A request is written by its sender; what the server stores is also response and event.
        Step("encode an object (msgspec)", encode, OWN_WRITES + 1 + WRITES, 1 + WRITES),
        Step("encrypt and decrypt a message (TLS)", tls, messages, client),
        Step("parse a request and a response (httptools)", _http(), WRITES, 1),
        Step("wake up for a message (asyncio, socket)", _wake_up(), messages, client),
        Step("hand over to a task in the process (asyncio)", _hand_over(), WRITES, messages),
        Step(f"store an object (SQLite, {COMMIT} a commit)", _sqlite(), WRITES, WRITES),
    ]


# --- steps --------------------------------------------------------------------------------------


def _best_us(work: Callable[[int], None], count: int) -> float:
    """Return the CPU microseconds of one of many."""
    best = float("inf")
    for _ in range(REPEAT):
        start = time.process_time()
        work(count)
        best = min(best, time.process_time() - start)
    return best / count * 1e6


def _read(class_: type[Any], text: Any) -> Any:
    return class_.parse(text)


def _decoding(data: bytes, struct: type[Any]) -> float:
    decoder = msgspec.json.Decoder(struct, dec_hook=_read)

    def work(count: int) -> None:
        for _ in range(count):
            decoder.decode(data)

    return _best_us(work, 10_000)


def _encoding(data: bytes, struct: type[Any]) -> float:
    value = msgspec.json.decode(data, type=struct, dec_hook=_read)
    encoder = msgspec.json.Encoder(enc_hook=str)

    def work(count: int) -> None:
        for _ in range(count):
            encoder.encode(value)

    return _best_us(work, 10_000)


def _tls() -> float:
    with tempfile.TemporaryDirectory() as folder:
        client, server = _connected(Path(folder))
    (sender, outgoing), (receiver, incoming) = client, server
    body = b"x" * BODY

    def work(count: int) -> None:
        for _ in range(count):
            sender.write(body)
            incoming.write(outgoing.read())
            receiver.read(BODY + 1)

    return _best_us(work, 10_000)


Side = tuple[ssl.SSLObject, ssl.MemoryBIO]  # with what is sent, or received


def _connected(folder: Path) -> tuple[Side, Side]:
    """Return both sides of a connection that has been negotiated."""
    now = Timestamp.parse(f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}")
    authority = authority_certificate(new_key(), now)
    own = server_certificate(authority, now)
    (folder / "tls.crt").write_bytes(own.certificate)
    (folder / "tls.key").write_bytes(own.key)
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving.load_cert_chain(folder / "tls.crt", folder / "tls.key")
    trusting = ssl.create_default_context(cadata=authority.certificate.decode())
    trusting.check_hostname = False
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = trusting.wrap_bio(to_client, sent := ssl.MemoryBIO())
    server = serving.wrap_bio(to_server, answered := ssl.MemoryBIO(), server_side=True)
    for _ in range(4):
        for side in (client, server):
            with suppress(ssl.SSLWantReadError):
                side.do_handshake()
            to_server.write(sent.read())
            to_client.write(answered.read())
    return (client, sent), (server, to_server)


def _http() -> float:
    request = (
        b"POST /api/v1/namespaces/test/pods HTTP/1.1\r\nHost: localhost:6443\r\n"
        b"Content-Type: application/json\r\nAccept: application/json\r\n"
        b"User-Agent: moor\r\nContent-Length: %d\r\n\r\n%b" % (BODY, b"x" * BODY)
    )
    response = (
        b"HTTP/1.1 201 Created\r\nContent-Type: application/json\r\n"
        b"Audit-Id: 0b6dd4e2-4d3b-4a51-9a0c-000000000000\r\nContent-Length: %d\r\n\r\n%b"
    ) % (BODY, b"x" * BODY)

    class Sink:
        def on_header(self, name: bytes, value: bytes) -> None: ...
        def on_body(self, body: bytes) -> None: ...

    def work(count: int) -> None:
        asked, answered = httptools.HttpRequestParser(Sink()), httptools.HttpResponseParser(Sink())
        for _ in range(count):
            asked.feed_data(request)
            answered.feed_data(response)

    return _best_us(work, 10_000)


def _wake_up() -> float:
    """Return what it takes to send a message over a socket, and to be woken up by it."""

    async def exchange(count: int) -> None:
        left, right = socket.socketpair()
        reader, other = await asyncio.open_connection(sock=left)
        _, writer = await asyncio.open_connection(sock=right)
        body = b"x" * BODY
        for _ in range(count):
            writer.write(body)
            await reader.readexactly(BODY)
        for each in (writer, other):
            each.close()

    return _best_us(lambda count: asyncio.run(exchange(count)), 5_000)


def _hand_over() -> float:
    """Return what it takes to wait for the result of another task."""

    async def work(count: int) -> None:
        loop = asyncio.get_running_loop()
        for _ in range(count):
            future = loop.create_future()
            loop.call_soon(future.set_result, None)
            await future

    return _best_us(lambda count: asyncio.run(work(count)), 20_000)


def _sqlite() -> float:
    with tempfile.TemporaryDirectory() as folder:
        database = sqlite3.connect(Path(folder) / "store", isolation_level=None)
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = FULL")
        database.execute("CREATE TABLE change (revision INTEGER PRIMARY KEY, key TEXT, value BLOB)")
        database.execute(
            "CREATE TABLE current (key TEXT PRIMARY KEY, revision INTEGER) WITHOUT ROWID"
        )
        body = b"x" * BODY
        number = 0

        def work(count: int) -> None:
            nonlocal number
            for _ in range(count // COMMIT):
                database.execute("BEGIN")
                for _ in range(COMMIT):
                    number += 1
                    key = f"/registry/pods/test/pod-{number % 1000}"
                    database.execute("INSERT INTO change VALUES (?, ?, ?)", (number, key, body))
                    database.execute("REPLACE INTO current VALUES (?, ?)", (key, number))
                database.execute("COMMIT")

        found = _best_us(work, 3_200)
        database.close()
        return found


if __name__ == "__main__":
    main()
