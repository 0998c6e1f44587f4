"""Drivers report the health of devices, and the status of their pods shows it."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import grpc
import pytest
from msgspec.structs import replace

from moorage.api.catalogue import CATALOGUE
from moorage.api.core.pod import (
    HEALTHY,
    UNHEALTHY,
    UNKNOWN,
    ContainerExtendedResourceRequest,
    ContainerStatus,
    Pod,
    PodExtendedResourceClaimStatus,
    ResourceHealth,
    ResourceStatus,
)
from moorage.api.gates import Gates
from moorage.api.quantity import Quantity
from moorage.api.timestamp import Timestamp
from moorage.kit.clock import ManualClock
from moorage.node.dra import health_streams
from moorage.node.dra.health_info import (
    DEVICES_MAX,
    DeviceKey,
    HealthInfo,
    ReportedHealth,
    cut,
    read_report,
)
from moorage.node.dra.health_streams import HealthStreams
from moorage.validation.registry import before_status_update
from moorage.validation.strategy import Context
from moorage.wire import health_v1_pb2 as wire
from moorage.wire.services import DRA_V1, HEALTH_V1, HEALTH_V1ALPHA1
from tests.node.dra.worlds import World, connected, play, until
from tests.node.fakedriver import FakeDriver, device

GPU = "gpu.example.com"
D = DeviceKey("pool", "d")


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health_streams, "REPORT_PAUSE_S", 0.0)
    monkeypatch.setattr(health_streams, "SAVE_PAUSE_S", 0.0)


def said(name: str, health: int, message: str = "", timeout_s: int = 0) -> wire.DeviceHealth:
    return wire.DeviceHealth(
        device=wire.DeviceIdentifier(pool_name="pool", device_name=name),
        health=health,  # type: ignore[arg-type]
        message=message,
        health_check_timeout_seconds=timeout_s,
    )


# --- the cache ------------------------------------------------------------------------------------


def test_what_was_said_holds_for_its_time() -> None:
    cache = HealthInfo()
    change = cache.report(GPU, [(D, ReportedHealth(HEALTHY, "fine", 10, seen_s=0))], 0)
    assert change.devices == (D,)
    assert cache.get(GPU, D, 10).health == HEALTHY
    assert cache.get(GPU, D, 10.1) == ReportedHealth(UNKNOWN)
    assert cache.next_expiry_s() == 10
    assert cache.expire(10.1)[GPU].devices == (D,)
    assert cache.expire(10.1) == {}
    assert cache.get("other", D, 0).health == UNKNOWN


def test_only_news_is_told() -> None:
    cache = HealthInfo()
    cache.report(GPU, [(D, ReportedHealth(HEALTHY, seen_s=0))], 0)
    assert cache.report(GPU, [(D, ReportedHealth(HEALTHY, seen_s=5))], 5).devices == ()
    assert cache.get(GPU, D, 34).health == HEALTHY  # but it holds for longer
    for changed in (
        ReportedHealth(HEALTHY, "warm", seen_s=6),
        ReportedHealth(HEALTHY, "warm", 60, seen_s=7),
        ReportedHealth(UNHEALTHY, "warm", 60, seen_s=8),
    ):
        assert cache.report(GPU, [(D, changed)], changed.seen_s).devices == (D,)


def test_a_device_that_is_not_mentioned_is_unknown_after_its_time() -> None:
    cache, other = HealthInfo(), DeviceKey("pool", "e")
    cache.report(
        GPU, [(D, ReportedHealth(HEALTHY, seen_s=0)), (other, ReportedHealth(UNKNOWN, seen_s=0))], 0
    )
    assert cache.report(GPU, [], 30).devices == ()
    change = cache.report(GPU, [], 31)
    assert change.devices == (D,)  # that the other is unknown is no news
    assert dict(cache.items())[GPU] == {}


def test_a_driver_cannot_make_us_keep_more_and_more() -> None:
    cache = HealthInfo()
    first = [
        (DeviceKey("p", str(number)), ReportedHealth(HEALTHY)) for number in range(DEVICES_MAX)
    ]
    assert cache.report(GPU, first, 0).ignored == 0
    more = [(D, ReportedHealth(HEALTHY)), (first[0][0], ReportedHealth(UNHEALTHY))]
    change = cache.report(GPU, more, 0)
    assert (change.ignored, change.devices) == (1, (first[0][0],))


def test_a_report_is_read_with_bounds() -> None:
    report = wire.NodeWatchResourcesResponse(
        devices=[
            said("a", 1, timeout_s=7),
            said("b", 2, "hot", timeout_s=-1),
            said("c", 99),
            said("x" * 300, 1),
        ]
    )
    read = dict(read_report(report, 3.0))
    assert read == {
        DeviceKey("pool", "a"): ReportedHealth(HEALTHY, "", 7, 3.0),
        DeviceKey("pool", "b"): ReportedHealth(UNHEALTHY, "hot", 30, 3.0),
        DeviceKey("pool", "c"): ReportedHealth(UNKNOWN, "", 30, 3.0),
    }


def test_a_message_is_cut() -> None:
    assert cut("x" * 1024) == "x" * 1024
    assert cut("x" * 1025) == "x" * 1021 + "..."
    assert len(cut("µ" * 1000).encode()) <= 1024


# --- the file ------------------------------------------------------------------------------------


def test_the_file_is_the_kubelets() -> None:
    clock = ManualClock()
    cache = HealthInfo({GPU: {D: ReportedHealth(UNHEALTHY, "hot", 10, clock.monotonic())}})
    assert json.loads(health_streams.encode(cache, clock)) == {
        GPU: {
            "Devices": {
                "pool/d": {
                    "PoolName": "pool",
                    "DeviceName": "d",
                    "Health": "Unhealthy",
                    "LastUpdated": "2026-11-15T12:00:00Z",
                    "HealthCheckTimeout": 10_000_000_000,
                    "Message": "hot",
                }
            }
        }
    }


def test_what_is_read_is_as_old_as_it_is(tmp_path: Path) -> None:
    async def run() -> None:
        clock, path = ManualClock(), tmp_path / "health"
        cache = HealthInfo({GPU: {D: ReportedHealth(UNHEALTHY, "hot", 10, clock.monotonic())}})
        path.write_bytes(health_streams.encode(cache, clock))
        await clock.advance(8)
        read = health_streams.read(path, clock)
        assert read.get(GPU, D, clock.monotonic() + 2).health == UNHEALTHY
        assert read.get(GPU, D, clock.monotonic() + 3).health == UNKNOWN

    asyncio.run(run())


@pytest.mark.parametrize("content", [b"", b"[]", b"\xff", b'{"d":{"Devices":{"x":{}}}}'])
def test_a_broken_file_says_nothing(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "health"
    path.write_bytes(content)
    assert dict(health_streams.read(path, ManualClock()).items()) == {}


# --- streams -------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [HEALTH_V1, HEALTH_V1ALPHA1])
def test_pods_hear_of_their_devices(version: str) -> None:
    async def scenario(world: World) -> None:
        uid = world.claim("c", GPU)
        pod = world.pod("p", "c")
        driver = FakeDriver(world.root, GPU, versions=(DRA_V1, version))
        driver.devices[uid] = [device(GPU, "d", "req"), device(GPU, "e", "req")]
        async with world.agent() as dra, driver:
            await connected(dra, GPU)
            await dra.manager.prepare(pod)
            driver.report(said("d", 2, "too hot"), said("z", 1))
            await until(lambda: bool(world.affected))
            assert world.affected == [{"pod-p"}]
            assert dra.allocated_resources_status(pod, "main") == (
                ResourceStatus(
                    name="claim:c",
                    resources=(
                        ResourceHealth(
                            resource_id=f"{GPU}/device=d", health=UNHEALTHY, message="too hot"
                        ),
                        ResourceHealth(resource_id=f"{GPU}/device=e", health=UNKNOWN),
                    ),
                ),
            )
            assert dra.allocated_resources_status(pod, "other") == ()
            saved = world.root / health_streams.FILE_NAME
            await until(lambda: saved.exists() and "too hot" in saved.read_text())
            driver.end_stream()  # then nothing is known
            await until(lambda: len(world.affected) == 2)
            status = dra.allocated_resources_status(pod, "main")
            assert {each.health for each in status[0].resources} == {UNKNOWN}

    play(scenario)


def test_a_request_has_its_own_entry_and_a_device_without_cdi_ids_its_name() -> None:
    async def scenario(world: World) -> None:
        world.gates = Gates.parse("ResourceHealthStatusMessage=false")
        uid = world.claim("c", GPU)
        pod = world.pod("p", "c", requests={"c": "b"})
        driver = FakeDriver(world.root, GPU, versions=(DRA_V1, HEALTH_V1))
        bare = device(GPU, "bare", "b")
        del bare.cdi_device_ids[:]
        driver.devices[uid] = [device(GPU, "d", "a"), bare, bare]
        async with world.agent() as dra, driver:
            await connected(dra, GPU)
            await dra.manager.prepare(pod)
            driver.report(said("bare", 1, "fine"))
            await until(lambda: bool(world.affected))
            (status,) = dra.allocated_resources_status(pod, "main")
            assert status.name == "claim:c/b"
            assert status.resources == (
                ResourceHealth(resource_id=f"{GPU}/pool/bare", health=HEALTHY),
            )

    play(scenario)


@pytest.mark.parametrize("is_enabled", [True, False])
def test_devices_of_extended_resources_have_health_as_well(is_enabled: bool) -> None:
    async def scenario(world: World) -> None:
        gate = f"DRAExtendedResource={str(is_enabled).lower()}"
        world.gates = Gates.parse(gate, unlocked=True)
        uid = world.claim("special", GPU)
        pod = with_extended(world.pod("p"), "special")
        driver = FakeDriver(world.root, GPU, versions=(DRA_V1, HEALTH_V1))
        driver.devices[uid] = [device(GPU, "d", "r0"), device(GPU, "e", "r1")]
        async with world.agent() as dra, driver:
            await connected(dra, GPU)
            await dra.manager.prepare(pod)
            if not is_enabled:
                assert dra.allocated_resources_status(pod, "main") == ()
                return
            driver.report(said("d", 2, "too hot"))
            await until(lambda: bool(world.affected))
            assert world.affected == [{"pod-p"}]
            sick = ResourceHealth(f"{GPU}/device=d", UNHEALTHY, "too hot")
            statuses = dra.allocated_resources_status(pod, "main")
            assert statuses == (ResourceStatus("claim:special/r0", (sick,)),)
            (other,) = dra.allocated_resources_status(pod, "side")
            assert other.name == "claim:special/r1"
            assert problems_of(pod, statuses) == (), "a server accepts them"

    play(scenario)


def problems_of(pod: Pod, statuses: tuple[ResourceStatus, ...]) -> object:
    """Return what an API server finds wrong with the health of a pod's container."""
    metadata = replace(pod.metadata, resource_version="1")
    stored = replace(pod, metadata=metadata)
    reported = ContainerStatus(name="main", allocated_resources_status=statuses)
    status = replace(pod.status, container_statuses=(reported,))
    kind = CATALOGUE.find("v1", "Pod")
    context = Context(gates=Gates.parse(), now=Timestamp.parse("2026-01-01T00:00:00Z"))
    found = before_status_update(replace(stored, status=status), stored, kind, context)
    assert found.refused is None
    return found.errors


