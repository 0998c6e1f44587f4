"""`moor control-plane`: the API server, the scheduler and the controllers in one process."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from moorage.api.gates import Gates
from moorage.cli import CONTEXT
from moorage.cli.command_classes import SectionedCommand
from moorage.cli.errors import fail, needs_extra, needs_system, os_error_text
from moorage.cli.gate_options import GATES, check_numa_form, explain_option, gate_options
from moorage.cli.scheduler import explaining
from moorage.cli.scheduler_file import scheduler_config
from moorage.cli.server_options import (
    data_dir_option,
    listen_options,
    read_runtime,
    runtime_config_option,
    without_option,
)
from moorage.cli.simulated_nodes import read_fleets, simulated_nodes_options
from moorage.cli.terminal import say
from moorage.kit.system import System

if TYPE_CHECKING:
    from moorage.cluster.control_plane import ControlPlane

LOG_FORMAT = "%(part)s%(asctime)s %(levelname)s %(message)s"


@click.command(
    name="control-plane",
    cls=SectionedCommand,
    sections=(
        ("Where", ("data_dir", "bind_address", "port")),
        ("Simulated nodes", ("profiles", "form_name")),
        ("How it works", ("config", "without", "runtime_config", "explain_in", *GATES)),
    ),
    context_settings=CONTEXT,
    epilog="Exit status: 0 stopped, 2 usage error, 3 the directory, the store, the port or the "
    "configuration cannot be used.",
)
@data_dir_option
@listen_options
@simulated_nodes_options()
@click.option(
    "--config",
    type=click.Path(path_type=Path),
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
def command(ctx: click.Context, /, gates: Gates, data_dir: Path, **given: Any) -> None:
    """Run the API server, the scheduler and the controllers in one process until interrupted.

    `moor up` runs this. The scheduler, the controllers and the simulated nodes call the API
    server directly instead of over HTTPS, which takes a fraction of the time. They are the same
    users and have the same permissions. `moor server`, `moor scheduler` and `moor controllers` run
    these programs in separate processes.

    \b
    moor control-plane --data-dir /var/lib/moorage
    """
    check_numa_form(given["form_name"], gates)
    config, _ = scheduler_config(given["config"], gates, is_alone=True)
    config = explaining(config, given["explain_in"], ctx.params["gates_preset"])
    _run(_plan(data_dir, gates, config, given))


def _plan(data_dir: Path, gates: Gates, config: Any, given: dict[str, Any]) -> ControlPlane:
    from moorage.apiserver.settings import Settings
    from moorage.cluster.control_plane import ControlPlane
    from moorage.cluster.programs import ProgramContext
    from moorage.cluster.state_folder import CREDENTIALS
    from moorage.cluster.status_server import ListenAddress, StatusTls
    from moorage.insight.answer.summary import PendingSummary

    context, pki = ProgramContext(gates=gates), data_dir / CREDENTIALS
    tls = StatusTls(pki / "server.crt", pki / "server.key", pki / "ca.crt")
    return ControlPlane(
        settings=Settings(
            data_dir,
            address=given["bind_address"],
            port=given["port"],
            gates=gates,
            runtime=read_runtime(given["runtime_config"], gates),
            has_rbac=True,
        ),
        config=config,
        explain=PendingSummary(context.clock.monotonic, gates, extensions=config.extensions),
        fleets=tuple(read_fleets(given["profiles"], given["form_name"])),
        place=ListenAddress("127.0.0.1", 0, tls),
        without=given["without"],
        context=context,
    )


def _run(plan: ControlPlane) -> None:
    from moorage.apiserver.errors import CredentialsError
    from moorage.client.errors import ClientError
    from moorage.cluster.control_plane import PartNames, run_control_plane
    from moorage.kit.printable import log_to_stderr
    from moorage.store.errors import StoreError

    log_to_stderr(logging.WARNING, LOG_FORMAT, PartNames())
    try:
        asyncio.run(run_control_plane(plan, lambda text: say(text, err=True)))
    except* (StoreError, CredentialsError, ClientError) as found:
        fail(str(_first(found)))
    except* OSError as failed:
        fail(os_error_text(_first(failed)))
    except* KeyboardInterrupt:
        pass
    say("stopped", err=True)


def _first(group: BaseExceptionGroup[Any]) -> Any:
    found: Any = group
    while isinstance(found, BaseExceptionGroup):
        found = found.exceptions[0]
    return found
