"""What the page costs its server: 5,000 nodes, 40,000 devices, 20 viewers of a busy cluster.

Goals: the fleet 200 KB compressed with the page, an explanation 500 ms, an answer to an expression
300 ms, one file 1.5 MB, 15 % of a core for viewers. Viewers are another process, over loopback.
The cluster changes a hundred times a second: claims get and lose devices, pods come and go.
"""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import msgspec
from msgspec.structs import replace

import dev
from moorage.api.core import Node, Pod
from moorage.api.core.node import NodeStatus
from moorage.api.core.pod import PodResourceClaim, PodSpec, PodStatus
from moorage.api.gates import Gates
from moorage.api.meta import ObjectMeta
from moorage.api.quantity import Quantity
from moorage.api.resource.v1 import (
    AllocationResult,
    CELDeviceSelector,
    Device,
    DeviceAllocationResult,
    DeviceAttribute,
    DeviceClaim,
    DeviceClass,
    DeviceClassSpec,
    DeviceRequest,
    DeviceRequestAllocationResult,
    DeviceSelector,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
    ResourceClaimStatus,
    ResourcePool,
    ResourceSlice,
    ResourceSliceSpec,
)
from moorage.api.timestamp import Timestamp
from moorage.apiserver.http.messages import Request, Response
from moorage.hardware.attributes import NUMA_NODE, PCIE_ROOT
from moorage.insight.history import History
from moorage.insight.snapshot.snapshot import Snapshot
from moorage.kit.process_memory import collect_rarely
from moorage.validation.strategy import Context
from moorage.web.feed import Feed, SourceFacts
from moorage.web.local_server import link, listening_page
from moorage.web.page import EVERYTHING, Page
from moorage.web.single_file import single_page

NODES, GPUS, PENDING = 5000, 8, 40
VIEWERS, CHANGES_EACH_S, BUSY_S = 20, 100, 20.0
DRIVER = "gpu.example.com"
ROOM = {"pods": Quantity.parse("110"), "cpu": Quantity.parse("128")}
POST = {"x-moor-ui": "1", "content-type": "application/json"}


def main() -> None:
    """Print sizes, times and the share of a core."""
    collect_rarely()  # as all commands do
    dev.ensure_chromium()
    asyncio.run(_measure())
    asyncio.run(_first_look())
    began_s = time.perf_counter()
    page = single_page(Snapshot.of(_objects()), _context(), title="Fleet")
    size = len(page.encode()) / 1e6
    print(f"one file: {size:.2f} MB, written in {time.perf_counter() - began_s:.1f} s")


async def _measure() -> None:
    facts = SourceFacts("fleet", "cluster", is_live=True)
    feed = Feed(facts, _context(), now=_now, history=History())
    feed.publish(_objects(), revision=1, time=_now())
    page = Page(feed, EVERYTHING)
    try:
        await _questions(page)
        await _viewers(page, feed)
    finally:
        await page.close()


async def _questions(page: Page[str]) -> None:
    cookie = page.logins.redeem(page.logins.link_token("you"))
    headers = {"host": "localhost", "cookie": f"moor-ui={cookie}", "accept-encoding": "gzip"}

    async def ask(path: str, body: Any = None) -> tuple[float, bytes]:
        method, more = ("GET", {}) if body is None else ("POST", POST)
        data = b"" if body is None else msgspec.json.encode(body)
        began_s = time.perf_counter()
        request = Request(method, f"/ui/{path}", {}, {**headers, **more}, data)
        answer = await page.answer(request, _nobody)
        assert isinstance(answer, Response)
        assert answer.status == 200, answer.body
        return time.perf_counter() - began_s, answer.body

    first_s, body = await ask("fleet")
    next_s, _ = await ask("fleet")
    plain = len(gzip.decompress(body)) / 1000
    print(
        f"{NODES:,} nodes, {NODES * GPUS:,} devices: /ui/fleet {len(body) / 1000:.0f} KB "
        f"compressed, {plain:.0f} KB plain; first {first_s:.1f} s, then {next_s * 1000:.1f} ms"
    )
    expression = f'device.attributes["{DRIVER}"].model == "H100"'
    drain = {"changes": ["drain node-0001"]}
    for name, path, asked in (
        ("explain", "explain", {"namespace": "team", "name": "wait-000"}),
        ("cel", "cel", {"expression": expression}),
        ("cel, a mistake in it", "cel", {"expression": expression.replace("H1", "H2")}),
        ("what-if", "what-if", drain),
    ):
        cpu_s, times = [time.process_time()], []
        for number in range(4):
            # The answer for a pod is kept: each time another one.
            which = {**asked, "name": f"wait-{number:03d}"} if "name" in asked else asked
            times.append((await ask(path, which))[0])
            cpu_s.append(time.process_time())
        later, work = sum(times[1:]) / 3, (cpu_s[-1] - cpu_s[1]) / 3
        print(
            f"  {name}: first {times[0] * 1000:.0f} ms, CPU {(cpu_s[1] - cpu_s[0]) * 1000:.0f} ms; "
            f"then {later * 1000:.0f} ms, CPU {work * 1000:.0f} ms",
            flush=True,
        )