def with_extended(pod: Pod, claim: str) -> Pod:
    """Return a pod whose first container has an extended resource, and a sidecar another."""
    (main,) = pod.spec.containers
    one = {"example.com/gpu": Quantity.from_int(1)}
    resources = replace(main.resources, requests=one, limits=one, claims=())
    mappings = (
        ContainerExtendedResourceRequest("main", "example.com/gpu", "r0"),
        ContainerExtendedResourceRequest("side", "example.com/gpu", "r1"),
    )
    special = PodExtendedResourceClaimStatus(request_mappings=mappings, resource_claim_name=claim)
    status = replace(pod.status, extended_resource_claim_status=special)
    containers = (
        replace(main, resources=resources),
        replace(main, name="side", resources=resources),
    )
    return replace(pod, spec=replace(pod.spec, containers=containers), status=status)


def test_a_driver_that_knows_nothing_of_health_is_left_alone() -> None:
    async def scenario(world: World) -> None:
        streams = HealthStreams(world.root, lambda *_: None, retry_s=0.001)
        async with world.agent() as dra:
            driver = FakeDriver(world.root, GPU, versions=(DRA_V1, HEALTH_V1))
            driver.health_code = grpc.StatusCode.UNIMPLEMENTED
            async with driver:
                await connected(dra, GPU)
                await streams.follow(dra.drivers.get(GPU))  # returns
                driver.health_code = grpc.StatusCode.INTERNAL
                following = asyncio.create_task(streams.follow(dra.drivers.get(GPU)))
                before = driver.streams
                await driver.until(lambda: driver.streams >= before + 3)  # tried again
                following.cancel()
                await asyncio.gather(following, return_exceptions=True)

    play(scenario)


