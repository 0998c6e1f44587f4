"""`moor up`: a whole cluster on this machine."""

from __future__ import annotations

import asyncio
import os
import shlex
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from moorage.api.gates import Gates
from moorage.api.names import dns1123_subdomain
from moorage.cli import CONTEXT
from moorage.cli.command_classes import SectionedCommand, option_with_default
from moorage.cli.errors import fail, needs_extra, needs_system, os_error_text
from moorage.cli.gate_options import GATES, check_numa_form, explain_option, gate_options
from moorage.cli.server_options import (
    data_dir_option,
    listen_options,
    read_runtime,
    runtime_config_option,
    without_option,
)
from moorage.cli.simulated_nodes import read_fleets, simulated_nodes_options
from moorage.cli.status import ProgressView, status_lines
from moorage.cli.terminal import echo, say
from moorage.insight.messages import counted, listed
from moorage.kit.atomic_file import open_private
from moorage.kit.system import System, missing_system, on_stop

if TYPE_CHECKING:
    from moorage.client.contract import Client
    from moorage.cluster.cluster_processes import ClusterPlan, NodePlan
    from moorage.cluster.state_folder import StateFolder
    from moorage.cluster.supervisor import Supervisor

DETACHED = "MOORAGE_DETACHED"  # in the environment of the process that --detach starts
START_S_MAX = 120.0
LOOK_EVERY_S = 3.0


@click.command(
    name="up",
    cls=SectionedCommand,
    sections=(
        ("Where", ("data_dir", "bind_address", "port", "detach", "is_isolated")),
        ("This machine", ("has_node", "node_name", "runtime", "drivers")),
        ("Simulated nodes", ("profiles", "form_name")),
        ("How it works", ("config", "without", "runtime_config", "explain_in", *GATES)),
    ),
    context_settings=CONTEXT,
    epilog="Exit status: 0 stopped, or detached and running; 2 usage error; 3 the cluster "
    "could not be started.",
)
@data_dir_option
@listen_options
@click.option(
    "--node/--no-node",
    "has_node",
    default=None,
    help="Run pods on this machine as a node. The default unless --profile is given.",
)
@click.option(
    "--node-name",
    default=lambda: socket.gethostname().lower(),
    show_default="the name of this machine",
    metavar="NAME",
    help="Name of the node.",
)
@option_with_default(
    "--runtime",
    type=click.Choice(["process", "podman", "sim"]),
    default="process",
    help="Container runtime: local processes, podman, or simulated.",
)
@option_with_default(
    "--drivers",
    default="auto",
    metavar="NAME,…|auto|none",
    help="Drivers to run: cpu, memory, net, nvme, nvidia; auto runs those that find devices.",
)
@click.option(
    "--detach", is_flag=True, help="Return once the cluster is running; `moor down` stops it."
)
@click.option(
    "--isolate",
    "is_isolated",
    is_flag=True,
    help="Run the server, the scheduler and the controllers in separate processes, which is slower "
    "and uses more memory.",
)
@simulated_nodes_options(numa_node="How drivers publish numaNode.")
@click.option(
    "--config",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    metavar="FILE",
    help="File with a KubeSchedulerConfiguration.",
)
@runtime_config_option
@without_option
@explain_option
@gate_options
@click.pass_context
@needs_system(System.POSIX)
@needs_extra("server")
def command(ctx: click.Context, /, gates: Gates, detach: bool, **given: Any) -> None:
    """Run a cluster on this machine, with its own CPUs, memory, NICs, disks and GPUs.

    Starts the API server with the scheduler and the controllers in one process, and the agent of
    this node and the drivers of its devices as processes of their own. kubectl and every
    Kubernetes client can use the cluster with the kubeconfig that is printed. A process that
    exits is restarted. All data is kept in --data-dir and is still there on the next start.
    Containers are processes of this machine, started from `command`.

    With --profile, the nodes are simulated machines of hardware profiles with their devices. Pods
    bound to them become Running; pods of Jobs exit as their commands would (`sleep 30`, `false`)
    or after five seconds.

    \b
    moor up
    moor up --drivers cpu,nvidia --runtime podman
    moor up --profile dgx-h100=4
    moor up --detach --profile gb200-nvl72 && moor status && moor down
    """
    from moorage.cluster.state_folder import StateFolder

    check_numa_form(given["form_name"], gates)
    if not os.environ.get(DETACHED):  # else whoever started us has looked
        read_fleets(given["profiles"], given["form_name"])
        read_runtime(given["runtime_config"], gates)
    plan = _plan(ctx, given)
    folder = StateFolder(plan.folder)
    if detach:
        is_named = ctx.get_parameter_source("data_dir") is click.core.ParameterSource.COMMANDLINE
        _detach(folder, plan, f" --data-dir {given['data_dir']}" if is_named else "")
    else:
        _run(folder, plan)


