"""How a program ends that cannot begin."""

from __future__ import annotations

from typing import NoReturn

import click

from mooring.cli.exits import UNREADABLE


def fail(text: str) -> NoReturn:
    """End with an error: something cannot be read or reached."""
    click.echo(f"error: {text}", err=True)
    raise SystemExit(UNREADABLE)
