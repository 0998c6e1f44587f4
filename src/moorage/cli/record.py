"""`moor record`: records a running cluster and its changes in one file."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import click

from moorage.api.gates import Gates
from moorage.api.quantity import Quantity
from moorage.api.timestamp import Timestamp
from moorage.cli import CONTEXT
from moorage.cli.command_classes import Duration, option_with_default
from moorage.cli.errors import fail, os_error_text
from moorage.cli.gate_options import gate_options
from moorage.cli.live_hint import fail_to_reach
from moorage.cli.terminal import echo, say
from moorage.insight.history.history import Moment, ObjectKey
from moorage.insight.history.recording import Header, RecordingWriter
from moorage.insight.messages import counted
from moorage.insight.snapshot.redaction import redact
from moorage.insight.snapshot.unread import Unread
from moorage.kit.atomic_file import open_private
from moorage.kit.system import on_stop

if TYPE_CHECKING:
    from moorage.client.client_factory import RestConfig
    from moorage.web.feed import Feed, Follower

SUFFIX = ".moorrec"
EVERY_S = 1.0


def _target(_: click.Context, __: click.Parameter, path: Path) -> Path:
    if path.suffix != SUFFIX:
        # For people: commands recognize a recording by its content.
        raise click.BadParameter(f"'{path}' does not end in {SUFFIX}")
    return path


def _size(_: click.Context, __: click.Parameter, text: str) -> int:
    try:
        found = Quantity.parse(text).value
    except ValueError as error:
        raise click.BadParameter(f"{error}") from None
    if found <= 0:
        raise click.BadParameter(f"{text}: must be above 0")
    return found


@click.command(
    name="record",
    context_settings=CONTEXT,
    epilog="Exit status: 0 stopped, by a limit or from the keyboard; 2 usage error; 3 the cluster "
    "cannot be reached, or the file cannot be written.",
)
@click.option(
    "-o",
    "--output",
    "path",
    type=click.Path(path_type=Path, dir_okay=False),
    required=True,
    metavar=f"FILE{SUFFIX}",
    callback=_target,
    help="File to write; it must not exist.",
)
@option_with_default(
    "--duration",
    "duration_s",
    type=Duration(1, 30 * 24 * 3600),
    default="1h",
    help="Stop recording after this time.",
)
@option_with_default(
    "--max-size",
    "bytes_max",
    default="100Mi",
    metavar="SIZE",
    callback=_size,
    help="Stop recording when the file has this size.",
)
@click.option(
    "--redact",
    "redacts",
    is_flag=True,
    help="Leave out what no answer depends on: environments, commands, driver parameters, "
    "messages.",
)
@click.option(
    "--live",
    is_flag=True,
    expose_value=False,
    help="Has no effect: `moor record` always records a running cluster.",
)
@click.option(
    "--kubeconfig",
    default="",
    metavar="FILE",
    help="Kubeconfig of the cluster. By default, KUBECONFIG or ~/.kube/config.",
)
@click.option("--context", default="", metavar="NAME", help="Context of the kubeconfig to use.")
@click.option(
    "-n",
    "--namespace",
    metavar="NAME",
    help="Namespace to record if you are not allowed to list namespaces.",
)
@gate_options
def command(
    path: Path,
    duration_s: float,
    bytes_max: int,
    redacts: bool,
    kubeconfig: str,
    context: str,
    namespace: str | None,
    gates: Gates,
) -> None:
    """Record a running cluster: its devices, claims and pods, and every change to them.

    The file starts with the current state of the cluster and grows with every change. It never
    contains Secrets or ConfigMaps. All commands read it with --on: the state at its end, or at the
    moment of --at. `moor ui --on FILE` shows it over time.

    \b
    moor record -o night.moorrec --duration 12h
    moor ui --on night.moorrec
    moor devices --on night.moorrec --at 2026-01-31T03:12:00Z
    """
    from moorage.client.errors import ClientError
    from moorage.sources.live_source import find_live

    live = find_live(kubeconfig, context, namespace)
    if isinstance(live.access, ClientError):
        fail_to_reach(live.access)
    try:
        with new_recording(path) as file:
            recorder = Recorder(file, bytes_max, str(gates), redacts=redacts)
            try:
                asyncio.run(_record(live.access, live.namespace, recorder, gates, duration_s))
            except* ClientError as errors:
                fail_to_reach(errors.exceptions[0])
            finally:
                recorder.finish()
    except OSError as error:
        fail(os_error_text(error))
    if not recorder.bytes_written:
        path.unlink(missing_ok=True)
        fail("nothing was recorded: recording ended before the cluster was read")
    echo(f"{path}: {counted(recorder.objects, 'object')}, {recorder.bytes_written:,} bytes")


def new_recording(path: Path) -> BinaryIO:
    """Open a new file that only its owner can read: specs of pods hold what others may not see."""
    return open_private(path, is_new=True)


class Recorder:
    """Writes changes to a file, up to a size."""

    def __init__(self, file: BinaryIO, bytes_max: int, gates: str, *, redacts: bool) -> None:
        self._file, self._bytes_max = file, bytes_max
        self._gates, self._redacts = gates, redacts
        self._writer = RecordingWriter()
        self.bytes_written = 0
        self.objects = 0
        self.unread: Callable[[], Unread] = Unread  # asked when the first change comes

    @property
    def is_full(self) -> bool:
        """Whether the file has reached its maximum size."""
        return self.bytes_written >= self._bytes_max

    def write(self, moment: Moment, written: Iterable[Any], removed: Iterable[ObjectKey]) -> None:
        """Write the changes of a moment, of which the first is the initial state."""
        values = list(written)
        if not self.bytes_written:
            self._put(self._writer.begin(self._header(len(values))))
        for key in removed:
            self._writer.add_removed(moment, key)
        for value in values:
            self._writer.add(moment, redact(value) if self._redacts else value)
        self.objects += len(values)
        self.finish()

    def _header(self, objects: int) -> Header:
        return Header(self._gates, self._redacts, objects, unread=self.unread().kinds)

    def finish(self) -> None:
        """Write pending changes."""
        self._put(self._writer.frame())

    def _put(self, data: bytes) -> None:
        self._file.write(data)
        self._file.flush()
        self.bytes_written += len(data)


async def _record(
    access: RestConfig, namespace: str, recorder: Recorder, gates: Gates, duration_s: float
) -> None:
    from moorage.client.client_factory import http_client
    from moorage.validation.strategy import Context
    from moorage.web.cluster_feed import ClusterFeed
    from moorage.web.feed import Feed, Follower, SourceFacts

    feed = Feed(SourceFacts(access.server, "kubeconfig", is_live=True), Context(gates, _now()))
    follower, stopped = Follower(feed), asyncio.Event()
    on_stop(stopped.set)
    async with http_client(access) as client:
        spaces = tuple(dict.fromkeys((namespace, access.namespace)))
        source = ClusterFeed(client, feed, _now, namespaces=spaces)
        recorder.unread = lambda: source.rights.unread
        async with asyncio.TaskGroup() as tasks:
            following = tasks.create_task(source.run())
            with suppress(TimeoutError):
                async with asyncio.timeout(duration_s):
                    await _follow(feed, follower, recorder, stopped)
            following.cancel()


async def _follow(
    feed: Feed, follower: Follower, recorder: Recorder, stopped: asyncio.Event
) -> None:
    stopping = asyncio.create_task(stopped.wait())
    say("recording; Ctrl+C ends it", err=True)
    try:
        while not stopped.is_set() and not recorder.is_full:
            more = asyncio.create_task(follower.has_more.wait())
            await asyncio.wait((stopping, more), return_when=asyncio.FIRST_COMPLETED)
            more.cancel()
            taken = follower.taken()
            if taken:
                written = [value for value in taken.values() if value is not None]
                removed = [key for key, value in taken.items() if value is None]
                recorder.write(Moment(feed.revision, feed.time), written, removed)
            await asyncio.wait((stopping,), timeout=EVERY_S)
    finally:
        stopping.cancel()


def _now() -> Timestamp:
    return Timestamp(datetime.now(UTC))
