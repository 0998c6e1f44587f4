"""Devices and their holders as JSON and YAML, and as pictures."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from moorage.cli.errors import UNREADABLE
from moorage.cli.output import Progress, complain
from moorage.cli.terminal import echo
from moorage.insight.devices import ClusterUsage
from moorage.insight.snapshot.snapshot import Snapshot
from moorage.kit.atomic_file import replace_file
from moorage.validation.strategy import Context

if TYPE_CHECKING:
    from moorage.insight.plan.planner import Plan

SVG, HTML = ".svg", ".html"
F = TypeVar("F", bound=Callable[..., Any])


def picture_option(function: F) -> F:
    """Add the option --picture; the command gets `picture_file`."""
    return click.option(
        "--picture",
        "picture_file",
        metavar="FILE.svg|FILE.html",
        callback=_check_suffix,
        help="Write a picture of nodes and devices, coloured by claim; HTML is a page to explore.",
    )(function)


def _check_suffix(_: click.Context, __: click.Parameter, name: str | None) -> str | None:
    if name is not None and not name.lower().endswith((SVG, HTML)):
        raise click.BadParameter(f"{name!r} does not end in {SVG} or {HTML}")
    return name


def write_picture(
    snapshot: Snapshot,
    holdings: ClusterUsage,
    name: str,
    *,
    title: str,
    context: Context,
    plan: Plan | None = None,
) -> None:
    """Write the picture of a snapshot, or the page with its data; print an error and exit."""
    if name.lower().endswith(SVG):
        from moorage.insight.topology import picture

        write_text(name, picture(snapshot, title=title, holdings=holdings))
        return
    from moorage.web.single_file import single_page

    with Progress() as progress:
        text = single_page(snapshot, context, title=title, plan=plan, stages=progress.stage)
    write_text(name, text)


def write_text(name: str, text: str) -> None:
    """Write a file about a cluster, for its owner alone; or print the error and exit."""
    try:
        replace_file(Path(name), text.encode())
    except OSError as error:
        complain(f"{name}: {error.strerror or error}")
        sys.exit(UNREADABLE)
    echo(f"{name} written", err=True)
