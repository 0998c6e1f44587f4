"""Whatever happens to pods, drivers and the agent: no device has two owners, and none is lost.

A history is a random row of steps: pods that come and go, at the same time or one by one, drivers
that fail before or after they did what was asked, an agent that is killed while drivers work, and
claims that are recreated under their name.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import grpc
from hypothesis import given, settings
from hypothesis import strategies as st

from moorage.api.gates import Gates
from moorage.node.contract import DevicesRefusedError
from moorage.node.dra.checkpoint import decode
from moorage.node.dra.claim_info import ClaimPhase
from moorage.node.dra.manager import ClaimManager, features_of
from moorage.node.errors import CallError, NotRegisteredError
from moorage.wire import dra_v1_pb2 as dra
from moorage.wire import services
from tests.node.dra.worlds import FakeServer, make_claim, make_pod, short_folder

CLAIMS, PODS = ("a", "b", "c"), 4
DRIVERS = {
    "a": ("x.example.com",),
    "b": ("x.example.com", "y.example.com"),
    "c": ("y.example.com",),
}
USES = (("a",), ("a", "b"), ("b", "c"), ("c", "a"))  # of each pod
FAULTS = ("none", "away", "fails first", "fails after", "one claim")


class Step(NamedTuple):
    what: str
    number: int = 0
    others: tuple[int, ...] = ()
    fault: str = "none"


pods = st.integers(0, PODS - 1)
steps = st.one_of(
    st.builds(Step, st.just("prepare"), pods, fault=st.sampled_from(FAULTS)),
    st.builds(Step, st.just("unprepare"), pods, fault=st.sampled_from(FAULTS)),
    st.builds(Step, st.just("together"), pods, st.lists(pods, max_size=3).map(tuple)),
    st.builds(Step, st.just("vanishes"), pods),
    st.builds(Step, st.just("killed"), pods, fault=st.sampled_from(("none", "fails after"))),
    st.builds(Step, st.just("restart")),
    st.builds(Step, st.just("reconcile")),
    st.builds(Step, st.just("anew"), st.integers(0, len(CLAIMS) - 1)),
)


class ModelDriver:
    """One device for each claim's name; it notes who owns it."""

    def __init__(self, name: str, is_used: Callable[[str], bool], turns: Iterator[int]) -> None:
        self.name, self.is_used, self.turns = name, is_used, turns
        self.owners: dict[str, str] = {}  # uid by claim's name
        self.fault = "none"
        self.gate = asyncio.Event()
        self.gate.set()

    async def call(self, method: services.Method, request: Any) -> Any:
        if self.fault == "fails first":
            raise CallError(grpc.StatusCode.UNAVAILABLE, "told to fail")
        for _ in range(next(self.turns)):  # others are faster, or slower
            await asyncio.sleep(0)
        answer = method.response()
        for number, claim in enumerate(request.claims):
            if self.fault == "one claim" and number == 0:
                answer.claims[claim.uid].error = "told to fail"
            elif method.name == services.PREPARE.name:
                self._prepare(claim, answer)
            else:
                self._unprepare(claim, answer)
        await self.gate.wait()
        if self.fault == "fails after":
            raise CallError(grpc.StatusCode.UNAVAILABLE, "told to fail")
        return answer

    def _prepare(self, claim: dra.Claim, answer: dra.NodePrepareResourcesResponse) -> None:
        owner = self.owners.setdefault(claim.name, claim.uid)
        assert owner == claim.uid, f"{claim.name} is prepared for {owner} and {claim.uid}"
        device = dra.Device(pool_name="p", device_name=claim.name)
        device.cdi_device_ids.append(f"{self.name}/device={claim.uid}")
        answer.claims[claim.uid].devices.append(device)

    def _unprepare(self, claim: dra.Claim, answer: dra.NodeUnprepareResourcesResponse) -> None:
        assert not self.is_used(claim.uid), f"{claim.name} is taken from a pod that runs"
        if self.owners.get(claim.name) == claim.uid:
            del self.owners[claim.name]
        answer.claims[claim.uid].error = ""


