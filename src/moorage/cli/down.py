"""`moor down`: stop the cluster of a folder."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from pathlib import Path

import click

from moorage.cli import CONTEXT
from moorage.cli.command_classes import Duration, option_with_default
from moorage.cli.errors import fail, needs_system
from moorage.cli.server_options import data_dir_option
from moorage.cli.terminal import echo
from moorage.kit.system import System


@click.command(
    name="down",
    context_settings=CONTEXT,
    epilog="Exit status: 0 nothing is running, 2 usage error, 3 the cluster could not be stopped.",
)
@data_dir_option
@option_with_default(
    "--timeout",
    "timeout_s",
    type=Duration(1, 3600),
    default="60s",
    help="How long to wait for the cluster to stop.",
)
@needs_system(System.POSIX)
def command(data_dir: Path, timeout_s: float) -> None:
    """Stop the cluster that `moor up` runs in a directory. Its data is kept.

    \b
    moor down
    moor down --data-dir ./other-cluster
    """
    from moorage.cluster.state_folder import StateFolder

    folder = StateFolder(data_dir)
    pid = folder.runner()
    if not pid:
        echo(f"no cluster runs in {data_dir}")
        return
    try:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
    except PermissionError:
        fail(f"process {pid} is somebody else's")
    end_s = time.monotonic() + timeout_s
    while folder.runner() == pid:
        if time.monotonic() > end_s:
            fail(f"process {pid} still runs after {timeout_s:g} s")
        time.sleep(0.05)
    echo("stopped")
