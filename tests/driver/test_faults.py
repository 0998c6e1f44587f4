"""Whenever a driver dies, no device has two owners, and all that is begun can be undone."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from moorage.api.meta import ObjectMeta
from moorage.api.resource.v1 import (
    AllocationResult,
    DeviceAllocationResult,
    DeviceRequestAllocationResult,
    ResourceClaim,
    ResourceClaimStatus,
)
from moorage.driver import Claim, ClaimName, ContainerEdits, Driver, Inventory, Prepared
from moorage.driver.checkpoint import Checkpoint, FileSystem
from moorage.driver.claim_files import CdiFiles, MetadataFiles
from moorage.driver.claim_preparation import LONG_S, ClaimPreparer
from moorage.driver.driver import PrepareError
from moorage.driver.node_service import read_claim
from moorage.kit.clock import ManualClock

NAME = "lamp.example.com"
CLAIMS = {"a": ("red", "green"), "b": ("green", "blue"), "c": ("blue",), "d": ("red",)}


class DeadError(Exception):
    """The program is no more."""


class Fate:
    """How many steps a program has left; None: as many as it wants."""

    steps: int | None = None

    def step(self) -> None:
        if self.steps is not None:
            if self.steps == 0:
                raise DeadError
            self.steps -= 1


class MortalFiles(FileSystem):
    """Files that are changed while the program lives."""

    def __init__(self, fate: Fate) -> None:
        self._fate = fate

    def write(self, path: Path, data: bytes, mode: int = 0o644, *, is_durable: bool = True) -> None:
        self._fate.step()
        super().write(path, data, mode, is_durable=False)

    def append(self, path: Path, data: bytes, *, is_durable: bool = True) -> None:
        try:
            self._fate.step()
        except DeadError:
            super().append(path, data[: len(data) // 2], is_durable=False)
            raise
        super().append(path, data, is_durable=False)

    def remove(self, path: Path) -> None:
        self._fate.step()
        super().remove(path)

    def remove_folder(self, path: Path) -> None:
        self._fate.step()
        super().remove_folder(path)


class Lamps(Driver):
    """Hardware that stays as it is when its driver dies, and complains of two owners."""

    name = NAME

    def __init__(self, fate: Fate) -> None:
        self.lit: dict[str, str] = {}  # claims by device
        self._fate = fate

    def devices(self) -> Inventory:
        return []

    def prepare(self, claim: Claim) -> Iterable[Prepared]:
        for device in claim.devices:
            self._fate.step()
            owner = self.lit.setdefault(device.name, claim.uid)
            assert owner == claim.uid, f"{device.name} has two owners"
            yield Prepared(device, ContainerEdits(env=(f"LAMP={device.name}",)))

    def unprepare(self, claim: ClaimName) -> None:
        for device, owner in tuple(self.lit.items()):
            if owner == claim.uid:
                self._fate.step()
                del self.lit[device]


class Cluster:
    """Claims, as far as a driver reads them."""

    def __init__(self) -> None:
        self.claims: dict[str, ResourceClaim] = {}

    async def get(self, _: Any, __: str, name: str) -> ResourceClaim | None:
        return self.claims.get(name)


class World:
    """A driver that lives, dies and lives again in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.fate = Fate()
        self.lamps = Lamps(self.fate)
        self.cluster = Cluster()
        self.clock = ManualClock()
        self.boots = 0
        self.generation = dict.fromkeys(CLAIMS, 0)
        for name in CLAIMS:
            self.renew(name)
        self.start()

    def start(self) -> None:
        self.fate.steps = None
        files = MortalFiles(self.fate)
        cdi = self.folder / "cdi"
        self.preparing = ClaimPreparer(
            self.lamps,
            self.cluster,  # type: ignore[arg-type]
            Checkpoint(self.folder, files),
            CdiFiles(NAME, cdi, files),
            metadata=MetadataFiles(
                NAME, self.folder, cdi, ("metadata.resource.k8s.io/v1beta1",), files
            ),
            boot_id=f"boot-{self.boots}",
            clock=self.clock,
        )
        self.preparing.load()
        self.preparing.restore()

    def renew(self, name: str) -> None:
        """Make a claim anew, under the same name."""
        self.generation[name] += 1
        results = tuple(
            DeviceRequestAllocationResult(request="all", driver=NAME, pool="p", device=device)
            for device in CLAIMS[name]
        )
        allocation = AllocationResult(devices=DeviceAllocationResult(results=results))
        uid = f"{name}-{self.generation[name]}"
        self.cluster.claims[name] = ResourceClaim(
            metadata=ObjectMeta(name=name, namespace="default", uid=uid),
            status=ResourceClaimStatus(allocation=allocation),
        )

    async def play(self, step: tuple[str, str, int | None]) -> None:
        action, name, self.fate.steps = step
        try:
            await self._act(action, name)
        except DeadError:
            self.start()
        except PrepareError as error:
            if "already prepared for claim" not in str(error):
                raise
        self.fate.steps = None
        self.check()

    async def _act(self, action: str, name: str) -> None:
        value = self.cluster.claims[name]
        match action:
            case "prepare":
                claim = read_claim(value, NAME, lambda *_: None)
                found = await self.preparing.prepare(claim)
                assert {d for d, uid in self.lamps.lit.items() if uid == claim.uid} == {
                    each.name for each in found.devices
                }
            case "unprepare":
                await self.preparing.unprepare(
                    ClaimName(value.metadata.uid, "default", value.metadata.name)
                )
                assert value.metadata.uid not in self.lamps.lit.values()
            case "replace":
                self.renew(name)
            case "wait":
                await self.clock.advance(LONG_S)
            case "restart":
                self.start()
            case "reboot":
                self.boots += 1
                for path in (self.folder / "cdi").glob("*"):
                    path.unlink()
                self.start()

    def check(self) -> None:
        """Whatever is lit is known, so that it can be undone."""
        known = {each.uid for each in self.preparing.claims}
        assert set(self.lamps.lit.values()) <= known

    async def end(self) -> None:
        """Undo all that is known: then nothing is left."""
        self.start()
        for each in self.preparing.claims:
            await self.preparing.unprepare(each.claim)
        assert self.lamps.lit == {}
        assert self.preparing.claims == ()
        assert list((self.folder / "cdi").glob("*")) == []
        self.start()
        assert self.preparing.claims == ()


_STEPS = st.tuples(
    st.sampled_from(
        ["prepare", "prepare", "unprepare", "unprepare", "replace", "wait", "restart", "reboot"]
    ),
    st.sampled_from(sorted(CLAIMS)),
    st.none() | st.integers(0, 12),
)


@settings(max_examples=60)
@given(st.lists(_STEPS, max_size=12))
def test_no_device_has_two_owners_and_none_is_forgotten(
    steps: list[tuple[str, str, int | None]],
) -> None:
    async def play() -> None:
        with tempfile.TemporaryDirectory() as name:
            world = World(Path(name))
            for step in steps:
                await world.play(step)
            await world.end()

    asyncio.run(play())
