"""`moor snapshot`: a cluster, or files, as one archive."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from moorage.cli import CONTEXT
from moorage.cli.cluster_options import ClusterInput, cluster_options
from moorage.cli.command_classes import option_with_default
from moorage.cli.device_trees import write_text
from moorage.cli.errors import DOES_NOT_FIT, FITS, UNREADABLE
from moorage.cli.output import Progress, complain
from moorage.cli.terminal import echo
from moorage.insight.errors import ArchiveError
from moorage.insight.messages import counted
from moorage.insight.snapshot.archive import Manifest, read_archive, write_archive
from moorage.insight.snapshot.pseudonyms import anonymised
from moorage.insight.snapshot.redaction import redacted
from moorage.insight.snapshot.snapshot import Snapshot
from moorage.insight.snapshot.unread import why_unread
from moorage.kit.atomic_file import replace_file
from moorage.sources.errors import UnreadableError
from moorage.sources.inputs import archive_at


def _target(_: click.Context, __: click.Parameter, name: str | None) -> str | None:
    if name is not None and not name.endswith((".tar.gz", ".tgz")):
        # Commands know an archive by what is in it, people by its name.
        raise click.BadParameter(f"{name!r} does not end in .tar.gz or .tgz")
    return name


def _page(_: click.Context, __: click.Parameter, name: str | None) -> str | None:
    if name is not None and not name.lower().endswith(".html"):
        raise click.BadParameter(f"{name!r} does not end in .html")
    return name


def _show(context: click.Context, _: click.Parameter, name: str | None) -> None:
    if name is None or context.resilient_parsing:
        return
    try:
        archive = archive_at(Path(name))
    except UnreadableError as error:
        complain(str(error))
        context.exit(UNREADABLE)
    for line in _lines(name, archive.manifest):
        echo(line)
    context.exit(FITS)


@click.command(
    context_settings=CONTEXT,
    epilog=(
        "Exit status: 0 written, 1 some objects were invalid and left out, or there are "
        "none, 2 usage error, 3 something could not be read or written."
    ),
)
@click.option(
    "-o",
    "--output",
    "target",
    metavar="FILE.tar.gz",
    callback=_target,
    help="Archive to write.",
)
@option_with_default(
    "--redact/--no-redact",
    "redacts",
    default=True,
    help="Leave out what no answer depends on: environments, commands, driver parameters.",
)
@click.option(
    "--anonymise",
    "anonymises",
    is_flag=True,
    help="Replace the names of nodes, namespaces, pods, claims and other objects.",
)
@click.option(
    "--show",
    metavar="FILE.tar.gz",
    is_eager=True,
    expose_value=False,
    callback=_show,
    help="List the content of an archive and exit.",
)
@click.option(
    "--html",
    "page",
    metavar="FILE.html",
    callback=_page,
    help="HTML page to write, which contains all its data; see `moor ui`.",
)
@cluster_options
def command(
    target: str | None, page: str | None, redacts: bool, anonymises: bool, given: ClusterInput
) -> None:
    """Write a cluster to one archive that all commands read with --on, or as a page.

    The same objects always give the same bytes. Unless --no-redact is given, the archive leaves
    out what no answer depends on: environments, commands and arguments, probes, contents of
    volumes, driver parameters, annotations, addresses and messages. It never contains Secrets or
    ConfigMaps.

    \b
    kubectl get nodes,pods,deviceclasses,resourceslices,resourceclaims,resourceclaimtemplates \\
        -A -o yaml > cluster.yaml
    moor snapshot --on cluster.yaml -o cluster.tar.gz
    moor snapshot --on cluster.tar.gz --anonymise -o to-share.tar.gz
    moor snapshot --show to-share.tar.gz
    moor snapshot --on cluster.tar.gz --html cluster.html
    """
    if target is None and page is None:
        raise click.UsageError("nothing to write: give -o or --html")
    if anonymises and not redacts:
        raise click.UsageError("--anonymise needs redaction: without it, texts still contain names")
    snapshot = given.everything
    if not any(snapshot.objects()):
        # An archive that is there already is worth more than an empty one.
        name = page if target is None else target
        complain(f"{name}: not written: there are no objects")
        sys.exit(given.exit_status(DOES_NOT_FIT))
    if redacts:
        snapshot = redacted(snapshot)
    if anonymises:
        snapshot = anonymised(snapshot)
    if page is not None:
        _write_page(page, snapshot, given)
    if target is not None:
        _write_archive(target, snapshot, given, redacts=redacts, anonymises=anonymises)
    sys.exit(given.exit_status(FITS))


def _write_page(name: str, snapshot: Snapshot, given: ClusterInput) -> None:
    from moorage.web.single_file import single_page

    with Progress() as progress:
        text = single_page(
            snapshot,
            given.context,
            title=Path(name).stem,
            stages=progress.stage,
        )
    write_text(name, text)


def _write_archive(
    target: str, snapshot: Snapshot, given: ClusterInput, *, redacts: bool, anonymises: bool
) -> None:
    try:
        data = write_archive(
            snapshot,
            gates=given.context.gates,
            extensions=given.context.extensions,
            redacted=redacts,
            anonymised=anonymises,
        )
        replace_file(Path(target), data)
    except ArchiveError as error:
        complain(f"{target}: {error}")
        sys.exit(UNREADABLE)
    except OSError as error:
        complain(f"{target}: {error.strerror or error}")
        sys.exit(UNREADABLE)
    for line in _lines(target, read_archive(data).manifest):
        echo(line)


def _lines(name: str, manifest: Manifest) -> Iterator[str]:
    rows = [("KIND", "OBJECTS"), *_rows(manifest)]
    width = max(len(kind) for kind, _ in rows)
    for kind, count in rows:
        yield f"{kind:{width}}  {count}"
    objects = sum(sum(member.kinds.values()) for member in manifest.members)
    states = [
        "redacted" if manifest.redacted else "not redacted",
        *(["anonymised"] if manifest.anonymised else []),
    ]
    yield f"{name}: format version {manifest.version}, {counted(objects, 'object')}, " + ", ".join(
        states
    )
    if manifest.unread:
        yield f"{name}: unknown, {why_unread(manifest.unread)}"


def _rows(manifest: Manifest) -> Iterator[tuple[str, Any]]:
    for member in manifest.members:
        for kind, count in member.kinds.items():
            yield kind, f"{count:,}"
