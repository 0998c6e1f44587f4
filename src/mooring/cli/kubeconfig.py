"""`moor kubeconfig`: how clients reach the server of a folder."""

from __future__ import annotations

from pathlib import Path

import click

from mooring.cli.exits import UNREADABLE
from mooring.cli.server_options import data_dir_option


@click.command(
    name="kubeconfig", epilog="Exit status: 0 printed, 2 usage, 3 the folder has no server."
)
@data_dir_option
def command(data_dir: Path) -> None:
    """Print the kubeconfig of the server that runs on a folder, or ran last.

    Write it to a file and name that in KUBECONFIG.
    """
    path = data_dir / "kubeconfig"
    try:
        text = path.read_text()
    except OSError as error:
        click.echo(f"error: {path}: {error.strerror}; run `moor server` first", err=True)
        raise SystemExit(UNREADABLE) from None
    click.echo(text, nl=False)