class Node:
    """An agent, its drivers, and which pods run."""

    def __init__(self, root: Path, turns: Iterator[int]) -> None:
        self.root, self.server, self.generation = root, FakeServer(), 0
        self.running: dict[int, frozenset[str]] = {}  # uids of claims, by pod
        names = sorted({name for each in DRIVERS.values() for name in each})
        self.drivers = {name: ModelDriver(name, self._is_used, turns) for name in names}
        for number in range(len(CLAIMS)):
            self.make_claim(number)
        self.start()

    def _is_used(self, uid: str) -> bool:
        return any(uid in claims for claims in self.running.values())

    def make_claim(self, number: int) -> None:
        self.generation += 1
        name = CLAIMS[number]
        users = [f"p{pod}" for pod in range(PODS) if name in USES[pod]]
        uid = f"{name}{self.generation}"
        self.server.add(make_claim(name, *DRIVERS[name], pods=users, uid=uid))

    def start(self) -> None:
        self.manager = ClaimManager(self.server, self.root, features_of(Gates.parse()))
        self.manager.file._write = _write
        self.manager.use(self._find)

    def _find(self, name: str) -> ModelDriver:
        if self.drivers[name].fault == "away":
            raise NotRegisteredError(name)
        return self.drivers[name]

    def set_fault(self, fault: str) -> None:
        self.drivers["y.example.com"].fault = fault

    async def prepare(self, number: int) -> None:
        pod = make_pod(f"p{number}", *USES[number])
        uids = {name: self.server.claims["default", name].metadata.uid for name in USES[number]}
        try:
            await self.manager.prepare(pod)
        except DevicesRefusedError:
            return
        self.running[number] = frozenset(uids.values())
        wanted = {f"{driver}/device={uids[name]}" for name in uids for driver in DRIVERS[name]}
        assert set(self.manager.run_options(pod, "main").cdi_ids) == wanted
        for name, uid in uids.items():
            assert all(self.drivers[driver].owners.get(name) == uid for driver in DRIVERS[name])

    async def unprepare(self, number: int) -> None:
        self.running.pop(number, None)  # all its containers have ended
        pod = make_pod(f"p{number}", *USES[number])
        try:
            await self.manager.unprepare(pod)
        except DevicesRefusedError:
            return
        assert not self.manager.cache.of_pod(pod.metadata.uid)

    async def take(self, step: Step) -> None:
        self.set_fault(step.fault)
        match step.what:
            case "prepare" if step.number not in self.running:
                await self.prepare(step.number)
            case "unprepare":
                await self.unprepare(step.number)
            case "together":
                await self._together({step.number, *step.others})
            case "vanishes" if step.number not in self.running:
                await self._vanishes(step.number)
            case "killed":
                await self._killed(step.number)
            case "restart":
                self.start()
            case "reconcile":
                await self.manager.reconcile([f"pod-p{number}" for number in self.running])
            case "anew":
                self.make_claim(step.number)
        self.set_fault("none")
        self.check_file()

    async def _together(self, numbers: set[int]) -> None:
        async with asyncio.TaskGroup() as tasks:
            for number in numbers:
                act = self.unprepare if number in self.running else self.prepare
                tasks.create_task(act(number))

    async def _vanishes(self, number: int) -> None:
        """A pod is gone before its claims are prepared, and nobody says so."""
        active = [f"pod-p{running}" for running in self.running]
        async with asyncio.TaskGroup() as tasks:
            preparing = tasks.create_task(self.prepare(number))
            for _ in range(8):
                await asyncio.sleep(0)
            tasks.create_task(self.manager.reconcile(active))
            preparing.add_done_callback(lambda _: self.running.pop(number, None))

    async def _killed(self, number: int) -> None:
        driver = self.drivers["y.example.com"]
        driver.gate.clear()
        is_running = number in self.running
        act = self.unprepare if is_running else self.prepare
        task = asyncio.create_task(act(number))
        for _ in range(20):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await self.manager.file.settled()
        driver.gate.set()
        self.start()

    def check_file(self) -> None:
        if not self.manager.file.path.exists():
            return
        kept = {state.key: state for state in decode(self.manager.file.path.read_bytes())}
        for state in self.manager.cache:
            # A claim that a pod runs with, or that drivers may have prepared, is always on disk.
            assert kept[state.key].uid == state.uid
            if state.phase is ClaimPhase.PREPARED:
                assert kept[state.key].drivers == state.drivers
        for claims in self.running.values():
            assert claims <= {state.uid for state in kept.values()}

    async def end(self) -> None:
        """Let all pods go; then nothing is prepared, and nothing is known."""
        self.running.clear()
        await self.manager.reconcile([])
        assert list(self.manager.cache) == []
        assert [driver.owners for driver in self.drivers.values()] == [{}, {}]
        if self.manager.file.path.exists():
            assert decode(self.manager.file.path.read_bytes()) == []


def _write(path: Path, content: bytes) -> None:
    path.write_bytes(content)  # disks are tried elsewhere


@settings(max_examples=150)
@given(st.lists(steps, max_size=25), st.lists(st.integers(0, 30), min_size=1, max_size=5))
def test_no_device_has_two_owners_and_none_is_lost(history: list[Step], turns: list[int]) -> None:
    async def run() -> None:
        with short_folder() as root:
            node = Node(root, itertools.cycle(turns))
            for step in history:
                await node.take(step)
            await node.end()

    asyncio.run(run())
