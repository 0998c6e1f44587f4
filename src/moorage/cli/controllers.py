"""`moor controllers`: the controllers alone, against any cluster."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from moorage.api.gates import Gates
from moorage.cli import CONTEXT
from moorage.cli.command_classes import SectionedCommand, option_with_default
from moorage.cli.errors import fail
from moorage.cli.gate_options import GATES, check_numa_form, gate_options
from moorage.cli.program_options import (
    SECTIONS,
    access_of,
    lead_of,
    program_options,
    run_program,
    status_place,
    switch,
)
from moorage.cli.simulated_nodes import read_fleets, simulated_nodes_options
from moorage.cli.terminal import say

if TYPE_CHECKING:
    from moorage.client.client_factory import RestConfig
    from moorage.client.contract import Client
    from moorage.cluster.leader_process import LeaderLease
    from moorage.cluster.status_server import ListenAddress
    from moorage.controllers.controller import Controller
    from moorage.hardware import Fleet

NAMESPACE_CONTROLLER = "namespace-controller"
REMEDY = "; with --use-service-account-credentials=false controllers need no tokens"


@click.command(
    name="controllers",
    cls=SectionedCommand,
    sections=(
        SECTIONS[0],
        (
            "What it does",
            (
                "controllers",
                "use_service_account_credentials",
                "root_ca_file",
                *GATES,
            ),
        ),
        ("Simulated nodes", ("nodes_kubeconfig", "profiles", "form_name")),
        *(each for each in SECTIONS[1:] if each[0] != "What it does"),
    ),
    context_settings=CONTEXT,
    epilog="Exit status: 0 stopped, 1 the lease was lost, 2 usage error, 3 the cluster "
    "cannot be reached or used.",
)
@option_with_default(
    "--controllers",
    default="*",
    metavar="NAME,…",
    help="Controllers to run: * for all that are on by default, NAME to enable one, -NAME to "
    "disable one. Off by default: explainer-controller.",
)
@switch(
    "--use-service-account-credentials",
    default=True,
    text="Have each controller act as its service account in kube-system, not as the user of the "
    "kubeconfig.",
)
@click.option(
    "--root-ca-file",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="CA bundle to publish in every namespace as kube-root-ca.crt; without it, none "
    "is published.",
)
@click.option(
    "--nodes-kubeconfig",
    default="",
    metavar="FILE",
    help="Also simulate nodes, as the user of this kubeconfig, who must be an administrator.",
)
@simulated_nodes_options(
    "Hardware profile to simulate (with --nodes-kubeconfig); see `moor profiles`."
)
@program_options(lease="kube-controller-manager", metrics="127.0.0.1:10257")
@gate_options
def command(gates: Gates, place: ListenAddress | None, **given: Any) -> None:
    """Run the controllers until interrupted.

    Runs the controllers of Dynamic Resource Allocation (ResourceClaims of pods and pod groups,
    device taint eviction, ResourcePoolStatusRequests) and those that workloads need, such as
    Deployments, StatefulSets, DaemonSets, Jobs, CronJobs, EndpointSlices, PersistentVolumes,
    PodDisruptionBudgets, service accounts and garbage collection. The namespace controller runs
    only against servers that do not empty deleted namespaces themselves; Moorage's server does.

    The explainer-controller is for clusters that run kube-scheduler. For each pod with claims that
    gets no node, it records an Explained event with the cause that Moorage finds. It is off by
    default.

    \b
    moor controllers --kubeconfig ~/.kube/config
    moor controllers --controllers resourceclaim-controller,device-taint-eviction-controller
    moor controllers --controllers explainer-controller,resourcepoolstatusrequest-controller
    """
    check_numa_form(given["form_name"], gates)
    place = status_place(place, given)
    chosen = _chosen(given["controllers"])
    fleets = _fleets(given)
    lead, access = lead_of(given), access_of(given)
    run_program(
        _run(access, gates, {**given, "fleets": fleets}, lead, place, chosen),
        verbosity=given["verbosity"],
        server=access.server,
        remedy=REMEDY if given["use_service_account_credentials"] else "",
    )


def _is_named(text: str, controller: str) -> bool:
    return controller in [part.strip() for part in text.split(",")]


def _chosen(text: str) -> frozenset[str]:
    """Return the names of the controllers to run, or raise UsageError for unknown names."""
    from moorage.cluster.programs import CONTROLLERS, OFF_BY_DEFAULT

    asked = [part.strip() for part in text.split(",") if part.strip()]
    for name in asked:
        if name != "*" and name.removeprefix("-") not in CONTROLLERS:
            known = ", ".join(CONTROLLERS)
            raise click.UsageError(f"--controllers: there is no {name!r}; there are: {known}")
    taken = {name for name in asked if name in CONTROLLERS}
    if "*" in asked:
        taken |= set(CONTROLLERS) - OFF_BY_DEFAULT
    return frozenset(name for name in taken if f"-{name}" not in asked)


def _fleets(given: dict[str, Any]) -> list[Fleet]:
    if given["profiles"] and not given["nodes_kubeconfig"]:
        raise click.UsageError("--profile: only with --nodes-kubeconfig")
    return read_fleets(given["profiles"], given["form_name"])


def _authority(path: Path | None) -> str:
    if path is None:
        return ""
    try:
        return path.read_text("ascii")
    except (OSError, ValueError) as error:
        fail(f"--root-ca-file: {error}")


async def _run(
    access: RestConfig,
    gates: Gates,
    given: dict[str, Any],
    lead: LeaderLease | None,
    place: ListenAddress | None,
    chosen: frozenset[str],
) -> None:
    from moorage.client.client_factory import http_client
    from moorage.cluster.explainer import EXPLAINER, ExplainerProgram
    from moorage.cluster.leader_process import check_connection, empties_namespaces, run_as_leader
    from moorage.cluster.programs import (
        CONTROLLERS_AGENT,
        ControllerClients,
        ControllerProgram,
        ProgramContext,
        controller_name,
    )

    context = ProgramContext(gates=gates)
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(http_client(access, manager=CONTROLLERS_AGENT))
        await check_connection(client)
        client_of: Callable[[str], Client] = lambda _: client  # noqa: E731
        if given["use_service_account_credentials"]:
            accounts = ControllerClients(
                client, lambda tokens: http_client(access, manager=CONTROLLERS_AGENT, tokens=tokens)
            )
            stack.push_async_callback(accounts.close)
            await accounts.check()
            client_of = accounts.client_of
        is_left_to_server = await empties_namespaces(client)
        if is_left_to_server and _is_named(given["controllers"], NAMESPACE_CONTROLLER):
            why = f"the server at {access.server} empties namespaces itself"
            say(f"{NAMESPACE_CONTROLLER}: not running, because {why}", err=True)
        more, client_of = await _simulation(gates, given, client_of, stack)
        program = ControllerProgram(
            client,
            context,
            authority=_authority(given["root_ca_file"]),
            more=more,
            client_of=client_of,
            chosen=lambda name: controller_name(name) in chosen,
            ends_namespaces=not is_left_to_server,
        )
        if EXPLAINER in chosen:
            # Kubernetes does not have it, so it has no account of its own.
            program.beside = (ExplainerProgram(client, context, program.informers),)
        await run_as_leader(
            program,
            client,
            context,
            lead=lead,
            place=place,
            tell=lambda text: say(text, err=True),
            working=f"controlling at {access.server}",
        )


async def _simulation(
    gates: Gates,
    given: dict[str, Any],
    client_of: Callable[[str], Client],
    stack: AsyncExitStack,
) -> tuple[tuple[Controller, ...], Callable[[str], Client]]:
    """Return the controllers of simulated nodes, if there are any, and all clients."""
    if not given["nodes_kubeconfig"]:
        return (), client_of
    from moorage.client.client_factory import http_client, load_rest_config
    from moorage.cluster.simulation import SimulatedMachines, SimulatedPods

    access = load_rest_config(given["nodes_kubeconfig"])
    nodes = await stack.enter_async_context(http_client(access, manager="kubelet"))
    own = (SimulatedMachines(given["fleets"]), SimulatedPods(gates))
    names = {each.name for each in own}
    return own, lambda name: nodes if name in names else client_of(name)