def test_a_driver_that_goes_takes_what_it_said_with_it() -> None:
    async def scenario(world: World) -> None:
        driver = FakeDriver(world.root, GPU, versions=(DRA_V1, HEALTH_V1))
        async with world.agent() as dra:
            async with driver:
                await connected(dra, GPU)
                driver.report(said("d", 1))
                await until(lambda: dra.health.get(GPU, "pool", "d").health == HEALTHY)
            await until(lambda: dra.health.get(GPU, "pool", "d").health == UNKNOWN)

    play(scenario)


def test_the_old_instance_of_an_update_does_not_take_what_the_new_one_said() -> None:
    async def scenario(world: World) -> None:
        old = FakeDriver(world.root, GPU, instance="-1", versions=(DRA_V1, HEALTH_V1))
        new = FakeDriver(world.root, GPU, instance="-2", versions=(DRA_V1, HEALTH_V1))
        async with world.agent() as dra, new:
            async with old:
                await old.until(lambda: old.streams == 1)
                await new.until(lambda: new.streams == 1)
                new.report(said("d", 1))
                await until(lambda: dra.health.get(GPU, "pool", "d").health == HEALTHY)
            await until(lambda: dra.drivers.get(GPU).endpoint == new.endpoint)
            await until(lambda: not old._servers and not old.socket.exists())
            assert dra.health.get(GPU, "pool", "d").health == HEALTHY

    play(scenario)


