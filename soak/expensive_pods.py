"""Pods with the most expensive expressions in a real cluster: how long do other pods wait?

One real `moor control-plane`. A case is a few pods of one tenant whose claims take long to decide:
by a selector of their class, by their own selectors, or by derived attributes that must match.
Meanwhile another tenant creates pods that any device will do for. The laws:

1. the control plane takes less than a second of CPU time between the creation of such a pod and its
   binding;
2. its log has no traceback.

CPU time depends less on other work of the machine than waiting does. Both are in the figures.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from moorage.api.codec import decode_tree
from moorage.api.core import Namespace, Node, Pod
from moorage.api.meta import ObjectMeta
from moorage.api.resource.v1 import DeviceClass, ResourceClaim, ResourceSlice
from moorage.client.api_client import ApiClient
from moorage.client.client_factory import http_client, load_rest_config
from moorage.client.writes import Create, Delete, Target
from soak import Outcome, Plan, Tally
from soak._servers import environment

NODES, DEVICES = 6, 128
DRIVER = "x.example.com"
HOSTILE_MAX = 20  # pods that stay; older ones are deleted
OTHERS = 3  # pods of the other tenant in a case
CPU_S_MAX = 1.0
BOUND_S_MAX = 60.0
START_S_MAX = 60.0
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
TEN = "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]"
READY = ("scheduler: scheduling at", "controllers: controlling at")

# Almost as expensive as the API accepts, for each device anew.
WORK = f"{TEN}.all(a, {TEN}.all(b, {TEN}.all(c, {TEN}.all(d, {TEN}.all(e, device.driver != '')))))"
ID = f'device.attributes["{DRIVER}"].id'


def class_selector(number: int) -> dict[str, Any]:
    """Return the spec of a class that matches nothing, after long work."""
    text = f"{WORK} && {ID} == -{number}"
    return {"selectors": [{"cel": {"expression": text}}]}


def own_selector(number: int) -> dict[str, Any]:
    """Return the devices of a claim with such a selector."""
    selectors = [{"cel": {"expression": f"{WORK} && {ID} == -{number}"}}]
    exactly = {"deviceClassName": "any", "selectors": selectors}
    return {"requests": [{"name": "r", "exactly": exactly}]}


def derived_match(number: int) -> dict[str, Any]:
    """Return the devices of a claim that must agree in an attribute in which all differ."""
    expression = f"{WORK} ? {ID} + {number} : 0"
    attribute = {"name": "tenant.example.com/group", "expression": expression}
    exactly = {"deviceClassName": "any", "count": 2, "derivedAttributes": [attribute]}
    constraint = {"matchAttribute": "tenant.example.com/group"}
    return {"requests": [{"name": "r", "exactly": exactly}], "constraints": [constraint]}


HOSTILE: dict[str, Callable[[int], dict[str, Any]]] = {
    "selector of the claim": own_selector,
    "selector of the class": lambda number: {
        "requests": [{"name": "r", "exactly": {"deviceClassName": f"slow-{number}"}}]
    },
    "derived attribute": derived_match,
}


class Wait(NamedTuple):
    """How long a pod of the other tenant waited."""

    cpu_s: float  # of the control plane
    wall_s: float


class Session:
    """A control plane with nodes and devices."""

    def __init__(self, folder: Path) -> None:
        self.waits: list[Wait] = []
        self._folder = folder
        self._log = folder / "log"
        self._runner = asyncio.Runner()
        self._process: subprocess.Popen[bytes] | None = None
        self._client: ApiClient | None = None
        self._began_s = 0.0
        self._hostile_pods: deque[Pod] = deque()
        self._names = iter(range(1, 10**9))

    def open(self) -> None:
        """Start everything."""
        self._began_s = time.monotonic()
        command = [sys.executable, "-m", "moorage.cli.main", "control-plane", "--port", "0"]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(  # noqa: S603
                [*command, "--data-dir", str(self._folder / "data")],
                env=environment(),
                stdout=log,
                stderr=log,
            )
        end_s = time.monotonic() + START_S_MAX
        while not all(each in self._log.read_text() for each in READY):
            assert self._process.poll() is None, self._log.read_text()
            assert time.monotonic() < end_s, f"it does not start:\n{self._log.read_text()}"
            time.sleep(0.05)
        self._runner.run(self._prepare())

    def close(self) -> None:
        """End everything."""
        if self._client is not None:
            self._runner.run(self._client.close())
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        self._runner.close()

    def play(self, kinds: list[str]) -> Counter[str]:
        """Let hostile pods come, and then others; check the laws."""
        return self._runner.run(self._play(kinds))

    @property
    def busy_part(self) -> float:
        """The part of the time since the start in which the control plane had the processor."""
        return self._cpu_s() / (time.monotonic() - self._began_s)

    def end(self) -> None:
        """Check the log."""
        text = self._log.read_text(errors="replace")
        assert "Traceback" not in text, text[text.find("Traceback") :][:6000]

    async def _prepare(self) -> None:
        access = load_rest_config(str(self._folder / "data" / "kubeconfig"))
        self._client = http_client(access, manager="soak")
        for name in ("mallory", "other"):
            await self._client.write(Create(Namespace(metadata=ObjectMeta(name=name))))
        await self._client.write(Create(DeviceClass(metadata=ObjectMeta(name="any"))))
        room = {"cpu": "640", "memory": "2560Gi", "pods": "1100"}
        for number in range(NODES):
            tree: dict[str, Any] = {"status": {"allocatable": room, "capacity": room}}
            await self._create(Node, f"n{number}", "", tree)
            devices = [
                {"name": f"d{each}", "attributes": {"id": {"int": DEVICES * number + each}}}
                for each in range(DEVICES)
            ]
            pool = {"name": f"n{number}", "generation": 1, "resourceSliceCount": 1}
            spec = {"driver": DRIVER, "nodeName": f"n{number}", "pool": pool, "devices": devices}
            await self._create(ResourceSlice, f"s{number}", "", {"spec": spec})

    async def _play(self, kinds: list[str]) -> Counter[str]:
        assert self._client is not None
        for kind in kinds:
            self._hostile_pods.append(await self._hostile(kind))
        while len(self._hostile_pods) > HOSTILE_MAX:
            gone = self._hostile_pods.popleft()
            await self._client.write(Delete(Target.of(gone), grace_s=0))
        for _ in range(OTHERS):
            name = f"usual-{next(self._names)}"
            exactly = {"deviceClassName": "any"}
            devices = {"requests": [{"name": "r", "exactly": exactly}]}
            await self._create(ResourceClaim, name, "other", {"spec": {"devices": devices}})
            cpu_s, start_s = self._cpu_s(), time.monotonic()
            pod = await self._pod(name, "other")
            async with asyncio.timeout(BOUND_S_MAX):
                while not (found := await self._client.get(Pod, "other", name)).spec.node_name:  # type: ignore[union-attr]
                    await asyncio.sleep(0.02)
            assert found is not None
            wait = Wait(self._cpu_s() - cpu_s, time.monotonic() - start_s)
            self.waits.append(wait)
            await self._client.write(Delete(Target.of(pod), grace_s=0))
            assert wait.cpu_s < CPU_S_MAX, f"a pod waited {wait.cpu_s:.2f} s of CPU time"
        return Counter(kinds)

    async def _hostile(self, kind: str) -> Pod:
        number = next(self._names)
        if kind == "selector of the class":
            await self._create(DeviceClass, f"slow-{number}", "", {"spec": class_selector(number)})
        name = f"slow-{number}"
        spec = {"devices": HOSTILE[kind](number)}
        await self._create(ResourceClaim, name, "mallory", {"spec": spec})
        return await self._pod(name, "mallory")

    async def _pod(self, name: str, namespace: str) -> Pod:
        claim = {"name": "r", "resourceClaimName": name}
        container = {"name": "c", "image": "i", "resources": {"claims": [{"name": "r"}]}}
        spec = {"containers": [container], "resourceClaims": [claim]}
        pod: Pod = await self._create(Pod, name, namespace, {"spec": spec})
        return pod

    async def _create(
        self, struct: type[Any], name: str, namespace: str, tree: dict[str, Any]
    ) -> Any:
        assert self._client is not None
        kind = struct()
        head = {"apiVersion": kind.api_version, "kind": kind.kind}
        metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
        value = decode_tree({**head, "metadata": metadata, **tree}, struct).value
        return await self._client.write(Create(value))

    def _cpu_s(self) -> float:
        """Return the CPU time of the control plane so far."""
        assert self._process is not None
        text = Path(f"/proc/{self._process.pid}/stat").read_text()
        fields = text.rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS_PER_S


@dataclass(frozen=True)
class ExpensiveCase:
    """Some hostile pods, by what is expensive about them."""

    session: Session
    kinds: tuple[str, ...]

    def outcomes(self) -> Counter[str]:
        """Return what came; raises when a law is broken."""
        return self.session.play(list(self.kinds))


def make_case(session: Session, seed: int, number: int) -> ExpensiveCase:
    """Return a case of a seed: first each kind of hostility alone, then mixtures."""
    names = sorted(HOSTILE)
    if number < len(names):
        return ExpensiveCase(session, (names[number],) * 3)
    random = Random(f"{seed}/{number}")  # noqa: S311
    return ExpensiveCase(session, tuple(random.choices(names, k=random.randint(2, 6))))


@contextmanager
def running() -> Iterator[Session]:
    """Run a control plane for a session."""
    with tempfile.TemporaryDirectory(prefix="expensive-") as folder:
        session = Session(Path(folder))
        try:
            session.open()
            yield session
        finally:
            session.close()


def run(plan: Plan) -> Outcome:
    """Run the campaign."""
    started = time.monotonic()
    with running() as session:
        tally = Tally("expensive-pods", lambda seed, number: make_case(session, seed, number))
        tally.run(plan)
        tally.finish(session.end)
        busy = session.busy_part
        waits = session.waits
    figures = {"cases": f"{tally.cases:,}", "seed": str(plan.seed)}
    figures |= {name: f"{count:,}" for name, count in sorted(tally.counts.items())}
    if waits:
        cpu, wall = sorted(each.cpu_s for each in waits), sorted(each.wall_s for each in waits)
        middle = len(waits) // 2
        figures["other pods"] = f"{len(waits):,}"
        figures["CPU time until bound"] = f"median {cpu[middle]:.2f} s, most {cpu[-1]:.2f} s"
        figures["time until bound"] = f"median {wall[middle]:.2f} s, most {wall[-1]:.2f} s"
    figures["CPU time of the control plane"] = f"{busy:.0%} of one core"
    figures["seconds"] = f"{time.monotonic() - started:.0f}"
    return Outcome(figures, tuple(tally.faults.values()))
