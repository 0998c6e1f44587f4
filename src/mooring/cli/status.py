"""`moor status`: what runs in a folder, and how it is doing."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from mooring.cli import CONTEXT
from mooring.cli.errors import DOES_NOT_FIT, FITS
from mooring.cli.server_options import data_dir_option

if TYPE_CHECKING:
    from mooring.cluster.overview import Overview
    from mooring.cluster.state_folder import ClusterState, ProcessState


@click.command(
    name="status",
    context_settings=CONTEXT,
    epilog="Exit status: 0 everything is running, 1 something is not, 2 usage error.",
)
@data_dir_option
@click.option(
    "-o",
    "--output",
    type=click.Choice(["table", "json"]),
    default="table",
    show_default=True,
    help="Output format.",
)
def command(data_dir: Path, output: str) -> None:
    """Show what `moor up` runs in a directory: processes, nodes, pods and devices in use.

    For this machine as a node, it shows the runtime and the drivers.
    """
    from mooring.cluster.state_folder import StateFolder

    folder = StateFolder(data_dir)
    pid, state = folder.runner(), folder.read()
    if not pid or state is None or state.pid != pid:
        click.echo(f"no cluster runs in {data_dir}" if output == "table" else '{"running":false}')
        sys.exit(DOES_NOT_FIT)
    overview, fault = asyncio.run(_overview(data_dir))
    if output == "json":
        click.echo(msgspec.json.format(msgspec.json.encode(_tree(state, overview, fault))).decode())
    else:
        _print(data_dir, state, overview, fault)
    sys.exit(FITS if state.is_working and overview is not None else DOES_NOT_FIT)


async def _overview(data_dir: Path) -> tuple[Overview | None, str]:
    from mooring.client.client_factory import http_client, load_rest_config
    from mooring.client.errors import ClientError
    from mooring.cluster.overview import fetch_overview

    try:
        async with http_client(load_rest_config(str(data_dir / "kubeconfig"))) as client:
            return await fetch_overview(client), ""
    except ClientError as error:
        return None, error.message


def _tree(state: ClusterState, overview: Overview | None, fault: str) -> dict[str, Any]:
    built: dict[str, Any] = msgspec.to_builtins(state)
    counted = None if overview is None else msgspec.to_builtins(overview)
    return {"running": True, **built, "overview": counted, "fault": fault}


def _print(data_dir: Path, state: ClusterState, overview: Overview | None, fault: str) -> None:
    from mooring.cli.output import print_table

    header = ("PROCESS", "STATE", "PID", "RESTARTS", "METRICS")
    print_table(header, map(_row, state.processes), is_wide=True)
    click.echo("")
    click.echo(f"server   {state.server}, since {state.began}")
    if state.node is not None:
        click.echo(f"node     {state.node}")
        click.echo(f"{'':<8} for drivers of your own: {_folders(data_dir)}")
    for name, text in overview.lines() if overview is not None else [("error", fault)]:
        click.echo(f"{name:<8} {text}")
    if overview is not None and state.node is not None and overview.by_driver:
        click.echo(f"{'':<8} {overview.drivers}")


def _folders(data_dir: Path) -> str:
    """Return the options by which a driver finds the node."""
    from mooring.cluster.socket_paths import short_path
    from mooring.cluster.state_folder import CDI, NODE

    folder = data_dir.absolute()
    return f"--kubelet-dir {short_path(folder / NODE)} --cdi-dir {folder / CDI}"


def _row(process: ProcessState) -> tuple[str, ...]:
    state = "working" if process.is_working else process.trouble or "starting"
    pid = str(process.pid) if process.pid else "-"
    return (process.name, state, pid, str(process.restarts), process.metrics or "-")
