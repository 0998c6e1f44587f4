"""Probes of one container, asked as long as it runs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

from mooring.api.core import Container
from mooring.kit.clock import Clock
from mooring.node.pods.asking import Answer, Asking
from mooring.node.pods.probes import (
    LIVENESS,
    READINESS,
    STARTUP,
    Probe,
    Tally,
    probe_of,
)
from mooring.node.runtime.contract import ContainerId


class Patient(Protocol):
    """Who is told how a container is."""

    def is_up(self, id_: ContainerId) -> None:
        """Take that a container is past its start."""

    def is_ready(self, id_: ContainerId, ready: bool) -> None:
        """Take whether a container can serve."""

    def is_ailing(self, id_: ContainerId, message: str) -> None:
        """Take that a container is to be killed."""


async def probe(
    container: Container,
    id_: ContainerId,
    *,
    patient: Patient,
    asking: Asking,
    clock: Clock,
    tell: Callable[[str], None],
    was_up: bool = False,
) -> None:
    """Ask a container how it is until cancelled, or until it is given up."""

    async def follow(kind: str, verdict: bool | None, told: Callable[[bool], None]) -> None:
        found = probe_of(container, kind)
        if found is not None:
            await _follow(found, Tally(found, verdict), id_, asking, clock, tell, told)

    def gives_up(kind: str) -> Callable[[bool], None]:
        text = f"Container {container.name} failed {kind.lower()} probe, will be restarted"
        return lambda is_well: None if is_well else patient.is_ailing(id_, text)

    startup = probe_of(container, STARTUP)
    if startup is not None and not was_up:
        tally = Tally(startup)
        await _until_known(startup, tally, id_, asking, clock, tell)
        if not tally.verdict:
            gives_up(STARTUP)(False)
            return
    patient.is_up(id_)
    if probe_of(container, READINESS) is None:
        patient.is_ready(id_, True)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(follow(LIVENESS, True, gives_up(LIVENESS)))
        ready = follow(READINESS, None, lambda is_well: patient.is_ready(id_, is_well))
        tasks.create_task(ready)


async def _until_known(
    asked: Probe,
    tally: Tally,
    id_: ContainerId,
    asking: Asking,
    clock: Clock,
    tell: Callable[[str], None],
) -> None:
    await clock.sleep(asked.delay_s)
    while tally.verdict is None:
        tally.count(await _ask(asked, id_, asking, tell))
        if tally.verdict is None:
            await clock.sleep(asked.period_s)


async def _follow(
    asked: Probe,
    tally: Tally,
    id_: ContainerId,
    asking: Asking,
    clock: Clock,
    tell: Callable[[str], None],
    told: Callable[[bool], None],
) -> None:
    await clock.sleep(asked.delay_s)
    while True:
        if tally.count(await _ask(asked, id_, asking, tell)):
            told(bool(tally.verdict))
        await clock.sleep(asked.period_s)


async def _ask(asked: Probe, id_: ContainerId, asking: Asking, tell: Callable[[str], None]) -> bool:
    answer: Answer = await asking.ask(id_, asked.action, asked.timeout_s)
    if not answer.is_well:
        tell(f"{asked.kind} probe failed: {answer.text}")
    return answer.is_well
