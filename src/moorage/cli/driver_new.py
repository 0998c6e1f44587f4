"""`moor driver new`: a new driver that runs and passes its tests."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from moorage.cli import CONTEXT
from moorage.cli.errors import UNREADABLE
from moorage.cli.terminal import echo


@click.command(
    name="new",
    context_settings=CONTEXT,
    epilog="Exit status: 0 success, 2 usage error, 3 a file could not be written.",
)
@click.argument("name", metavar="NAME")
@click.option(
    "--dir",
    "folder",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Directory to write to. By default, the first label of NAME.",
)
def command(name: str, folder: Path | None) -> None:
    """Create a new driver that runs and passes its tests.

    NAME is the name of the driver, such as blinker.example.com. The command writes four files:
    the driver, its tests, an example with a DeviceClass, a template and a pod, and a README. It
    does not overwrite files.

    \b
    moor driver new blinker.example.com
    moor driver new blinker.example.com --dir ./my-driver
    """
    from moorage.driver.scaffold import scaffold, short_name

    try:
        files = scaffold(name)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    folder = folder or Path(short_name(name))
    taken = [each for each in files if (folder / each).exists()]
    if taken:
        raise click.UsageError(f"{folder / taken[0]} is there already")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for each, text in files.items():
            (folder / each).write_text(text, encoding="utf-8")
            echo(f"{folder / each}")
    except OSError as error:
        echo(f"error: {error.filename}: {error.strerror}", err=True)
        sys.exit(UNREADABLE)
