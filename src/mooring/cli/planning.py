"""Planning with progress and warnings, for the commands that plan."""

from __future__ import annotations

import gc

import click

from mooring.cli.cluster_options import ClusterInput
from mooring.cli.collection import coloured
from mooring.cli.output import Progress
from mooring.insight.errors import TooManyPodsError
from mooring.insight.plan.planner import Plan, plan
from mooring.insight.snapshot.snapshot import Snapshot
from mooring.validation.strategy import Context


def planned(given: ClusterInput, snapshot: Snapshot | None = None) -> Plan:
    """Return the plan for the input of a command, or for a variant of it."""
    gc.freeze()  # What was read stays; looking through it again and again would take a fifth.
    context = Context(gates=given.gates, now=given.now, extensions=given.extensions)
    try:
        with Progress("pods planned") as progress:
            found = plan(snapshot or given.everything, context, progress=progress)
    except TooManyPodsError as error:
        raise click.UsageError(str(error)) from None
    for concern in found.concerns:
        click.echo(f"{coloured('warning', 'yellow')}: {concern}", err=True)
    return found
