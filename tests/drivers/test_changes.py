"""Drivers look again when the machine changes."""

from __future__ import annotations

import asyncio
import socket

import pytest

from moorage.drivers.cpu import CpuDriver
from moorage.drivers.host import DeviceChanges, WatchingDriver, subsystem_of
from tests.drivers.machines import host_of

ADDED = b"add@/devices/virtual/net/x\0ACTION=add\0SUBSYSTEM=net\0SEQNUM=7\0"
OTHER = b"change@/devices/a\0ACTION=change\0SUBSYSTEM=usb\0"


@pytest.mark.parametrize(
    ("message", "subsystem"),
    [(ADDED, "net"), (OTHER, "usb"), (b"", ""), (b"x" * 100, ""), (b"a@b\0SUBSYSTEM=\xff\0", "�")],
)
def test_a_message_says_what_it_is_about(message: bytes, subsystem: str) -> None:
    assert subsystem_of(message) == subsystem


def heard(*messages: bytes, look_again_s: float = 1000) -> int:
    """Return how often drivers looked again when all was heard."""

    async def listen() -> int:
        ours, kernels = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        looked = asyncio.Event()
        count = 0

        def changed() -> None:
            nonlocal count
            count += 1
            looked.set()

        net = frozenset({"net"})
        changes = DeviceChanges(net, changed, source=ours, settle_s=0, look_again_s=look_again_s)
        changes.start()
        with kernels:
            for message in messages:
                kernels.send(message)
            await asyncio.wait_for(looked.wait(), 10)
        changes.stop()
        return count

    return asyncio.run(listen())


def test_many_changes_are_one_look() -> None:
    assert heard(OTHER, ADDED, ADDED, OTHER, ADDED) == 1


def test_without_any_word_it_is_looked_now_and_then() -> None:
    assert heard(OTHER, look_again_s=0) >= 1


def test_a_driver_listens_while_it_runs() -> None:
    async def run() -> None:
        driver = CpuDriver(host_of({}))
        assert isinstance(driver, WatchingDriver)
        await driver.started()
        await driver.stopped()
        await driver.stopped()
        driver.republish()

    asyncio.run(run())