def test_garbage_ends_a_stream_and_nothing_else(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(world: World) -> None:
        async with world.agent() as dra:
            driver = FakeDriver(world.root, GPU, versions=(DRA_V1, HEALTH_V1))
            async with driver:
                await connected(dra, GPU)
                driver.is_garbled = True
                driver.report(said("d", 1))
                await until(lambda: "the answer is no NodeWatchResourcesResponse" in caplog.text)
                assert dra.drivers.is_usable(GPU)

    play(scenario)


def test_a_driver_that_talks_without_end_is_read_now_and_then(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(health_streams, "REPORT_PAUSE_S", 0.05)
    clock = ManualClock()

    async def scenario(world: World) -> None:
        world.claim("c", GPU)
        driver = FakeDriver(world.root, GPU, versions=(DRA_V1, HEALTH_V1))
        for _ in range(100):
            driver.report(said("d", 1), said("d", 2))
            driver.report(said("d", 1))
        async with driver, world.agent() as dra:
            await connected(dra, GPU)
            await until(lambda: dra.health.get(GPU, "pool", "d").health == UNHEALTHY)
            await dra.manager.prepare(world.pod("p", "c"))  # goes on as ever
            assert dra.health.get(GPU, "pool", "d").health == UNHEALTHY
            await clock.advance(0.05)
            await until(lambda: dra.health.get(GPU, "pool", "d").health == HEALTHY)

    play(scenario, lambda: clock)


def test_silence_is_told_too(tmp_path: Path) -> None:
    async def run() -> None:
        clock, told = ManualClock(), []
        streams = HealthStreams(tmp_path, lambda driver, devices: told.append(devices), clock=clock)
        async with streams.running():
            report = [(D, ReportedHealth(HEALTHY, timeout_s=10, seen_s=clock.monotonic()))]
            streams._note(GPU, streams._cache.report(GPU, report, clock.monotonic()))
            streams._expiry_changed.set()
            await clock.advance(9)
            assert told == [(D,)]
            await clock.advance(2)
            assert told == [(D,), (D,)]
            assert streams.get(GPU, "pool", "d").health == UNKNOWN

    asyncio.run(run())


def test_without_the_gate_nobody_asks_for_health() -> None:
    async def scenario(world: World) -> None:
        world.gates = Gates.parse("ResourceHealthStatus=false")
        async with world.agent() as dra:
            driver = FakeDriver(world.root, GPU, versions=(DRA_V1, HEALTH_V1))
            async with driver:
                await connected(dra, GPU)
                assert driver.streams == 0

    play(scenario)
