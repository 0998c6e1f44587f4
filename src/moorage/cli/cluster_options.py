"""The options with which every command reads a cluster and manifests."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from functools import wraps
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, TypeVar, cast

import click
from msgspec.structs import asdict

from moorage.api.documents import CORE, KUBERNETES, Schema
from moorage.api.errors import ApiError
from moorage.api.gates import Gates
from moorage.api.timestamp import Timestamp
from moorage.cli.command_classes import add_options
from moorage.cli.errors import DOES_NOT_FIT, UNREADABLE, fail
from moorage.cli.gate_options import check_numa_form, gate_options, numa_node_option
from moorage.cli.output import Progress, complain, warn
from moorage.cli.terminal import echo, printable
from moorage.hardware.attributes import NumaNodeForm
from moorage.hardware.errors import ProfileError
from moorage.insight.errors import UnreadError
from moorage.insight.messages import listed
from moorage.insight.snapshot.unread import Obstacle, Unread, UnreadKind
from moorage.kit.process_memory import garbage_collection_paused, keep_what_exists
from moorage.sources.cluster_sources import ClusterSource, FileSource, Profiles
from moorage.sources.given_cluster import GivenCluster, read_given
from moorage.sources.inputs import STDIN
from moorage.validation.strategy import Context

if TYPE_CHECKING:
    from moorage.sources.live_source import Live

F = TypeVar("F", bound=Callable[..., Any])

LINES_SHOWN_MAX = 100


class ClusterInput(GivenCluster, frozen=True):
    """The input of a command; warnings and errors about it have been printed."""

    @property
    def is_unknown(self) -> bool:
        """Whether nothing of what was named could be read, so that nothing can be said of it."""
        return bool(self.unreadable) and not any(self.everything.objects())

    @property
    def unread(self) -> Unread:
        """What could not be read of the cluster."""
        return self.cluster.unread

    def exit_status(self, answer: int) -> int:
        """Return the status to exit with: what could not be used outweighs the answer."""
        if self.unreadable:
            return UNREADABLE
        return DOES_NOT_FIT if self.refused else answer

    def end_unknown(self, hidden: Iterable[UnreadKind], unknown: str) -> NoReturn:
        """Raise UnreadError, with which the command fails: that is why there is no answer."""
        if self.is_unknown:
            sys.exit(UNREADABLE)  # which the error about the cluster says already
        raise UnreadError(hidden, unknown)

    def end_without(self, text: str) -> NoReturn:
        """Exit because an object does not exist: a usage error, if everything could be read."""
        if self.unreadable:
            fail(f"{text}; not everything could be read")
        raise click.UsageError(printable(text))


class Sources(NamedTuple):
    """The options of a command line: sources of objects, and settings."""

    cluster: list[ClusterSource]  # of --on, --live and --profile
    manifests: list[ClusterSource]  # of -f
    context: Context
    namespace: str

    @property
    def live(self) -> Live | None:
        """The running cluster among the sources."""
        found = (each for each in self.cluster if not isinstance(each, FileSource | Profiles))
        return cast("Live | None", next(found, None))


def cluster_options(function: F) -> F:
    """Add the options to a command; it gets a `given` argument, a ClusterInput."""
    return source_options(_with_cluster(function))


def manifest_cluster_options(function: F) -> F:
    """Do the same for a command about manifests, which fails if there are none."""
    return manifest_source_options(_with_cluster(function))


def _with_cluster(function: F) -> F:
    @wraps(function)
    def with_cluster(*args: Any, sources: Sources, **kwargs: Any) -> Any:
        return function(*args, given=read_sources(sources), **kwargs)

    return with_cluster  # type: ignore[return-value]


def source_options(function: F) -> F:
    """Add the options to a command; it gets a `sources` argument, with nothing read yet."""
    return _with_options(function, _OPTIONS)


def manifest_source_options(function: F) -> F:
    """Do the same for a command about manifests, which fails if there are none."""
    return _with_options(function, (*_OPTIONS, allow_empty_option))


def optional_source_options(function: F) -> F:
    """Add the options to a command that also works without any of them."""
    return _with_options(function, _OPTIONS, is_needed=False)


def device_source_options(function: F) -> F:
    """Add the options to a command that is about devices only, which have no namespace."""
    return _with_options(function, [option for option in _OPTIONS if option is not _NAMESPACE])


def _with_options(
    function: F, options: Sequence[Callable[[Any], Any]], *, is_needed: bool = True
) -> F:
    @wraps(function)
    def with_sources(
        *args: Any,
        filenames: tuple[str, ...],
        recursive: bool,
        cluster_names: tuple[str, ...],
        is_live: bool,
        kubeconfig: str,
        context: str,
        profile_names: tuple[str, ...],
        form_name: str,
        strict: bool,
        now_text: str | None,
        at: str,
        gates: Gates,
        namespace: str | None = None,
        allows_empty: bool = True,
        **kwargs: Any,
    ) -> Any:
        names_none = not (filenames or cluster_names or profile_names)
        asks = is_live or bool(kubeconfig or context) or (names_none and is_plugin())
        has_cluster = asks or bool(profile_names) or not is_needed
        _check_usage(filenames, cluster_names, has_cluster=has_cluster)
        if at and not cluster_names:
            raise click.UsageError("--at needs a recording in --on")
        check_numa_form(form_name, gates)
        schema = KUBERNETES if strict else CORE
        is_dump_all = not (filenames or asks or profile_names)  # all that the answer is about
        live = [_live(kubeconfig, context, namespace)] if asks else []
        sources = Sources(
            cluster=[
                *_files(
                    cluster_names,
                    recursive=recursive,
                    schema=schema,
                    at=at,
                    allows_empty=allows_empty or not is_dump_all,
                ),
                *live,
                *(
                    [Profiles(profile_names, NumaNodeForm[form_name.upper()])]
                    if profile_names
                    else ()
                ),
            ],
            manifests=_files(
                filenames, recursive=recursive, schema=schema, allows_empty=allows_empty
            ),
            context=Context(gates=gates, now=_now(now_text), extensions=not strict),
            namespace=namespace or (live[0].namespace if live else "default"),
        )
        try:
            return function(*args, sources=sources, **kwargs)
        except UnreadError as error:
            fail(str(error))

    return add_options(gate_options(with_sources), options)  # type: ignore[return-value]


_NAMESPACE = click.option(
    "-n",
    "--namespace",
    show_default="that of the context of --live, else default",
    metavar="NAME",
    help="Namespace of objects that do not name one.",
)
allow_empty_option = click.option(
    "--allow-empty",
    "allows_empty",
    is_flag=True,
    help="Accept files and directories without objects instead of failing.",
)
_OPTIONS = (
    click.option(
        "-f",
        "--filename",
        "filenames",
        multiple=True,
        metavar="FILE|DIR|-",
        help="Manifests to read: YAML or JSON, plain, gzipped, or in a tar or zip archive; - "
        "reads standard input. May be repeated.",
    ),
    click.option("-R", "--recursive", is_flag=True, help="Process subdirectories recursively."),
    click.option(
        "--on",
        "cluster_names",
        multiple=True,
        metavar="FILE|DIR|ARCHIVE",
        help="Cluster dump to read, written by `kubectl get -o yaml`, `moor snapshot` or "
        "`moor record`. May be repeated.",
    ),
    click.option(
        "--at",
        default="",
        metavar="REVISION|TIME",
        help="Moment of the recording in --on. By default, its last.",
    ),
    click.option(
        "--live",
        "is_live",
        is_flag=True,
        help="Read the cluster that kubectl is configured for; kubectl moor does so if no source "
        "is given.",
    ),
    click.option(
        "--kubeconfig",
        default="",
        metavar="FILE",
        help="Kubeconfig for --live. By default, KUBECONFIG or ~/.kube/config.",
    ),
    click.option("--context", default="", metavar="NAME", help="Context of the kubeconfig to use."),
    click.option(
        "--profile",
        "profile_names",
        multiple=True,
        metavar="NAME[=COUNT]",
        help="Hardware profile whose machines to add to the cluster; see `moor profiles`. "
        "May be repeated.",
    ),
    numa_node_option("How the drivers of --profile publish numaNode."),
    _NAMESPACE,
    click.option("--strict", is_flag=True, help="Allow only what Kubernetes 1.37 supports."),
    click.option(
        "--now", "now_text", hidden=True, metavar="TIME", help="Use this as the current time."
    ),
)


def read_sources(sources: Sources) -> ClusterInput:
    """Return the content of the sources, after printing what is odd about it."""
    with garbage_collection_paused():  # Objects that were read stay until the command ends.
        given = read_cluster(**sources._asdict())
        keep_what_exists()
    _print_findings(given)
    hint_if_lost(given.unread)
    return given


def hint_if_lost(unread: Unread) -> None:
    """Print which cluster runs here, if nothing of the one of --live could be reached."""
    if unread and all(each.obstacle is Obstacle.FAILED for each in unread.kinds):
        from moorage.cli.live_hint import print_hint  # few commands need it

        print_hint()


def read_cluster(
    *,
    cluster: list[ClusterSource],
    manifests: list[ClusterSource],
    context: Context,
    namespace: str = "default",
) -> ClusterInput:
    """Return the content of the sources; an unknown profile is a usage error."""
    try:
        with Progress() as progress:
            found = read_given(
                cluster=cluster,
                manifests=manifests,
                context=context,
                namespace=namespace,
                on_object=progress.tick,
            )
    except ProfileError as error:
        raise click.UsageError(str(error)) from None
    return ClusterInput(**asdict(found))


def is_plugin() -> bool:
    """Whether the command is run as `kubectl moor`."""
    context = click.get_current_context(silent=True)
    return context is not None and (context.find_root().info_name or "").startswith("kubectl")


def _check_usage(
    filenames: tuple[str, ...], cluster_names: tuple[str, ...], *, has_cluster: bool
) -> None:
    if not (filenames or cluster_names or has_cluster):
        raise click.UsageError("nothing to look at: give -f, --on, --live or --profile")
    if (*filenames, *cluster_names).count(STDIN) > 1:
        raise click.UsageError("standard input can be read once only: - is given twice")


def _files(
    names: tuple[str, ...], *, recursive: bool, schema: Schema, at: str = "", allows_empty: bool
) -> list[ClusterSource]:
    if not names:
        return []
    return [FileSource(names, recursive, schema, at, "" if allows_empty else empty_error(names))]


def empty_error(names: Sequence[str]) -> str:
    """Return what a command says whose files have no object, as kubectl does."""
    command = click.get_current_context().info_name
    shown = listed(["<stdin>" if name == STDIN else name for name in names])
    return f"no objects passed to {command}: there are none in {shown}; --allow-empty accepts that"


def _live(kubeconfig: str, context: str, namespace: str | None) -> Live:
    from moorage.sources.live_source import find_live  # imports the HTTP client

    return find_live(kubeconfig, context, namespace)


def _now(text: str | None) -> Timestamp:
    """Return the time; here and nowhere else the clock is read."""
    if text is None:
        return Timestamp(datetime.now(UTC))
    try:
        return Timestamp.parse(text)
    except ApiError as error:
        raise click.UsageError(f"--now: {error}") from None


def _print_findings(given: ClusterInput) -> None:
    errors = (*given.unreadable, *given.refused)
    for message in errors[:LINES_SHOWN_MAX]:
        complain(message)
    for warning in given.warnings[:LINES_SHOWN_MAX]:
        warn(str(warning))
    for what, found in (("errors", errors), ("warnings", given.warnings)):
        if len(found) > LINES_SHOWN_MAX:
            echo(f"… and {len(found) - LINES_SHOWN_MAX:,} {what} more", err=True)
