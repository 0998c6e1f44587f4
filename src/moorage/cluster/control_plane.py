"""The control plane in one process: the API server, the scheduler and the controllers.

    users ──HTTPS──► API server ◄──objects── scheduler, controllers, simulated nodes
                         │
                       store

The programs call the server directly (`moorage.apiserver.direct_client`), as the same users as over
HTTPS. They share its event loop, and work in short slices. A failed program is restarted with
increasing backoff, while the others continue. If it fails before it ever worked, the process ends.

Each output line of a part begins with its name: `scheduler: scheduling at …`. Lines of the server
have no prefix.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import NamedTuple

from msgspec.structs import replace

from moorage.apiserver.auth.credentials import ADMIN
from moorage.apiserver.direct_client import DirectClient, direct_client
from moorage.apiserver.server import Assembled, assembled, serving
from moorage.apiserver.settings import Settings
from moorage.client.client_factory import Tokens
from moorage.client.contract import Client
from moorage.cluster.cluster_processes import CONTROLLING, SCHEDULING
from moorage.cluster.leader_process import Runnable, run_as_leader
from moorage.cluster.page import page_beside
from moorage.cluster.programs import (
    CONTROLLERS_AGENT,
    SCHEDULER_AGENT,
    ControllerClients,
    ControllerProgram,
    ProgramContext,
    SchedulerProgram,
)
from moorage.cluster.simulation import SimulatedMachines, SimulatedPods
from moorage.cluster.status_server import ListenAddress
from moorage.cluster.supervisor import BACKOFF, RESTARTING, STABLE_S
from moorage.hardware import Fleet
from moorage.kit.bulkhead import FAULTS, cause_text
from moorage.kit.clock import Clock
from moorage.kit.system import on_stop
from moorage.scheduler.live import Explain, SchedulerConfig

SCHEDULER, CONTROLLERS = "scheduler", "controllers"
KUBELET_AGENT = "kubelet"

PART: contextvars.ContextVar[str] = contextvars.ContextVar("part", default="")

Tell = Callable[[str], None]
Part = Callable[[Tell], Awaitable[None]]  # works until cancelled, and reports its progress


class ControlPlane(NamedTuple):
    """What to run in the process."""

    settings: Settings  # of the server, with RBAC
    config: SchedulerConfig
    explain: Explain = lambda *_: ""
    fleets: tuple[Fleet, ...] = ()  # of simulated nodes
    place: ListenAddress | None = None  # of each program's status pages; port 0
    without: tuple[str, ...] = ()  # parts that other programs replace
    context: ProgramContext = ProgramContext()


async def run_control_plane(plan: ControlPlane, tell: Tell) -> None:
    """Run everything until a signal stops it, the programs first and the server last."""
    settings = plan.settings
    async with (
        assembled(settings) as made,
        page_beside(made, settings),
        serving(made, settings) as (url, server),
    ):
        tell(f"serving at {url}; kubeconfig: {settings.data_dir / 'kubeconfig'}")
        programs = asyncio.ensure_future(run_programs(made, plan, url, tell))
        on_stop(programs.cancel)
        try:
            await asyncio.wait((programs, server), return_when=asyncio.FIRST_COMPLETED)
        finally:
            programs.cancel()
            with suppress(asyncio.CancelledError):
                await programs


async def run_programs(made: Assembled, plan: ControlPlane, url: str, tell: Tell) -> None:
    """Run the programs beside a server until cancelled, or until one fails to start."""
    clock = plan.context.clock
    parts: dict[str, Part] = {}
    if SCHEDULER not in plan.without:
        parts[SCHEDULER] = partial(_schedule, made, plan, url)
    if CONTROLLERS not in plan.without or plan.fleets:  # those of simulated nodes still run
        parts[CONTROLLERS] = partial(_control, made, plan, url)
    async with asyncio.TaskGroup() as tasks:
        for name, part in parts.items():
            tasks.create_task(keep_part_running(name, part, tell, clock))
        if not parts:
            await asyncio.Event().wait()  # until cancelled


async def keep_part_running(name: str, part: Part, tell: Tell, clock: Clock) -> None:
    """Run a part until cancelled; restart it after failures, once it has worked."""
    PART.set(name)  # of this task and all tasks that it starts
    failures, has_worked = 0, False

    def tell_named(text: str) -> None:
        nonlocal has_worked
        has_worked = has_worked or text.startswith((SCHEDULING, CONTROLLING))
        tell(f"{name}: {text}")

    while True:
        began_s = clock.monotonic()
        try:
            await part(tell_named)
            raise RuntimeError("it ended by itself")
        except Exception as error:
            if not has_worked:
                raise
            failures = 1 if clock.monotonic() - began_s >= STABLE_S else failures + 1
            FAULTS.note("the control plane", name, error, "begins again")
            tell_named(f"{RESTARTING}{cause_text(error)}")
        await clock.sleep(BACKOFF.delay_s(failures))


# --- programs -------------------------------------------------------------------------------------


async def _schedule(made: Assembled, plan: ControlPlane, url: str, tell: Tell) -> None:
    async with program_client(made, "scheduler", SCHEDULER_AGENT) as client:
        config = replace(plan.config, joins_claim_writes=client.joins_status)
        program = SchedulerProgram(client, plan.context, config=config, explain=plan.explain)
        await _run(program, client, plan, tell, f"{SCHEDULING}{url}")


async def _control(made: Assembled, plan: ControlPlane, url: str, tell: Tell) -> None:
    context = plan.context
    assert made.credentials is not None
    simulated = (SimulatedMachines(plan.fleets), SimulatedPods(context.gates))
    names = {each.name for each in simulated}
    async with (
        program_client(made, "controller-manager", CONTROLLERS_AGENT) as client,
        program_client(made, ADMIN, KUBELET_AGENT) as nodes,
    ):
        accounts = ControllerClients(client, partial(account_client, made, context.clock))

        def client_of(name: str) -> Client:
            return nodes if name in names else accounts.client_of(name)

        program = ControllerProgram(
            client,
            context,
            authority=made.credentials.authority.certificate.decode(),
            more=simulated,
            client_of=client_of,
            chosen=lambda _: CONTROLLERS not in plan.without,
        )
        try:
            await _run(program, client, plan, tell, f"{CONTROLLING}{url}")
        finally:
            await accounts.close()


async def _run(
    program: Runnable, client: Client, plan: ControlPlane, tell: Tell, working: str
) -> None:
    await run_as_leader(
        program, client, plan.context, lead=None, place=plan.place, tell=tell, working=working
    )


def program_client(made: Assembled, user: str, manager: str) -> DirectClient:
    """Return the client of a user with a certificate."""
    assert made.credentials is not None
    certificate = made.credentials.client_certificate(user)
    return direct_client(made.application, manager=manager, certificate=certificate)


def account_client(made: Assembled, clock: Clock, tokens: Tokens) -> DirectClient:
    """Return the client of a controller's service account."""
    return direct_client(made.application, manager=CONTROLLERS_AGENT, tokens=tokens, clock=clock)


# --- logs -----------------------------------------------------------------------------------------


class PartNames(logging.Filter):
    """Adds the name of the part that writes a log line."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Add the name of the part to a record."""
        part = PART.get()
        record.part = f"{part}: " if part else ""
        return True
