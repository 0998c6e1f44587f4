"""`moor status`: the processes and nodes of a cluster; and the status lines of `moor up`."""

from __future__ import annotations

import asyncio
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from moorage.cli import CONTEXT
from moorage.cli.errors import DOES_NOT_FIT, FITS, needs_system
from moorage.cli.output import output_option, print_answer, print_table
from moorage.cli.server_options import data_dir_option
from moorage.cli.terminal import echo, printable, printable_lines, send
from moorage.kit.system import System

if TYPE_CHECKING:
    from moorage.cluster.overview import Overview
    from moorage.cluster.slow_expressions import SlowExpression
    from moorage.cluster.state_folder import ClusterState, ProcessState

SCHEDULER = "scheduler"  # the name of its process


@click.command(
    name="status",
    context_settings=CONTEXT,
    epilog="Exit status: 0 everything is running, 1 something is not, 2 usage error.",
)
@data_dir_option
@output_option(names="the processes")
@needs_system(System.POSIX)
def command(data_dir: Path, output: str) -> None:
    """Show what `moor up` runs in a directory: processes, nodes, pods and devices in use.

    For this machine as a node, it shows the runtime and the drivers. It shows the slowest CEL
    expressions if the scheduler spent much time on them.

    \b
    moor status
    moor status --data-dir ./other-cluster -o json
    """
    from moorage.cluster.state_folder import StateFolder

    folder = StateFolder(data_dir)
    pid, state = folder.runner(), folder.read()
    if not pid or state is None or state.pid != pid:
        print_answer(
            output,
            table=lambda _: echo(f"no cluster runs in {data_dir}"),
            document=lambda: {"running": False},
            rows=lambda: (),
            names=lambda: (),
            columns=COLUMNS,
        )
        sys.exit(DOES_NOT_FIT)
    overview, slow, fault = asyncio.run(_overview(data_dir, state))
    print_answer(
        output,
        table=lambda _: _print(data_dir, state, overview, slow, fault),
        document=lambda: _tree(state, overview, slow, fault),
        rows=lambda: map(_process_row, state.processes),
        names=lambda: (f"process/{each.name}" for each in state.processes),
        columns=COLUMNS,
    )
    sys.exit(FITS if state.is_working and overview is not None else DOES_NOT_FIT)


async def _overview(
    data_dir: Path, state: ClusterState
) -> tuple[Overview | None, Sequence[SlowExpression], str]:
    from moorage.client.client_factory import http_client, load_rest_config
    from moorage.client.errors import ClientError
    from moorage.cluster.overview import fetch_overview
    from moorage.cluster.slow_expressions import fetch_slow_expressions

    try:
        config = load_rest_config(str(data_dir / "kubeconfig"))
        async with http_client(config) as client:
            overview = await fetch_overview(client)
    except ClientError as error:
        return None, (), error.message
    urls = [each.metrics for each in state.processes if each.name == SCHEDULER and each.metrics]
    slow = [each for url in urls for each in await fetch_slow_expressions(config, url)]
    return overview, slow, ""


def _tree(
    state: ClusterState, overview: Overview | None, slow: Sequence[SlowExpression], fault: str
) -> dict[str, Any]:
    built: dict[str, Any] = msgspec.to_builtins(state)
    counted = None if overview is None else msgspec.to_builtins(overview)
    return {
        "running": True,
        **built,
        "overview": counted,
        "slowExpressions": msgspec.to_builtins(list(slow)),
        "fault": fault,
    }


def _print(
    data_dir: Path,
    state: ClusterState,
    overview: Overview | None,
    slow: Sequence[SlowExpression],
    fault: str,
) -> None:
    header = ("PROCESS", "STATE", "PID", "RESTARTS", "METRICS")
    print_table(header, map(_row, state.processes), is_wide=True)
    echo("")
    echo(f"server   {state.server}, since {state.began}")
    echo(f"mode     {state.mode}")
    if state.node is not None:
        echo(f"node     {state.node}")
        echo(f"{'':<8} for drivers of your own: {state.node.driver_options(data_dir)}")
    echo(f"page     `moor ui{_named(data_dir)}` prints a link to it")
    for name, text in overview.lines() if overview is not None else [("error", fault)]:
        echo(f"{name:<8} {text}")
    if overview is not None and state.node is not None and overview.by_driver:
        echo(f"{'':<8} {overview.drivers}")
    for number, each in enumerate(slow):
        echo(f"{'' if number else 'slow CEL':<8} {printable(each.line)}")


def _named(data_dir: Path) -> str:
    """Return the option that names a directory, if whoever asked had to."""
    context = click.get_current_context()
    is_named = context.get_parameter_source("data_dir") is click.core.ParameterSource.COMMANDLINE
    return f" --data-dir {data_dir}" if is_named else ""


def _row(process: ProcessState) -> tuple[str, ...]:
    state = "working" if process.is_working else process.trouble or "starting"
    pid = str(process.pid) if process.pid else "-"
    return (process.name, state, pid, str(process.restarts), process.metrics or "-")


COLUMNS = ("process", "is_working", "pid", "restarts", "metrics", "trouble")


def _process_row(process: ProcessState) -> dict[str, Any]:
    texts = (process.metrics or None, process.trouble or None)
    values = (process.name, process.is_working, process.pid or None, process.restarts, *texts)
    return dict(zip(COLUMNS, values, strict=True))


# --- the status lines of `moor up` ------------------------------------------------------------

ABOVE = "\x1b[{}A\x1b[J"  # go up this many lines, and clear from there


class ProgressView:
    """Prints lines; on a terminal, with the status of the cluster redrawn below the last one."""

    def __init__(
        self,
        *,
        is_terminal: bool,
        write: Callable[[str], None] = send,
    ) -> None:
        self.is_terminal = is_terminal
        self._write = write
        self._below: Sequence[str] = ()

    def line(self, text: str) -> None:
        """Write a line that stays."""
        below = self._below
        self.clear()
        self._write(f"{printable_lines(text)}\n")
        self._draw(below)

    def show(self, lines: Sequence[str]) -> None:
        """Replace the status lines."""
        if self.is_terminal and tuple(lines) != tuple(self._below):
            self.clear()
            self._draw(lines)

    def clear(self) -> None:
        """Clear the status lines."""
        if self._below:
            self._write(ABOVE.format(len(self._below)))
            self._below = ()

    def _draw(self, lines: Sequence[str]) -> None:
        # A wrapped line would take two rows, and `clear` would miss one.
        columns = shutil.get_terminal_size().columns
        for each in lines:
            self._write(f"{printable(each)[: columns - 1]}\n")
        self._below = lines


def status_lines(state: ClusterState, overview: Overview | None) -> list[str]:
    """Return the status of a cluster in a few titled lines."""
    late = [each for each in state.processes if not each.is_working]
    working = f"{len(state.processes) - len(late)} of {len(state.processes)} working"
    troubles = (f"; {each.name}: {each.trouble or 'starting'}" for each in late)
    lines = [("processes", f"{working}{''.join(troubles)}")]
    if overview is not None:
        lines += overview.lines()
        lines += [("", overview.drivers)] if overview.by_driver else []
    return ["", *(f"{name:<10} {text}" for name, text in lines)]
