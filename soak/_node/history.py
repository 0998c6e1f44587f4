"""A node through rounds of work and kills: real processes, killed wherever they are.

A round: pods are made and deleted, someone is killed, at a random time or when a driver comes to a
step that was chosen, and started again. Laws are looked at after each; now and then all rests, and
every pod must have come to something.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from random import Random

from moorage.api.core import Pod
from moorage.api.resource.v1 import ResourceClaim
from moorage.client.api_client import ApiClient
from moorage.client.errors import AlreadyExistsError, ClientError, NotFoundError
from moorage.client.writes import Create, Delete, Target
from soak._node import laws, things
from soak._node.driver import STEPS
from soak._node.laws import BrokenLawError
from soak._node.programs import Program, Site

LAMP, FAN, PIPE = "lamp.example.com", "fan.example.com", "pipe.example.com"
DEVICES = {LAMP: 6, FAN: 4, PIPE: 2}
NAMES = tuple(f"p-{number}" for number in range(14))
WANTED: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = (  # templates, shared claims
    (("lamp",), ()),
    (("lamp", "fan"), ()),
    (("both",), ()),
    (("two",), ()),
    (("pipe",), ()),
    (("lamp", "pipe"), ()),
    ((), ("c-lamp",)),
    ((), ("c-pipe",)),
    (("fan",), ("c-lamp",)),
)
COMMANDS = (
    *[(("sleep", "1000"), "Always")] * 4,
    (("sh", "-c", "sleep 0.4"), "Never"),
    (("sh", "-c", "sleep 0.2; exit 3"), "Never"),
    (("sh", "-c", "trap '' TERM; sleep 1000"), "Never"),
)
TRAP_S = 2.0  # how long a trap is waited for
REST_EVERY = 8
REST_S_MAX = 90.0
LOOK_S = 0.1
BACKOFF = "CrashLoopBackOff"


class History:
    """What happens to a site."""

    def __init__(self, site: Site, client: ApiClient, random: Random) -> None:
        self.counts: Counter[str] = Counter()
        self._site, self._client, self._random = site, client, random

    async def begin(self) -> None:
        """Have drivers, and what pods refer to."""
        for name, count in DEVICES.items():
            options = ["--devices", str(count), "--republish", "--trap", str(self._site.trap(name))]
            options += ["--journal", str(self._site.journal(name))]
            self._site.add_driver(name, *options, *(["--shared"] if name == PIPE else [])).start()
            await self._client.write(Create(things.device_class(name)))
        for made in (
            things.template("lamp", LAMP),
            things.template("fan", FAN),
            things.template("both", LAMP, FAN),
            things.template("two", LAMP, count=2),
            things.template("pipe", PIPE, units=3),
            *_claims().values(),
        ):
            await self._client.write(Create(made))
        for each in self._site.drivers.values():
            await each.wait_ready()

    async def rounds(self, number: int) -> None:
        """Work and kill the given number of times."""
        for each in range(number):
            await self._round()
            laws.look(self._site)
            if each % REST_EVERY == REST_EVERY - 1:
                await self.rest()

    # --- work -----------------------------------------------------------------------------------

    async def _work(self) -> None:
        actions: list[Callable[[], Awaitable[None]]] = [self._create, self._delete, self._force]
        for do in self._random.choices([*actions, self._renew], [10, 7, 2, 1], k=4):
            with suppress(NotFoundError, AlreadyExistsError):
                await do()
            await asyncio.sleep(self._random.choice([0, 0, 0.02, 0.1]))

    async def _create(self) -> None:
        templates, claims = self._random.choice(WANTED)
        command, restart = self._random.choice(COMMANDS)
        made = things.pod(
            self._random.choice(NAMES),
            command,
            mark=str(self._site.folder),
            templates=templates,
            claims=claims,
            restart=restart,
        )
        await self._client.write(Create(made))
        self.counts["pods"] += 1

    async def _delete(self) -> None:
        await self._client.write(Delete(Target.of(self._some_pod())))
        self.counts["pods deleted"] += 1

    async def _force(self) -> None:
        await self._client.write(Delete(Target.of(self._some_pod()), grace_s=0))
        self.counts["pods deleted by force"] += 1

    async def _renew(self) -> None:
        """Replace a claim by another of its name; as long as pods use it, it stays."""
        claim = self._random.choice([*_claims().values()])
        with suppress(NotFoundError):
            await self._client.write(Delete(Target.of(claim)))
        await self._client.write(Create(claim))

    def _some_pod(self) -> Pod:
        return things.pod(self._random.choice(NAMES), [])

    # --- kills ----------------------------------------------------------------------------------

    async def _round(self) -> None:
        random, site = self._random, self._site
        victims: list[Program | None] = [site.agent, random.choice([*site.drivers.values()]), None]
        victim = random.choices(victims, [9, 9, 2])[0]
        pid = site.shim_pid if victim is None else victim.pid
        is_trapped = random.random() < 0.6
        if is_trapped:
            self._set_trap(victim, pid)
        await self._work()
        if is_trapped:
            await self._wait_trap(pid)
        else:
            await asyncio.sleep(random.random())
        for name in site.drivers:
            site.trap(name).unlink(missing_ok=True)
        await self._kill(victim, pid)

    def _set_trap(self, victim: Program | None, pid: int) -> None:
        names = list(self._site.drivers)
        is_driver = victim is not None and victim.name in names
        driver = victim.name if victim is not None and is_driver else self._random.choice(names)
        step, delay_s = self._random.choice(STEPS), self._random.choice([0, 0, 0.002, 0.01, 0.05])
        trap = {"step": step, "pid": 0 if is_driver else pid, "delay_s": delay_s}
        aside = self._site.trap(driver).with_suffix(".new")
        aside.write_text(json.dumps(trap))
        aside.replace(self._site.trap(driver))

    async def _wait_trap(self, pid: int) -> None:
        """Work until the trap has sprung, or for long enough."""
        end_s = time.monotonic() + TRAP_S
        while time.monotonic() < end_s:
            if not _is_alive(pid):
                self.counts["kills at a chosen step"] += 1
                return
            await self._work()

    async def _kill(self, victim: Program | None, pid: int) -> None:
        self.counts["kills"] += 1
        if victim is None:
            self.counts["kills of the shim"] += 1
            if pid:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            return
        is_agent = victim is self._site.agent
        self.counts["kills of the agent" if is_agent else "kills of drivers"] += 1
        victim.kill()
        if self._random.random() < 0.3:
            await self._work()  # while it is away
        await asyncio.sleep(self._random.choice([0, 0, 0.3]))
        victim.start()
        if self._random.random() < 0.7:
            await victim.wait_ready()

    # --- rest -----------------------------------------------------------------------------------

    async def rest(self) -> None:
        """Wait until every pod has come to something."""
        for each in (self._site.agent, *self._site.drivers.values()):
            await each.wait_ready()
        for claim in _claims().values():  # one that was to be renewed may be gone
            with suppress(AlreadyExistsError):
                await self._client.write(Create(claim))
        await self._until(self._unsettled, "pods that come to nothing")
        laws.look(self._site)
        self.counts["rests"] += 1

    async def _unsettled(self) -> list[str]:
        claims = (await self._client.list(ResourceClaim)).values
        free = _free(claims)
        if any(each.metadata.deletion_timestamp is not None for each in claims):
            free = dict.fromkeys(free, 0)  # nobody new gets such a claim: pods may wait for it
        pods = (await self._client.list(Pod)).values
        counts = Counter(pod.status.phase for pod in pods)
        found = [f"{pod.metadata.name}: {pod.status}" for pod in pods if not _is_settled(pod, free)]
        if not found:
            self.counts.update({f"pods {phase}, at rest": n for phase, n in counts.items()})
        return found

    async def clear(self) -> None:
        """Delete all pods, then the claims, and wait each time until nothing of them is left."""
        for pod in (await self._client.list(Pod)).values:
            with suppress(NotFoundError):
                await self._client.write(Delete(Target.of(pod)))
        await self._until(self._left, "left of pods that are gone")
        for claim in (await self._client.list(ResourceClaim)).values:
            self.counts["claims unreserved by the scheduler"] += laws.is_unreserved(claim)
            with suppress(NotFoundError):
                await self._client.write(Delete(Target.of(claim)))
        await self._until(self._claims_left, "claims that were deleted")
        await self._until(self._unpublished, "not published")

    async def _left(self) -> list[str]:
        pods = (await self._client.list(Pod)).values
        return [f"pod {each.metadata.name}" for each in pods] + await laws.leaks(
            self._site, self._client
        )

    async def _claims_left(self) -> list[str]:
        claims = (await self._client.list(ResourceClaim)).values
        return [f"claim {each.metadata.name}: {each.status}" for each in claims]

    async def _unpublished(self) -> list[str]:
        wrong = [await laws.missing_devices(self._client, *each) for each in DEVICES.items()]
        return [each for each in wrong if each]

    async def _until(self, wrong: Callable[[], Awaitable[list[str]]], what: str) -> None:
        """Wait until nothing is wrong, for so long."""
        began_s, found = time.monotonic(), ["not looked yet"]
        while found:
            with suppress(ClientError):
                found = await wrong()
            taken_s = time.monotonic() - began_s
            if found and taken_s > REST_S_MAX:
                lines = "\n".join(found)[:6000]
                raise BrokenLawError(f"after {REST_S_MAX:g} s {what}:\n{lines}")
            await asyncio.sleep(LOOK_S)
        longest = f"longest wait in ms, {what}"
        self.counts[longest] = max(self.counts[longest], round(taken_s * 1000))

    # --- damage ---------------------------------------------------------------------------------

    async def damage(self) -> None:
        """Damage checkpoints: whoever reads one refuses, and names the file."""
        agent_file = self._site.root / "dra_manager_state"
        await self._damage(self._site.agent, agent_file)
        # A driver that has prepared nothing yet has no checkpoint.
        written = [name for name in DEVICES if self._site.checkpoint(name).exists()]
        if written:
            name = self._random.choice(written)
            await self._damage(self._site.drivers[name], self._site.checkpoint(name))

    async def _damage(self, program: Program, path: os.PathLike[str]) -> None:
        program.kill()
        with open(path, "rb") as file:
            content = file.read()
        at = self._random.randrange(len(content))
        damaged = self._random.choice(
            [content[:at], content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]]
        )
        _put(path, damaged)
        program.start()
        status = await program.wait_ended()
        said = program.said()
        assert status not in (0, -signal.SIGKILL), f"{program.name} runs with a damaged {path}"
        assert str(path) in said, f"{program.name} does not say that {path} is damaged: {said}"
        assert "Traceback" not in said, said
        program.forget()
        _put(path, content)
        program.start()
        await program.wait_ready()
        self.counts["damaged checkpoints refused"] += 1


def _claims() -> dict[str, ResourceClaim]:
    return {
        "c-lamp": things.claim("c-lamp", LAMP),
        "c-pipe": things.claim("c-pipe", PIPE, units=2),
    }


def _put(path: os.PathLike[str], content: bytes) -> None:
    with open(path, "wb") as file:
        file.write(content)


def _is_alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def _free(claims: tuple[ResourceClaim, ...]) -> dict[str, int]:
    """Return how many devices of each driver nobody has."""
    used: Counter[str] = Counter()
    for claim in claims:
        if claim.status.allocation is not None:
            used.update(each.driver for each in claim.status.allocation.devices.results)
    return {name: count - used[name] for name, count in DEVICES.items()}


def _is_settled(pod: Pod, free: dict[str, int]) -> bool:
    if pod.status.phase in ("Succeeded", "Failed"):
        return True
    if pod.metadata.deletion_timestamp is not None:
        return False
    if not pod.spec.node_name:
        return min(free.values()) <= 1  # it may want two devices, or have none
    states = [each.state for each in pod.status.container_statuses]
    waits = [(each.waiting or {}).get("reason") for each in states if not each.running]
    return pod.status.phase == "Running" and all(each == BACKOFF for each in waits)
