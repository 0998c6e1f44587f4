"""The slices and other objects that a command reads: collected, with complaints printed."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import click

from moorage.cli.output import Progress, complain, warn
from moorage.hardware.errors import ProfileError
from moorage.sources.cluster_sources import ClusterSource, give_all
from moorage.sources.collection import Collected
from moorage.validation.strategy import Context

LINES_SHOWN_MAX = 100


def collect(
    sources: Iterable[ClusterSource],
    context: Context,
    *,
    kinds: Collection[str] = (),
    namespace: str = "default",
) -> Collected:
    """Return the objects of sources, and print what cannot be read and any concerns."""
    try:
        with Progress() as progress:
            intake = Collected(context, kinds=kinds, namespace=namespace)
            found = give_all(sources, intake, progress.tick)
    except ProfileError as error:
        raise click.UsageError(str(error)) from None
    for message in found.unreadable[:LINES_SHOWN_MAX]:
        complain(message)
    for concern in found.concerns[:LINES_SHOWN_MAX]:
        warn(str(concern))
    return found