async def _first_look() -> None:
    """Measure what somebody waits for who opens the page and asks at once why a pod waits."""
    facts = SourceFacts("fleet", "cluster", is_live=True)
    feed = Feed(facts, _context(), now=_now, history=History())
    feed.publish(_objects(), revision=1, time=_now())
    page = Page(feed, EVERYTHING)
    try:
        async with listening_page(page) as url:
            address = link(url, page.logins.link_token("you"))
            shown_s, explained_s = await asyncio.to_thread(_look, address)
    finally:
        await page.close()
    print(
        f"in a browser: the fleet is shown {shown_s:.2f} s after its link is opened for the first "
        f"time; asked at once, the first explanation {explained_s * 1000:.0f} ms later",
        flush=True,
    )


def _look(address: str) -> tuple[float, float]:
    command = [sys.executable, "-m", "benchmarks._page_look", address]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)  # noqa: S603
    shown_s, explained_s = map(float, done.stdout.split())
    return shown_s, explained_s


async def _viewers(page: Page[str], feed: Feed) -> None:
    """Measure the time that publishing changes takes, without and with viewers."""
    alone = await _busy(feed)
    async with listening_page(page) as url:
        links = [link(url, page.logins.link_token("you")) for _ in range(VIEWERS)]
        command = [sys.executable, "-c", _VIEWER, url, *links]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as viewers:  # noqa: S603
            assert viewers.stdout is not None
            await asyncio.to_thread(viewers.stdout.readline)  # all are there
            watched = await _busy(feed)
            viewers.terminate()
            events = sum(int(line) for line in viewers.stdout if line.strip().isdigit())
    print(
        f"  {CHANGES_EACH_S} changes a second: {alone:.1%} of a core without viewers, "
        f"{watched:.1%} with {VIEWERS} of them; each had {events / VIEWERS / BUSY_S:.1f} events "
        "a second"
    )


async def _busy(feed: Feed) -> float:
    """Return the share of a core that a while of changes takes."""
    cpu_s, began_s = time.process_time(), time.perf_counter()
    number = 0
    while (passed_s := time.perf_counter() - began_s) < BUSY_S:
        while number < passed_s * CHANGES_EACH_S:
            number += 1
            feed.publish([_change(number)], revision=feed.revision + 1, time=_now())
        await asyncio.sleep(0.02)
    return (time.process_time() - cpu_s) / (time.perf_counter() - began_s)


def _change(number: int) -> Any:
    if number % 4 == 0:
        return _pod(number % PENDING, phase="Running", node=f"node-{number % NODES:04d}")
    claim = _claim(number * 7 % NODES, 0)
    return claim if number % 2 else replace(claim, status=ResourceClaimStatus())


async def _nobody() -> None:
    return None


def _context() -> Context:
    return Context(gates=Gates.parse(), now=_now())


def _now() -> Timestamp:
    return Timestamp(datetime.now(UTC))


# --- the fleet --------------------------------------------------------------------------------


def _objects() -> list[Any]:
    found: list[Any] = [
        DeviceClass(
            metadata=ObjectMeta(name="gpu"),
            spec=DeviceClassSpec(
                selectors=(
                    DeviceSelector(
                        cel=CELDeviceSelector(expression=f'device.driver == "{DRIVER}"')
                    ),
                )
            ),
        )
    ]
    for number in range(NODES):
        found += _node(number)
    for number in range(PENDING):
        found += [_wanted(number), _pod(number)]
    return found


