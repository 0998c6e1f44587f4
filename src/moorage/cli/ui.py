"""`moor ui`: a page that shows devices, claims and pods, and answers questions about them."""

from __future__ import annotations

import asyncio
import html
import sys
import webbrowser
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import click
import msgspec
from msgspec import Struct

from moorage.api.timestamp import Timestamp
from moorage.cli import CONTEXT
from moorage.cli.cluster_options import (
    ClusterInput,
    Sources,
    optional_source_options,
    read_sources,
)
from moorage.cli.command_classes import option_with_default
from moorage.cli.errors import UNREADABLE, fail, needs_extra, os_error_text
from moorage.cli.live_hint import fail_to_reach
from moorage.cli.output import Progress, warn
from moorage.cli.plan import planned
from moorage.cli.server_options import data_dir_option
from moorage.cli.terminal import say
from moorage.insight.errors import ArchiveError
from moorage.insight.plan.refused import with_unscheduled
from moorage.insight.snapshot.unread import Unread
from moorage.kit.atomic_file import replace_file
from moorage.sources.cluster_sources import FileSource
from moorage.sources.recordings import recording_at

if TYPE_CHECKING:
    from moorage.client.client_factory import RestConfig
    from moorage.sources.live_source import Live
    from moorage.web.feed import Feed

TITLE_NAMES_MAX = 3
LINK = "/ui/link"


@click.command(
    name="ui",
    context_settings=CONTEXT,
    epilog="Exit status: 0 stopped, or the link is printed; 2 usage error; 3 an input could not be "
    "read, no cluster runs, or the port is taken.",
)
@option_with_default(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    help="Port of the page on 127.0.0.1; 0 picks a free one.",
)
@click.option("--open", "opens", is_flag=True, help="Open the page in the browser.")
@data_dir_option
@optional_source_options
@needs_extra("server")
def command(sources: Sources, data_dir: Path, port: int, opens: bool) -> None:
    """Show a cluster as a page in the browser: devices, who has them, and why pods wait.

    Without a source, prints a new link to the page of the cluster that `moor up` runs in
    --data-dir. With files, archives, profiles or --live, serves the page on this machine until
    interrupted. A link works once, within ten minutes; on SIGHUP, the process prints another. The
    page is read-only.

    \b
    moor ui
    moor ui --profile dgx-h100x4 -f training.yaml
    moor ui --on cluster.tar.gz --open
    moor ui --live --context production
    """
    if not (sources.cluster or sources.manifests):
        _print_link(data_dir, _opening_in(data_dir) if opens else say)
        return
    with TemporaryDirectory(prefix="moor-ui-") as folder:  # which only its owner can read
        _show(sources, port, _opening_in(Path(folder)) if opens else say)
    say("stopped", err=True)


def _show(sources: Sources, port: int, show: Callable[[str], None]) -> None:
    live = sources.live
    try:
        if live is not None and len(sources.cluster) == 1 and not sources.manifests:
            asyncio.run(_serve_live(live, sources, port=port, show=show))
        else:
            feed = recording_feed(sources) or static_feed(
                _read(sources),
                title_of(sources),
                source_of(sources),
                is_plan=bool(sources.manifests),
            )
            asyncio.run(_serve(feed, port=port, show=show))
    except OSError as error:
        fail(os_error_text(error))
    except ArchiveError as error:
        fail(str(error))


def _read(sources: Sources) -> ClusterInput:
    given = read_sources(sources)
    if given.is_unknown:
        sys.exit(UNREADABLE)
    return given


def _opening_in(folder: Path) -> Callable[[str], None]:
    """Return what opens a link in the browser.

    Everybody on the machine sees the arguments of its processes, and whoever is first with a link
    is signed in. So the browser is given a file of this folder, which leads to the link.
    """

    def open_link(link: str) -> None:
        say(link)
        page = folder / "open.html"
        url = html.escape(link)
        text = (
            '<!DOCTYPE html><meta charset="utf-8"><meta name="referrer" content="no-referrer">'
            f'<meta http-equiv="refresh" content="0; url={url}"><title>Moorage</title>'
            f'<p><a href="{url}">Open the page</a></p>\n'
        )
        replace_file(page, text.encode())
        webbrowser.open(page.resolve().as_uri())

    return open_link


def title_of(sources: Sources) -> str:
    """Return a short name of what is shown."""
    given = [*sources.cluster, *sources.manifests]
    names = [str(name) for each in given for name in getattr(each, "names", ())]
    if sources.live is not None:
        names.insert(0, "live cluster")
    more = " …" if len(names) > TITLE_NAMES_MAX else ""
    return ", ".join(names[:TITLE_NAMES_MAX]) + more


def source_of(sources: Sources) -> str:
    """Return the kind of source, as the session names it."""
    if sources.live is not None:
        return "kubeconfig"
    names = [str(name) for each in sources.cluster for name in getattr(each, "names", ())]
    is_archive = len(names) == 1 and names[0].endswith((".tar.gz", ".tgz"))
    return "snapshot" if is_archive and not sources.manifests else "files"


# --- the cluster that moor up runs ------------------------------------------------------------