def _plan(ctx: click.Context, given: dict[str, Any]) -> ClusterPlan:
    from moorage.cluster.cluster_processes import ClusterPlan

    chosen = ((f"--{name.replace('_', '-')}", ctx.params[name]) for name in GATES)
    config: Path | None = given["config"]
    return ClusterPlan(
        folder=given["data_dir"].absolute(),
        address=given["bind_address"],
        port=given["port"],
        profiles=given["profiles"],
        form=given["form_name"],
        config=None if config is None else config.absolute(),
        node=_node(given),
        explain_in=given["explain_in"] or "",
        is_isolated=given["is_isolated"],
        without=given["without"],
        gates=tuple(word for flag, text in chosen if text for word in (flag, text)),
        runtime_config=given["runtime_config"],
    )


def _node(given: dict[str, Any]) -> NodePlan | None:
    """Return the plan of this machine as a node, or None."""
    from moorage.cluster.cluster_processes import NodePlan

    has_node: bool | None = given["has_node"]
    if not (has_node or (has_node is None and not given["profiles"])):
        return None
    if missing := missing_system(System.LINUX):
        raise click.UsageError(
            f"a node of this machine {missing}; --profile simulates nodes, --no-node runs none"
        )
    if faults := dns1123_subdomain(given["node_name"]):
        raise click.UsageError(f"--node-name: {given['node_name']!r}: {faults[0]}")
    return NodePlan(given["node_name"], given["runtime"], _drivers(given["drivers"]))


def _drivers(text: str) -> tuple[str, ...]:
    from moorage.drivers.catalogue import CATALOGUE, DriverOptions, finds_devices

    own = [name for name in CATALOGUE if name != "sim"]
    if text == "auto":
        return tuple(name for name in own if finds_devices(name, DriverOptions()))
    names = () if text == "none" else tuple(filter(None, text.split(",")))
    for name in names:
        if name not in own:
            raise click.UsageError(f"--drivers: no driver {name!r}; there are {', '.join(own)}")
    return names


# --- in the foreground ----------------------------------------------------------------------------


def _run(folder: StateFolder, plan: ClusterPlan) -> None:
    from moorage.cluster.state_folder import FolderError, ShortPathError
    from moorage.cluster.supervisor import ProcessFailedError

    try:
        with folder.locked():
            asyncio.run(_supervise(folder, plan))
    except (FolderError, ProcessFailedError, ShortPathError) as error:
        fail(str(error))
    except OSError as error:
        fail(os_error_text(error))
    say("stopped")


async def _supervise(folder: StateFolder, plan: ClusterPlan) -> None:
    from moorage.cluster.cluster_processes import cluster_processes, on_server_ready
    from moorage.cluster.state_folder import ClusterState
    from moorage.cluster.supervisor import ProcessSpec, Supervisor

    is_serving = asyncio.Event()

    def on_working(name: str, line: str) -> ProcessSpec | None:
        if name != "server":
            return None
        is_serving.set()
        return on_server_ready(plan, line)

    began = datetime.now(UTC).isoformat(timespec="seconds")
    node = None if plan.node is None else plan.node.state(plan)
    state = ClusterState(
        pid=os.getpid(),
        began=began,
        profiles=plan.profiles,
        node=node,
        is_isolated=plan.is_isolated,
    )
    view = ProgressView(is_terminal=sys.stdout.isatty())
    supervisor = Supervisor(
        folder, state, cluster_processes(plan), report=view.line, on_working=on_working
    )
    task = asyncio.ensure_future(supervisor.run(lambda: _print_addresses(view, supervisor, plan)))
    on_stop(task.cancel)
    looking = asyncio.gather(
        _show_status(view, plan.folder / "kubeconfig", supervisor),
        _create_classes(view, is_serving, plan),
        _print_kept(view, is_serving, plan),
        _print_link(view, is_serving, plan),
    )
    try:
        with suppress(asyncio.CancelledError):
            await task
    finally:
        looking.cancel()
        await asyncio.gather(looking, return_exceptions=True)
        view.clear()


async def _create_classes(view: ProgressView, is_serving: asyncio.Event, plan: ClusterPlan) -> None:
    """Make the class of storage, and those of this machine's drivers, once the server is there."""
    from moorage.client.errors import ClientError
    from moorage.cluster.driver_classes import driver_names, make_classes, make_storage_class

    drivers = [] if plan.node is None else list(driver_names(plan.node.drivers))

    async def make(client: Client) -> None:
        await make_storage_class(client, plan.folder)
        await make_classes(client, drivers)

    await is_serving.wait()
    try:
        await _with_client(plan.folder / "kubeconfig", make)
    except ClientError as error:
        view.line(f"DeviceClasses and StorageClass could not be created: {error}")


def _print_addresses(view: ProgressView, supervisor: Supervisor, plan: ClusterPlan) -> None:
    view.line(f"cluster at {supervisor.state.server}")
    view.line(_export_line(plan))
    view.line(f"logs: {plan.folder / 'log'}")
    if supervisor.state.node is not None:
        view.line(f"node {supervisor.state.node}")