def _node(number: int) -> Iterator[Any]:
    name = f"node-{number:04d}"
    yield Node(metadata=ObjectMeta(name=name), status=NodeStatus(allocatable=ROOM))
    yield ResourceSlice(
        metadata=ObjectMeta(name=name),
        spec=ResourceSliceSpec(
            driver=DRIVER,
            pool=ResourcePool(name=name, generation=1, resource_slice_count=1),
            node_name=name,
            devices=tuple(map(_device, range(GPUS))),
        ),
    )
    yield _claim(number, 0)
    yield _claim(number, 2)


def _device(number: int) -> Device:
    return Device(
        name=f"gpu-{number}",
        attributes={
            NUMA_NODE: DeviceAttribute(int_value=number * 2 // GPUS),
            PCIE_ROOT: DeviceAttribute(string_value=f"pci0000:{number // 2:02x}"),
            "model": DeviceAttribute(string_value="H100"),
        },
    )


def _claim(number: int, first: int) -> ResourceClaim:
    results = tuple(
        DeviceRequestAllocationResult(
            request="r", driver=DRIVER, pool=f"node-{number:04d}", device=f"gpu-{each}"
        )
        for each in (first, first + 1)
    )
    allocation = AllocationResult(devices=DeviceAllocationResult(results=results))
    return ResourceClaim(
        metadata=ObjectMeta(namespace="team", name=f"job-{number}-{first}"),
        status=ResourceClaimStatus(allocation=allocation),
    )


def _wanted(number: int) -> ResourceClaim:
    exactly = ExactDeviceRequest(
        device_class_name="gpu", allocation_mode="ExactCount", count=6 + number % 3
    )
    request = DeviceRequest(name="gpus", exactly=exactly)
    return ResourceClaim(
        metadata=ObjectMeta(namespace="team", name=f"wait-{number:03d}", uid=f"claim-{number}"),
        spec=ResourceClaimSpec(devices=DeviceClaim(requests=(request,))),
    )


def _pod(number: int, phase: str = "Pending", node: str = "") -> Pod:
    name = f"wait-{number:03d}"
    entry = PodResourceClaim(name="gpus", resource_claim_name=name)
    return Pod(
        metadata=ObjectMeta(namespace="team", name=name, uid=f"pod-{number}"),
        spec=PodSpec(resource_claims=(entry,), node_name=node, scheduler_name="default-scheduler"),
        status=PodStatus(phase=phase),
    )


# --- viewers, in a process of their own -------------------------------------------------------

_VIEWER = """
import asyncio, json, signal, sys
from urllib.parse import urlsplit
address = urlsplit(sys.argv[1])
events = 0
async def send(path, cookie=""):
    reader, writer = await asyncio.open_connection(address.hostname, address.port, limit=1 << 26)
    head = f"GET {path} HTTP/1.1\\r\\nHost: {address.netloc}\\r\\nCookie: {cookie}\\r\\n\\r\\n"
    writer.write(head.encode())
    return reader, (await reader.readuntil(b"\\r\\n\\r\\n")).decode(), writer
async def view(link, ready):
    global events
    parts = urlsplit(link)
    _, head, writer = await send(f"{parts.path}?{parts.query}")
    line = next(each for each in head.splitlines() if each.lower().startswith("set-cookie"))
    cookie = line.split(": ", 1)[1].partition(";")[0]
    writer.close()
    while True:
        reader, head, writer = await send("/ui/fleet", cookie)
        size = next(e for e in head.splitlines() if e.lower().startswith("content-length"))
        fleet = json.loads(await reader.readexactly(int(size.split(": ")[1])))
        writer.close()
        reader, _, writer = await send(f"/ui/events?since={fleet['revision']}", cookie)
        ready.release()
        while text := await reader.readline():
            if text.startswith(b"event: reload"):
                break
            events += text.startswith(b"event: fleet")
        writer.close()
async def main():
    ready, loop = asyncio.Semaphore(0), asyncio.get_running_loop()
    stopped = asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, stopped.set)
    viewers = [asyncio.create_task(view(link, ready)) for link in sys.argv[2:]]
    for _ in viewers:
        await ready.acquire()
    print("ready", flush=True)
    await stopped.wait()
    for each in viewers:
        each.cancel()
    await asyncio.gather(*viewers, return_exceptions=True)
    print(events, flush=True)
asyncio.run(main())
"""


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        main()
