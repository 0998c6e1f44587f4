"""`moor reset`: forget the cluster of a folder."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import click

from moorage.cli import CONTEXT
from moorage.cli.errors import DOES_NOT_FIT, fail, needs_extra, needs_system
from moorage.cli.server_options import data_dir_option
from moorage.cli.terminal import ask, echo
from moorage.kit.system import System


@click.command(
    name="reset",
    context_settings=CONTEXT,
    epilog="Exit status: 0 removed, or there was no cluster; 1 not confirmed; 2 usage "
    "error; 3 the cluster is running, or something cannot be removed.",
)
@data_dir_option
@click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")
@needs_system(System.POSIX)
@needs_extra("server")
def command(data_dir: Path, yes: bool) -> None:
    """Remove the cluster in a directory: its objects, credentials, logs and containers.

    Stop it with `moor down` first. Other files in the directory are kept.

    \b
    moor down && moor reset
    moor reset --data-dir ./other-cluster --yes
    """
    from moorage.cluster.reset import ResetError, found, reset_cluster
    from moorage.cluster.state_folder import StateFolder

    data_dir = data_dir.absolute()
    if pid := StateFolder(data_dir).runner():
        fail(f"{data_dir}: a cluster runs here, as process {pid}; `moor down` stops it")
    names = found(data_dir)
    if not names:
        echo(f"no cluster is in {data_dir}")
        return
    if not yes:
        echo(f"All objects of the cluster are lost with {', '.join(names)} of {data_dir}.")
        if not ask("Remove them?"):
            echo("Nothing was removed; --yes removes without a question.")
            sys.exit(DOES_NOT_FIT)
    try:
        removed = asyncio.run(reset_cluster(data_dir))
    except ResetError as error:
        fail(str(error))
    for path in removed:
        echo(f"removed {path}")
