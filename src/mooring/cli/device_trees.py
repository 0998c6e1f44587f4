"""Devices and their holders as JSON and YAML, and as pictures."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from mooring.cli.errors import UNREADABLE
from mooring.cli.output import complain
from mooring.cli.terminal import echo
from mooring.insight.devices import ClusterUsage
from mooring.insight.snapshot.snapshot import Snapshot

F = TypeVar("F", bound=Callable[..., Any])


def picture_option(function: F) -> F:
    """Add the option --picture; the command gets `picture_file`."""
    return click.option(
        "--picture",
        "picture_file",
        metavar="FILE.svg|FILE.html",
        callback=_check_suffix,
        help="Write a picture of nodes and devices, coloured by claim.",
    )(function)


def _check_suffix(_: click.Context, __: click.Parameter, name: str | None) -> str | None:
    from mooring.insight.topology import Format, format_of

    if name is not None and format_of(name) is None:
        suffixes = " or ".join(format_.value for format_ in Format)
        raise click.BadParameter(f"{name!r} does not end in {suffixes}")
    return name


def write_picture(snapshot: Snapshot, holdings: ClusterUsage, name: str, *, title: str) -> None:
    """Write the picture of a snapshot, or print the error and exit."""
    from mooring.insight.topology import format_of, picture

    format_ = format_of(name)
    assert format_ is not None
    drawn = picture(snapshot, title=title, format=format_, holdings=holdings)
    try:
        Path(name).write_text(drawn, encoding="utf-8")
    except OSError as error:
        complain(f"{name}: {error.strerror or error}")
        sys.exit(UNREADABLE)
    echo(f"{name} written", err=True)
