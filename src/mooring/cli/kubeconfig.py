"""`moor kubeconfig`: how clients reach the server of a folder."""

from __future__ import annotations

from pathlib import Path

import click

from mooring.cli.exits import UNREADABLE
from mooring.cli.server import DATA_DIR


@click.command(
    name="kubeconfig", epilog="Exit status: 0 printed, 2 usage, 3 the folder has no server."
)
@click.option(
    "--data-dir",
    type=click.Path(path_type=Path, file_okay=False),
    default=DATA_DIR,
    show_default=True,
    envvar="MOORING_DATA_DIR",
    help="The folder of the server.",
)
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
