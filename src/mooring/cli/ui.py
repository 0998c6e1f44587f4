"""`moor ui`: a page that shows devices, claims and pods, and answers questions about them."""

from __future__ import annotations

import asyncio
import time
import webbrowser
from typing import TYPE_CHECKING

import click

from mooring.cli import CONTEXT
from mooring.cli.cluster_options import ClusterInput, Sources, read_sources, source_options
from mooring.cli.command_classes import option_with_default
from mooring.cli.errors import fail, needs_extra, os_error_text
from mooring.cli.output import Progress
from mooring.cli.plan import planned
from mooring.cli.terminal import say
from mooring.insight.answer.answer import answers
from mooring.insight.explain.pods import DiagnosisTimeLimit
from mooring.insight.plan.refused import with_unscheduled

if TYPE_CHECKING:
    from mooring.web.feed import Feed


@click.command(
    name="ui",
    context_settings=CONTEXT,
    epilog="Exit status: 0 stopped; 2 usage error; 3 an input could not be read, or the port is "
    "taken.",
)
@option_with_default(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    help="Port on 127.0.0.1; 0 takes a free one.",
)
@click.option("--open", "opens", is_flag=True, help="Open the page in the browser.")
@source_options
@needs_extra("server")
def command(sources: Sources, port: int, opens: bool) -> None:
    """Show a cluster as a page: its devices, who has them, and why pods wait.

    Prints a link that works once, on this machine only. The page changes nothing.

    \b
    moor ui --profile dgx-h100x4 -f training.yaml
    moor ui --on cluster.tar.gz --open
    moor ui --live --context production
    """
    given = read_sources(sources)
    feed = static_feed(given, title_of(sources), "files")
    try:
        asyncio.run(_serve(feed, port=port, opens=opens))
    except OSError as error:
        fail(os_error_text(error))
    say("stopped")


def title_of(sources: Sources) -> str:
    """Return a short name of what is shown."""
    names = [
        name
        for each in (*sources.cluster, *sources.manifests)
        for name in getattr(each, "names", ())
    ]
    return ", ".join(names[:3]) + (" …" if len(names) > 3 else "")


def static_feed(given: ClusterInput, title: str, source: str) -> Feed:
    """Return a feed of objects that do not change, with the causes of its pending pods."""
    from mooring.web.causes import causes_of
    from mooring.web.feed import Feed, SourceFacts

    plan = with_unscheduled(planned(given))
    limit = DiagnosisTimeLimit(time.monotonic)
    with Progress("nodes looked at") as progress:
        found = answers(
            plan,
            plan.pending,
            given.context,
            refused=given.refused_objects,
            dropped=given.dropped_fields,
            unread=given.unread,
            effort=limit.effort,
            progress=progress,
        )
        causes = causes_of(plan, found)
    feed = Feed(SourceFacts(title, source), given.context, plan=plan)
    feed.explain(causes)
    feed.publish(plan.before.objects(), revision=1, time=given.context.now)
    return feed


async def _serve(feed: Feed, *, port: int, opens: bool) -> None:
    from mooring.web.local_server import serve_page
    from mooring.web.page import EVERYTHING, Page

    def on_start(link: str) -> None:
        say(f"{link}\n(works once, on this machine; Ctrl+C stops the page)")
        if opens:
            webbrowser.open(link)

    await serve_page(Page(feed, EVERYTHING), port=port, on_start=on_start)
