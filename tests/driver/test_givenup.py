"""A call that the node gave up begins nothing more, and finishes its work."""

from __future__ import annotations

import asyncio
import fcntl
import os
import sys
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from moorage.api.meta import ObjectMeta
from moorage.api.resource.v1 import (
    AllocationResult,
    DeviceAllocationResult,
    DeviceRequestAllocationResult,
    ResourceClaim,
    ResourceClaimStatus,
)
from moorage.driver import Claim, Prepared
from moorage.driver.checkpoint import Checkpoint, FileSystem
from moorage.driver.claim_files import CdiFiles, MetadataFiles
from moorage.driver.claim_preparation import ClaimPreparer
from moorage.driver.driver_calls import SerialCalls, call_driver
from moorage.driver.node_service import FINISH_S, NodeService
from moorage.kit.clock import ManualClock, settle
from moorage.wire import dra_v1_pb2 as dra
from moorage.wire.services import DRA_V1, PREPARE, UNPREPARE
from tests.driver.stage import NAME, NODE, WAIT_S, Blinkers


class Gate:
    """A place where somebody arrives, and waits until it is opened."""

    def __init__(self) -> None:
        self.arrived, self.opened = asyncio.Event(), asyncio.Event()

    async def passed(self) -> None:
        self.arrived.set()
        await self.opened.wait()


class Patient(Blinkers):
    """A driver that waits at gates, by name of the claim."""

    def __init__(self) -> None:
        super().__init__()
        self.gates: dict[str, Gate] = {}

    async def prepare(self, claim: Claim) -> list[Prepared]:  # type: ignore[override]
        self.calls.append(f"prepare {claim.name}")
        if claim.name in self.gates:
            await self.gates[claim.name].passed()
        return [Prepared(each) for each in claim.devices]


class Eager(Patient):
    """A driver that takes claims at the same time."""

    serialize = False


class Cluster:
    """Claims, each with the device of its name, read through a gate."""

    def __init__(self) -> None:
        self.gate: Gate | None = None

    async def get(self, _: Any, namespace: str, name: str) -> ResourceClaim:
        if self.gate is not None:
            await self.gate.passed()
        result = DeviceRequestAllocationResult(request="all", driver=NAME, pool=NODE, device=name)
        allocation = AllocationResult(devices=DeviceAllocationResult(results=(result,)))
        return ResourceClaim(
            metadata=ObjectMeta(name=name, namespace=namespace, uid=f"uid-{name}"),
            status=ResourceClaimStatus(allocation=allocation),
        )


class Node:
    """Calls a driver, without sockets."""

    def __init__(self, folder: Path, driver: Patient, *, lock_file: Path | None = None) -> None:
        self.driver = driver
        self.cluster = Cluster()
        self.clock = ManualClock()
        files = FileSystem()
        cdi = folder / "cdi"
        self.preparing = ClaimPreparer(
            driver,
            self.cluster,  # type: ignore[arg-type]
            Checkpoint(folder, files),
            CdiFiles(NAME, cdi, files),
            metadata=MetadataFiles(NAME, folder, cdi, (), files),
            boot_id="boot-1",
        )
        self.service = NodeService(
            driver,
            self.cluster,  # type: ignore[arg-type]
            self.preparing,
            turns=SerialCalls(lock_file),
            published=lambda *_: None,
            rereads=lock_file is not None,
            clock=self.clock,
        )
        self._methods = self.service.methods()

    def prepare(self, *names: str) -> asyncio.Task[Any]:
        request = dra.NodePrepareResourcesRequest(claims=_claims(names))
        return asyncio.create_task(self._methods[PREPARE.of(DRA_V1)](request, None))

    def unprepare(self, *names: str) -> asyncio.Task[Any]:
        request = dra.NodeUnprepareResourcesRequest(claims=_claims(names))
        return asyncio.create_task(self._methods[UNPREPARE.of(DRA_V1)](request, None))

    @property
    def claims(self) -> list[str]:
        return [each.name for each in self.preparing.claims if each.is_complete]


def _claims(names: tuple[str, ...]) -> list[dra.Claim]:
    return [dra.Claim(uid=f"uid-{each}", namespace="default", name=each) for each in names]


async def given_up(call: asyncio.Task[Any]) -> None:
    await settle()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call


def within(scene: Callable[[], Awaitable[None]]) -> None:
    async def play() -> None:
        async with asyncio.timeout(WAIT_S):
            await scene()

    asyncio.run(play())


def test_a_claim_that_is_still_read_is_never_prepared(tmp_path: Path) -> None:
    async def scene() -> None:
        node = Node(tmp_path, Patient())
        gate = node.cluster.gate = Gate()
        call = node.prepare("red")
        await gate.arrived.wait()
        await given_up(call)
        await node.unprepare("red")
        gate.opened.set()
        await node.service.finished()
        assert node.driver.calls == ["unprepare red"]
        assert node.preparing.claims == ()

    within(scene)


