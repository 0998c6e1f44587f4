"""A driver with a journal and traps, as a program.

    python -m soak._node.driver NAME --devices 6 --journal FILE --trap FILE [options of drivers]

The journal records what the driver itself saw, each line written at once: `prepare CLAIM DEVICE…`
when it begins to give devices to a claim, `unprepare CLAIM` when it has taken them back. A trap is
a file with a step, a process and a delay: when the driver comes to that step, that process is
killed after the delay, be it the agent, the shim, or the driver itself.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import os
import signal
import sys
import threading
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from moorage.api.quantity import Quantity
from moorage.api.resource.v1 import DeviceCapacity
from moorage.client.client_factory import http_client, load_rest_config
from moorage.driver import (
    Claim,
    ClaimName,
    ContainerEdits,
    Device,
    DeviceAttribute,
    Driver,
    Prepared,
)
from moorage.driver.checkpoint import FILE, FileSystem
from moorage.driver.errors import DriverError
from moorage.driver.program import parser, settings_of
from moorage.driver.serving import serving
from moorage.kit.process_memory import limit_malloc_arenas

UNITS = 8  # that claims share of each device
REPUBLISH_EVERY_S = 0.7
STEPS = (
    *("prepare", "prepared", "unprepare", "unprepared", "publish"),
    *("before checkpoint", "after checkpoint", "before cdi", "after cdi", "remove cdi"),
)


class Trap(NamedTuple):
    """Kills a process when the driver comes to a step."""

    file: Path

    def at(self, step: str) -> None:
        """Spring, if this is the step."""
        try:
            found = json.loads(self.file.read_bytes())
        except (FileNotFoundError, ValueError):
            return
        if found["step"] != step:
            return
        self.file.unlink(missing_ok=True)
        pid = found["pid"] or os.getpid()
        if found["delay_s"]:
            threading.Timer(found["delay_s"], _kill, (pid,)).start()
        else:
            _kill(pid)


def _kill(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


class WatchedFiles(FileSystem):
    """Files, with traps around writes."""

    def __init__(self, trap: Trap) -> None:
        self._trap = trap

    def write(self, path: Path, data: bytes, mode: int = 0o644, *, is_durable: bool = True) -> None:
        """Put a file in place."""
        what = "checkpoint" if path.name == FILE else "cdi"
        self._trap.at(f"before {what}")
        super().write(path, data, mode, is_durable=is_durable)
        self._trap.at(f"after {what}")

    def append(self, path: Path, data: bytes, *, is_durable: bool = True) -> None:
        """Add to a file."""
        self._trap.at("before checkpoint")
        super().append(path, data, is_durable=is_durable)
        self._trap.at("after checkpoint")

    def remove(self, path: Path) -> None:
        """Remove a file."""
        super().remove(path)
        self._trap.at("remove cdi")


class Journal:
    """The observations of a driver, in a file that survives kills."""

    def __init__(self, path: Path | None) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        self._file = None if path is None else os.open(path, flags, 0o600)

    def note(self, *words: str) -> None:
        """Write a line, at once."""
        if self._file is not None:
            os.write(self._file, (" ".join(words) + "\n").encode())


class Lamps(Driver):
    """Devices of which nothing is real but who has them."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.name = options.driver  # type: ignore[misc]
        self.trap = Trap(options.trap)
        self._count, self._is_shared = options.devices, options.shared
        self._journal = Journal(options.journal)
        self._turn = 0
        self._republishes = options.republish
        self._task: asyncio.Task[None] | None = None

    def devices(self) -> list[Device]:
        """Return them; one is another each time."""
        self.trap.at("publish")
        self._turn += 1
        return [self._device(number) for number in range(self._count)]

    def _device(self, number: int) -> Device:
        turn = self._turn if number == self._turn % self._count and self._republishes else 0
        return Device(
            name=f"lamp-{number}",
            attributes={"turn": DeviceAttribute(int_value=turn)},
            allow_multiple_allocations=True if self._is_shared else None,
            capacity={"units": DeviceCapacity(value=Quantity.from_int(UNITS))}
            if self._is_shared
            else {},
        )

    def prepare(self, claim: Claim) -> Iterable[Prepared]:
        """Set the environment variables that name a container's lamps and their claim."""
        names = [
            f"{each.name}{'/' if each.share_id else ''}{each.share_id}" for each in claim.devices
        ]
        self._journal.note("prepare", claim.uid, *names)
        self.trap.at("prepare")
        found = [
            Prepared(each, ContainerEdits(env=(f"LAMP_{self.name}_{name}={claim.uid}",)))
            for each, name in zip(claim.devices, names, strict=True)
        ]
        self.trap.at("prepared")
        return found

    def unprepare(self, claim: ClaimName) -> None:
        """Take them back."""
        self.trap.at("unprepare")
        self._journal.note("unprepare", claim.uid)
        self.trap.at("unprepared")

    async def started(self) -> None:
        """Begin to change devices now and then."""
        if self._republishes:
            self._task = asyncio.create_task(self._change())

    async def _change(self) -> None:
        while True:
            await asyncio.sleep(REPUBLISH_EVERY_S)
            self.republish()


def main(arguments: list[str]) -> None:
    """Run until killed."""
    own = argparse.ArgumentParser()
    own.add_argument("driver")
    own.add_argument("--devices", type=int, default=6)
    own.add_argument("--shared", action="store_true")
    own.add_argument("--republish", action="store_true")
    own.add_argument("--journal", type=Path)
    own.add_argument("--trap", type=Path, default=Path("/nonexistent"))
    options, rest = own.parse_known_args(arguments)
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr)
    limit_malloc_arenas()
    try:
        asyncio.run(_run(Lamps(options), rest))
    except DriverError as error:
        sys.exit(f"error: {error}")


async def _run(driver: Lamps, arguments: list[str]) -> None:
    options = parser(driver, {}).parse_args(arguments)
    access = load_rest_config(options.kubeconfig)
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    async with (
        http_client(access, manager=driver.name) as client,
        serving(driver, settings_of(options), client, files=WatchedFiles(driver.trap)) as running,
    ):
        await running.wait_published()
        await running.wait_registered()
        print("driver is registered", flush=True)
        await stop.wait()


if __name__ == "__main__":
    main(sys.argv[1:])
