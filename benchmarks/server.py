"""The API server over TLS, on SQLite and beside it on etcd: creates, lists, watches, start.

Real `moor server` processes. The clients run in this process, on the same cores, and take CPU time
from the server. The rate of durable creates is first of all the disk's: `bench store` says how many
times a second it syncs.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from statistics import median, quantiles
from typing import Any, NamedTuple

import msgspec

from moorage.store import Store
from moorage.store.etcd import open_etcd
from moorage.store.sqlite import open_sqlite
from soak._http import Address, Connection, encoded, request
from soak._servers import Server
from tests.store.etcdserver import find_etcd, running_etcd

CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
CLIENTS = 16
CREATES = 4_000
LISTED = 40_000
STARTED = 100_000
IDLE_WATCHES = 1_000
WATCHES = 200
FAN_OUT_WRITES = 800
FILLERS = 200


def main() -> None:
    """Print the figures."""
    load = os.getloadavg()[0]
    print(f"{os.cpu_count()} cores, load before the start {load:.1f}")
    with tempfile.TemporaryDirectory() as folder:
        print("-- sqlite")
        path = Path(folder)
        asyncio.run(measure(Server(path / "data"), lambda: open_sqlite(path / "data" / "store")))
    if find_etcd() is None:
        print("-- etcd: cannot be had here")
        return
    with tempfile.TemporaryDirectory() as folder, running_etcd() as etcd:
        print("-- etcd")
        server = Server(Path(folder) / "data", "--etcd-servers", etcd.target)
        asyncio.run(measure(server, lambda: open_etcd(etcd.target)))


async def measure(server: Server, open_store: Any) -> None:
    """Print the figures of a server on one store."""
    try:
        address = await server.start()
        await _print_creates(server, address)
        await _print_idle(server, address)
        await _print_fan_out(server, address)
        samples = [await _sample(address, filling) for filling in FILLINGS]
        server.kill()
        async with open_store() as store:
            for filling, sample in zip(FILLINGS, samples, strict=True):
                await _fill(store, filling, sample)
        await _print_start(server)
        address = await server.start()
        await _print_list(server, address)
    finally:
        server.kill()


# --- writing --------------------------------------------------------------------------------------


def claim(name: str) -> dict[str, Any]:
    """Return a claim such as users write."""
    requests = [{"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com", "count": 2}}]
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": "default", "labels": {"app": "bench"}},
        "spec": {"devices": {"requests": requests}},
    }


async def _print_creates(server: Server, address: Address) -> None:
    for clients in (1, CLIENTS):
        times_s: list[float] = []
        each = CREATES // CLIENTS
        processor_s, started = server.processor_s(), time.perf_counter()
        names = [f"{clients}-{number}" for number in range(clients)]
        await asyncio.gather(*(_create(address, name, each, times_s) for name in names))
        rate = len(times_s) / (time.perf_counter() - started)
        each_ms = (server.processor_s() - processor_s) / len(times_s) * 1e3
        p50_ms, p99_ms = median(times_s) * 1e3, quantiles(times_s, n=100)[-1] * 1e3
        print(
            f"durable creates, {clients:2} clients: {rate:6,.0f}/s, p50 {p50_ms:.1f} ms, "
            f"p99 {p99_ms:.1f} ms; the server has a processor for {each_ms:.2f} ms each"
        )


async def _create(address: Address, name: str, count: int, times_s: list[float]) -> None:
    connection = await Connection.open(address)
    bodies = [
        request("POST", CLAIMS, encoded(claim(f"c-{name}-{number}"))) for number in range(count)
    ]
    for body in bodies:
        started = time.perf_counter()
        connection.send(body)
        reply = await connection.answer()
        times_s.append(time.perf_counter() - started)
        assert reply.status == 201, reply
    connection.close()


class Filling(NamedTuple):
    """Objects that are put into the store, as the server would have written them."""

    path: str
    prefix: str
    sample: dict[str, Any]
    wanted: int


async def _sample(address: Address, filling: Filling) -> dict[str, Any]:
    """Return an object as the server stores it, for many others that are like it."""
    connection = await Connection.open(address)
    reply = await connection.ask("POST", filling.path, filling.sample)
    assert reply.status == 201, reply
    connection.close()
    tree: dict[str, Any] = reply.json
    del tree["metadata"]["resourceVersion"]
    return tree


async def _fill(store: Store, filling: Filling, like: dict[str, Any]) -> None:
    """Put objects into a store until there are as many as wanted."""
    prefix = f"/registry/{filling.prefix}"
    missing = filling.wanted - len((await store.list(prefix)).entries)

    async def write(first: int) -> None:
        for number in range(first, missing, FILLERS):
            name = f"f-{number}"
            metadata = {**like["metadata"], "name": name}
            metadata["uid"] = f"{number:08x}-0000-4000-8000-000000000000"
            await store.create(prefix + name, msgspec.json.encode({**like, "metadata": metadata}))

    await asyncio.gather(*map(write, range(FILLERS)))


def _objects() -> tuple[Filling, ...]:
    node = {"nodeName": "n", "containers": [{"name": "c", "image": "i"}]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "sample"}, "spec": node}
    pool = {"name": "p", "generation": 1, "resourceSliceCount": 1}
    devices = [{"name": f"gpu-{n}", "attributes": {"index": {"int": n}}} for n in range(8)]
    spec = {"driver": "gpu.example.com", "nodeName": "n", "pool": pool, "devices": devices}
    head = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice"}
    slice_ = {**head, "metadata": {"name": "sample"}, "spec": spec}
    return (
        Filling(CLAIMS, "resource.k8s.io/resourceclaims/default/", claim("sample"), LISTED),
        Filling("/api/v1/namespaces/default/pods", "core/pods/default/", pod, 40_000),
        Filling(
            "/apis/resource.k8s.io/v1/resourceslices",
            "resource.k8s.io/resourceslices/",
            slice_,
            STARTED - LISTED - 40_000,
        ),
    )


FILLINGS = _objects()


# --- reading --------------------------------------------------------------------------------------


async def _print_list(server: Server, address: Address) -> None:
    connection = await Connection.open(address)
    await connection.ask("GET", f"{CLAIMS}?limit=1")
    times_s: list[float] = []
    size, processor_s = 0, server.processor_s()
    for _ in range(3):
        started = time.perf_counter()
        reply = await connection.ask("GET", CLAIMS)
        times_s.append(time.perf_counter() - started)
        size = len(reply.body)
        assert len(reply.json["items"]) == LISTED
    each_s = (server.processor_s() - processor_s) / 3
    print(
        f"list of {LISTED:,} claims, {size / 2**20:.0f} MiB: {_said(times_s)} s; "
        f"the server has a processor for {each_s:.2f} s each"
    )
    started = time.perf_counter()
    count, token = 0, ""
    while not count or token:
        tree = (await connection.ask("GET", f"{CLAIMS}?limit=500&continue={token}")).json
        count += len(tree["items"])
        token = tree["metadata"].get("continue", "")
    print(f"the same in pages of 500: {time.perf_counter() - started:.2f} s")
    connection.close()


async def _watches(address: Address, count: int) -> list[Connection]:
    """Return watches of future changes."""
    first = await Connection.open(address)
    listed = (await first.ask("GET", f"{CLAIMS}?limit=1")).json
    first.close()
    query = f"watch=true&allowWatchBookmarks=true&resourceVersion={_revision(listed)}"
    opened: list[Connection] = []
    for _ in range(0, count, 50):
        opened += await asyncio.gather(*(Connection.open(address) for _ in range(50)))
    for connection in opened:
        status, body = await connection.watch(f"{CLAIMS}?{query}")
        assert status == 200, body
    return opened


def _revision(tree: Any) -> str:
    return str(tree["metadata"]["resourceVersion"])


async def _print_idle(server: Server, address: Address) -> None:
    before = server.memory_bytes()
    watches = await _watches(address, IDLE_WATCHES)
    await asyncio.sleep(1)
    more = (server.memory_bytes() - before) / 2**20
    for connection in watches:
        connection.cut()
    base = before / 2**20
    print(f"{IDLE_WATCHES:,} idle watches over TLS: {more:.0f} MiB above {base:.0f} MiB")


async def _print_fan_out(server: Server, address: Address) -> None:
    watches = await _watches(address, WATCHES)
    reading = asyncio.gather(*(_read(watch, FAN_OUT_WRITES) for watch in watches))
    processor_s, started = server.processor_s(), time.perf_counter()
    each = FAN_OUT_WRITES // CLIENTS
    names = [f"fan-{number}" for number in range(CLIENTS)]
    await asyncio.gather(*(_create(address, name, each, []) for name in names), reading)
    events = WATCHES * FAN_OUT_WRITES
    rate = events / (time.perf_counter() - started)
    each_us = (server.processor_s() - processor_s) / events * 1e6
    print(
        f"fan-out, {WATCHES} watches of {FAN_OUT_WRITES} creates: {rate:,.0f} events/s; "
        f"the server has a processor for {each_us:.0f} µs each, creates included"
    )
    for connection in watches:
        connection.cut()


async def _read(watch: Connection, count: int) -> None:
    seen = 0
    async for lines in watch.lines():
        seen += len(lines)
        if seen >= count:
            return


async def _print_start(server: Server) -> None:
    times_s: list[float] = []
    for _ in range(3):
        started = time.perf_counter()
        address = await server.start()
        connection = await Connection.open(address)
        reply = await connection.ask("GET", f"{CLAIMS}?limit=1")
        times_s.append(time.perf_counter() - started)
        assert reply.status == 200, reply
        connection.close()
        server.kill()
    print(f"start with {STARTED:,} objects, to the first answer: {_said(times_s)} s")


def _said(times_s: Iterable[float]) -> str:
    return " ".join(f"{time_s:.2f}" for time_s in times_s)