def _print_link(data_dir: Path, show: Callable[[str], None]) -> None:
    from moorage.client.client_factory import load_rest_config
    from moorage.client.errors import ClientError

    kubeconfig = data_dir / "kubeconfig"
    if not kubeconfig.exists():
        fail(
            f"no cluster runs in {data_dir}; `moor up` starts one, and -f, --on, --live and "
            "--profile show another"
        )
    try:
        show(asyncio.run(fetch_link(load_rest_config(str(kubeconfig)))))
    except ClientError as error:
        fail(f"the cluster in {data_dir}: {error}")


class _Link(Struct, frozen=True):
    url: str


async def fetch_link(config: RestConfig) -> str:
    """Return an address that signs its opener in as the user of a config, once.

    Raise ClientError if the server cannot be reached, or has no page.
    """
    from moorage.client.client_factory import http_client
    from moorage.client.contract import Request
    from moorage.client.errors import ClientError

    async with http_client(config) as client:
        response = await client.send(Request("POST", LINK, body=b"{}"))
    try:
        return msgspec.json.decode(response.body, type=_Link).url
    except msgspec.DecodeError:
        raise ClientError(f"{config.server} has no page") from None


async def page_line(kubeconfig: Path, where: str = "") -> str:
    """Return a line with a link to the page of a cluster; `where` names its folder."""
    from moorage.client.client_factory import load_rest_config
    from moorage.client.errors import ClientError

    try:
        link = await fetch_link(load_rest_config(str(kubeconfig)))
    except ClientError as error:
        return f"there is no page: {error}"
    return f"page: {link} (works once; `moor ui{where}` prints another)"


# --- sources that do not change ---------------------------------------------------------------


def static_feed(given: ClusterInput, title: str, source: str, *, is_plan: bool = False) -> Feed:
    """Return a feed of objects that do not change, with the causes of its pending pods.

    Users who give manifests want to know where their pods would run, so these are shown as planned.
    """
    from moorage.web.causes import find_causes
    from moorage.web.feed import Feed, SourceFacts

    plan = with_unscheduled(planned(given))
    feed = Feed(SourceFacts(title, source), given.context, plan=plan)
    with Progress("nodes looked at") as progress:
        causes = find_causes(
            plan,
            given.context,
            refused=given.refused_objects,
            dropped=given.dropped_fields,
            progress=progress,
        )
    feed.explain(causes)
    shown = plan.after if is_plan else plan.before
    feed.publish(shown.objects(), revision=1, time=given.context.now)
    return feed


def recording_feed(sources: Sources) -> Feed | None:
    """Return a feed of a recording with all its moments, if that is all that is given."""
    from moorage.web.feed import Feed, SourceFacts

    match sources.cluster, sources.manifests:
        case [FileSource(names=(name,), at="")], [] if Path(name).is_file():
            recording = recording_at(Path(name))
        case _:
            return None
    if recording is None:
        return None
    if recording.torn:
        warn(f"{name}: {recording.torn}; its end is left out")
    history = recording.history()
    last = history.last
    context = sources.context._replace(now=last.time)
    feed = Feed(SourceFacts(name, "recording"), context, history=history)
    feed.unread = Unread(recording.header.unread)
    feed.publish(history.snapshot().objects(), revision=last.revision, time=last.time)
    return feed


async def _serve(feed: Feed, *, port: int, show: Callable[[str], None]) -> None:
    from moorage.web.local_server import serve_page
    from moorage.web.page import EVERYTHING, Page

    await serve_page(Page(feed, EVERYTHING), port=port, on_start=show)


# --- live clusters ----------------------------------------------------------------------------


async def _serve_live(
    live: Live, sources: Sources, *, port: int, show: Callable[[str], None]
) -> None:
    """Serve the page of the cluster of a kubeconfig, with the rights of its user."""
    from moorage.client.client_factory import http_client
    from moorage.client.errors import ClientError
    from moorage.insight.history import History
    from moorage.web.cluster_feed import ClusterFeed
    from moorage.web.feed import Feed, SourceFacts
    from moorage.web.local_server import serve_page
    from moorage.web.page import Access, Page
    from moorage.web.rights import Rights

    if isinstance(live.access, ClientError):
        fail_to_reach(live.access)
    facts = SourceFacts(live.access.server, "kubeconfig", is_live=True)
    feed = Feed(facts, sources.context, now=_now, history=History())
    async with http_client(live.access) as client:
        spaces = tuple(dict.fromkeys((live.namespace, live.access.namespace)))
        source = ClusterFeed(client, feed, _now, namespaces=spaces)

        async def rights_of(_: str) -> Rights:
            return source.rights

        following = asyncio.create_task(source.run())
        ready = asyncio.create_task(feed.is_ready.wait())
        try:
            await asyncio.wait((following, ready), return_when=asyncio.FIRST_COMPLETED)
            if following.done():
                await following
            page = Page(feed, Access[str](name_of=str, rights_of=rights_of))
            await serve_page(page, port=port, on_start=show)
        except* ClientError as errors:
            fail_to_reach(errors.exceptions[0])
        finally:
            following.cancel()
            ready.cancel()
            with suppress(asyncio.CancelledError):
                await asyncio.gather(following, ready, return_exceptions=True)


def _now() -> Timestamp:
    return Timestamp(datetime.now(UTC))