def test_a_driver_that_exits_fails_the_claim_only(tmp_path: Path) -> None:
    class Exiting(Patient):
        async def prepare(self, claim: Claim) -> list[Prepared]:  # type: ignore[override]
            if claim.name == "red":
                sys.exit(3)
            return await super().prepare(claim)

    async def scene() -> None:
        node = Node(tmp_path, Exiting())
        answer = await node.prepare("red", "green")
        assert answer.claims["uid-red"].error == "RuntimeError: sys.exit(3) was called"
        assert node.claims == ["green"]

    within(scene)


def test_a_driver_that_hangs_is_logged_with_its_claim(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scene() -> None:
        node = Node(tmp_path, Patient())
        gate = node.driver.gates["red"] = Gate()
        call = node.prepare("red")
        await gate.arrived.wait()
        await node.clock.advance(29)
        assert not caplog.messages
        await node.clock.advance(2)
        gate.opened.set()
        await call
        await node.clock.advance(60)

    within(scene)
    (text,) = caplog.messages
    assert text.startswith("claim default/red: prepare() takes more than 30 s; a kubelet gives up")
    assert text.endswith("; other claims wait for it")


def test_a_call_that_waits_for_its_turn_is_never_made(tmp_path: Path) -> None:
    async def scene() -> None:
        node = Node(tmp_path, Patient())
        gate = node.driver.gates["red"] = Gate()
        first = node.prepare("red")
        await gate.arrived.wait()
        await given_up(node.prepare("green"))
        gate.opened.set()
        await first
        await node.service.finished()
        assert node.driver.calls == ["prepare red"]
        assert node.claims == ["red"]

    within(scene)


def test_a_claim_that_waits_for_its_earlier_call_is_never_undone(tmp_path: Path) -> None:
    async def scene() -> None:
        node = Node(tmp_path, Eager())
        gate = node.driver.gates["red"] = Gate()
        first = node.prepare("red")
        await gate.arrived.wait()
        await given_up(node.unprepare("red"))
        gate.opened.set()
        await first
        await node.service.finished()
        assert node.driver.calls == ["prepare red"]

    within(scene)


@pytest.mark.parametrize("kind", [Patient, Eager])
def test_what_is_begun_is_ended_before_it_is_undone(tmp_path: Path, kind: type[Patient]) -> None:
    async def scene() -> None:
        node = Node(tmp_path, kind())
        gate = node.driver.gates["red"] = Gate()
        call = node.prepare("red")
        await gate.arrived.wait()
        await given_up(call)
        undoing = node.unprepare("red")
        await settle()
        assert node.driver.calls == ["prepare red"]
        gate.opened.set()
        await undoing
        assert node.driver.calls == ["prepare red", "unprepare red"]
        assert node.preparing.claims == ()

    within(scene)


def test_what_is_begun_is_ended_and_the_rest_of_the_call_is_not_made(tmp_path: Path) -> None:
    async def scene() -> None:
        node = Node(tmp_path, Patient())
        gate = node.driver.gates["red"] = Gate()
        call = node.prepare("red", "green")
        await gate.arrived.wait()
        await given_up(call)
        gate.opened.set()
        await node.service.finished()
        assert node.driver.calls == ["prepare red"]
        assert node.claims == ["red"]

    within(scene)


def test_stopping_does_not_wait_for_ever(tmp_path: Path) -> None:
    async def scene() -> None:
        node = Node(tmp_path, Patient())
        gate = node.driver.gates["red"] = Gate()
        call = node.prepare("red")
        await gate.arrived.wait()
        await given_up(call)
        stopping = asyncio.create_task(node.service.finished())
        await node.clock.advance(FINISH_S - 1)
        assert not stopping.done()
        await node.clock.advance(1)
        await stopping

    within(scene)


def test_a_method_that_hangs_does_not_keep_the_program_from_its_end() -> None:
    begun, may_end = threading.Event(), threading.Event()

    def hang() -> None:
        begun.set()
        may_end.wait()

    async def scene() -> None:
        call = asyncio.create_task(call_driver(hang))
        while not begun.is_set():
            await asyncio.sleep(0)
        call.cancel()

    within(scene)  # which waits for threads of the loop
    assert begun.is_set()
    may_end.set()


def test_a_method_may_raise_anything() -> None:
    def odd() -> None:
        raise StopIteration

    async def scene() -> None:
        with pytest.raises(RuntimeError):
            await call_driver(odd)

    within(scene)


def test_a_call_that_waits_for_another_instance_is_never_made(tmp_path: Path) -> None:
    async def scene() -> None:
        lock_file = tmp_path / "lock"
        node = Node(tmp_path, Patient(), lock_file=lock_file)
        handle = os.open(lock_file, os.O_RDWR | os.O_CREAT)
        fcntl.flock(handle, fcntl.LOCK_EX)
        await given_up(node.prepare("red"))
        os.close(handle)
        await node.unprepare("red")
        await node.service.finished()
        assert node.driver.calls == ["unprepare red"]
        assert node.preparing.claims == ()

    within(scene)
