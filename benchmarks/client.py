"""The client: the cost of requests on our side, over HTTP and in process, lists and informers.

The server is a trivial application in a process of its own, so that the time of this process is the
client's alone. In the process there is nothing but the client either.
"""

from __future__ import annotations

import asyncio
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks._clientserver import CLAIM, CLAIMS, Trivial
from moorage.api.codec import decode_json
from moorage.api.resource.v1 import ResourceClaim
from moorage.api.timestamp import Timestamp
from moorage.apiserver.auth.credentials import CredentialsFolder
from moorage.client.api_client import ApiClient
from moorage.client.client_factory import RestConfig, http_client
from moorage.client.in_process import InProcessTransport
from moorage.client.indexer import Indexer
from moorage.client.informers import Informer
from moorage.client.writes import Create, Patch, Target

REQUESTS = 3000


def main() -> None:
    """Print the figures."""
    asyncio.run(_measure())


async def _measure() -> None:
    async with _served(Path("none")) as url, http_client(RestConfig(url)) as client:
        await _print_requests("HTTP", client)
        await _print_list(client)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        CredentialsFolder(folder).ensure(Timestamp(datetime.now(UTC)), addresses=("127.0.0.1",))
        authority = (folder / "ca.crt").read_bytes()
        async with (
            _served(folder) as url,
            http_client(RestConfig(url, authority=authority)) as client,
        ):
            await _print_requests("HTTPS", client)
    await _print_requests("in-process", ApiClient(InProcessTransport(Trivial())))
    await _print_events()


@asynccontextmanager
async def _served(folder: Path) -> AsyncIterator[str]:
    command = [sys.executable, "-m", "benchmarks._clientserver", str(folder)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)  # noqa: S603
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip()
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


async def _print_requests(name: str, client: ApiClient) -> None:
    claim = decode_json(CLAIM, ResourceClaim).value
    patch = Patch(Target.of(claim), {"metadata": {"finalizers": ["resource.k8s.io/a"]}})
    asks: dict[str, Callable[[], Awaitable[Any]]] = {
        "get": lambda: client.get(ResourceClaim, "default", "one"),
        "create": lambda: client.write(Create(claim)),
        "patch": lambda: client.write(patch),
    }
    for verb, ask in asks.items():
        await ask()
        for workers in (1, 16):
            cpu_us, rate = await _cost(ask, workers)
            print(f"{name} {verb}, {workers} at a time: {cpu_us:.0f} µs of CPU, {rate:,.0f}/s")


async def _cost(ask: Callable[[], Awaitable[Any]], workers: int) -> tuple[float, float]:
    async def work() -> None:
        for _ in range(REQUESTS // workers):
            await ask()

    cpu, started = time.process_time(), time.perf_counter()
    await asyncio.gather(*(work() for _ in range(workers)))
    spent, elapsed = time.process_time() - cpu, time.perf_counter() - started
    return spent / REQUESTS * 1e6, REQUESTS / elapsed


async def _print_list(client: ApiClient) -> None:
    for limit in (0, 2000):
        cpu, started = time.process_time(), time.perf_counter()
        count, rest = 0, ""
        while True:
            page = await client.list(ResourceClaim, limit=limit, rest=rest)
            count, rest = count + len(page.values), page.continue_token
            if not rest:
                break
        spent, elapsed = time.process_time() - cpu, time.perf_counter() - started
        how = f"pages of {limit:,}" if limit else "at once"
        print(f"list of {count:,} claims, {how}: {spent:.3f} s of CPU, {elapsed:.3f} s")


async def _print_events() -> None:
    """Print the cost of each event in an informer, read from bytes and without a network."""
    client = ApiClient(InProcessTransport(Trivial(events=20_000)))
    objects = Indexer()
    objects.index(ResourceClaim, "uid", lambda claim: (claim.metadata.uid,))
    informer = Informer(client, ResourceClaim, objects, random=random.Random(1).random)  # noqa: S311
    done = asyncio.Event()
    seen = 0

    def count(old: Any, new: Any) -> None:  # noqa: ARG001
        nonlocal seen
        seen += 1
        if seen == CLAIMS + 20_000:
            done.set()

    informer.add_event_handler(count)
    running = asyncio.create_task(informer.run())
    await informer.wait_for_sync()
    cpu = time.process_time()
    await done.wait()
    print(f"informer: {(time.process_time() - cpu) / 20_000 * 1e6:.1f} µs of CPU an event")
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