def _export_line(plan: ClusterPlan) -> str:
    """Return the line that makes kubectl and `moor … --live` use the cluster, for a shell."""
    return f"export KUBECONFIG={shlex.quote(str(plan.folder / 'kubeconfig'))}"


async def _print_kept(view: ProgressView, is_serving: asyncio.Event, plan: ClusterPlan) -> None:
    """Print which nodes of another profile there are, once the server is there."""
    await is_serving.wait()
    for line in await _kept_lines(plan):
        view.line(line)


async def _kept_lines(plan: ClusterPlan) -> list[str]:
    """Return a line about the simulated nodes of an earlier start that --profile does not give."""
    from moorage.client.errors import ClientError
    from moorage.cluster.simulation.machines import kept_nodes

    given = {
        node.metadata.name
        for fleet in read_fleets(plan.profiles, plan.form)
        for node in fleet.nodes
    }

    async def find(client: Client) -> list[str]:
        return await kept_nodes(client, given)

    try:
        kept = await _with_client(plan.folder / "kubeconfig", find)
    except ClientError:
        return []  # which other lines report
    if not kept:
        return []
    nodes = f"{counted(len(kept), 'node')} of another --profile: {listed(kept)}"
    return [f"kept from an earlier start, {nodes}; kubectl delete node removes what is not wanted"]


async def _print_link(view: ProgressView, is_serving: asyncio.Event, plan: ClusterPlan) -> None:
    """Print a link to the page, once the server is there."""
    from moorage.cli.ui import page_line

    await is_serving.wait()
    view.line(await page_line(plan.folder / "kubeconfig"))


async def _show_status(view: ProgressView, kubeconfig: Path, supervisor: Supervisor) -> None:
    """Show how the cluster is doing, as long as it runs and somebody looks."""
    if not view.is_terminal:
        return
    from moorage.client.errors import ClientError
    from moorage.cluster.overview import fetch_overview

    overview = None
    while True:
        await asyncio.sleep(LOOK_EVERY_S)
        if supervisor.state.is_working:
            with suppress(ClientError):
                overview = await _with_client(kubeconfig, fetch_overview)
        view.show(status_lines(supervisor.state, overview))


async def _with_client(kubeconfig: Path, call: Callable[[Any], Any]) -> Any:
    from moorage.client.client_factory import http_client, load_rest_config

    async with http_client(load_rest_config(str(kubeconfig))) as client:
        return await call(client)


# --- in the background ----------------------------------------------------------------------------


def _detach(folder: StateFolder, plan: ClusterPlan, where: str) -> None:
    """Start a process that runs the cluster, and return when it works; `where` names the folder."""
    from moorage.cli.ui import page_line
    from moorage.cluster.state_folder import FolderError

    try:
        with folder.locked():
            log = open_private(folder.log("up"))
    except (FolderError, OSError) as error:
        fail(str(error))
    with log:
        process = subprocess.Popen(  # noqa: S603  # this program, with its own options
            [sys.executable, "-m", "moorage.cli.main", *_arguments(plan)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            env={**os.environ, DETACHED: "1"},
        )
    end_s, state = time.monotonic() + START_S_MAX, folder.read()
    while time.monotonic() < end_s:
        state = folder.read()
        if state is not None and state.pid == process.pid and state.is_working:
            echo(f"cluster at {state.server}")
            echo(_export_line(plan))
            for line in asyncio.run(_kept_lines(plan)):
                echo(line)
            echo(asyncio.run(page_line(plan.folder / "kubeconfig", where)))
            echo(f"`moor status{where}` shows it, `moor down{where}` stops it")
            return
        if process.poll() is not None:
            said = folder.log("up").read_text(errors="replace").strip().splitlines()
            fail(said[-1].removeprefix("error: ") if said else "the cluster did not start")
        time.sleep(0.05)
    process.terminate()
    late = [each.name for each in state.processes if not each.is_working] if state else []
    what = " and ".join(late) or "the cluster"
    fail(f"{what} did not become ready within {START_S_MAX:g} s; see {folder.log('up').parent}")


def _arguments(plan: ClusterPlan) -> list[str]:
    words = ["up", "--data-dir", str(plan.folder), "--bind-address", plan.address]
    words += ["--secure-port", str(plan.port), "--numa-node", plan.form]
    for name in plan.profiles:
        words += ["--profile", name]
    words += ["--config", str(plan.config)] if plan.config is not None else []
    words += ["--runtime-config", plan.runtime_config] if plan.runtime_config else []
    words += ["--explain-in", plan.explain_in] if plan.explain_in else []
    words += ["--isolate"] if plan.is_isolated else []
    words += [word for name in plan.without for word in ("--without", name)]
    words += _node_words(plan.node)
    return [*words, *plan.gates]


def _node_words(node: NodePlan | None) -> list[str]:
    if node is None:
        return ["--no-node"]
    drivers = ",".join(node.drivers) or "none"
    return ["--node", "--node-name", node.name, "--runtime", node.runtime, "--drivers", drivers]
