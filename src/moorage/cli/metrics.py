"""`moor metrics`: devices, pending pods and claims as metrics."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import click

from moorage.api.resource.v1 import ResourceClaim, ResourceClaimTemplate
from moorage.cli import CONTEXT
from moorage.cli.cluster_options import (
    ClusterInput,
    Sources,
    read_cluster,
    read_sources,
    source_options,
)
from moorage.cli.command_classes import Duration, add_options, option_with_default
from moorage.cli.errors import FITS, fail
from moorage.cli.output import output_option, print_answer, print_table
from moorage.cli.program_options import run_program, status_place, watching_options
from moorage.cli.scheduler_file import scheduler_config_option
from moorage.cli.terminal import echo, printable, printable_lines, say
from moorage.client.errors import ClientError
from moorage.insight.errors import TooManyPodsError
from moorage.insight.explain.pods import DiagnosisTimeLimit
from moorage.insight.monitor import LabelLimits, Monitor, MonitorFamilies, Shape
from moorage.insight.monitor.monitor import SHAPE_CLAIMS_MAX, SHAPES_MAX
from moorage.insight.plan.evaluation_limit import EvaluationLimit
from moorage.kit.metrics import Family, exposition, number_text, openmetrics_exposition
from moorage.sources.cluster_sources import FileSource
from moorage.validation.strategy import Context

if TYPE_CHECKING:
    from moorage.client.client_factory import RestConfig
    from moorage.cluster.metrics_exporter import ExporterSettings
    from moorage.cluster.status_server import ListenAddress

PROMETHEUS = "prometheus"
SHAPES_LIMIT = 100
NAME_LENGTH_MAX = 128
DEFAULTS = LabelLimits()

_COUNTING = (
    click.option(
        "--shape",
        "shape_texts",
        multiple=True,
        metavar="NAME=FILE",
        help="Also count the devices that are of no use to the ResourceClaim or "
        "ResourceClaimTemplate in FILE. May be repeated.",
    ),
    option_with_default(
        "--max-shapes",
        "shapes_max",
        type=click.IntRange(0, SHAPES_LIMIT),
        default=SHAPES_MAX,
        metavar="N",
        help="Maximum number of shapes: those of --shape, then the templates that most pods use.",
    ),
    option_with_default(
        "--max-shape-claims",
        "claims_max",
        type=click.IntRange(1, 100_000),
        default=SHAPE_CLAIMS_MAX,
        metavar="N",
        help="Maximum number of claims to try for a shape; if all get devices, the number of "
        "stranded devices is unknown.",
    ),
    option_with_default(
        "--max-nodes",
        "nodes",
        type=click.IntRange(0, 100_000),
        default=DEFAULTS.nodes,
        metavar="N",
        help="Maximum number of nodes with labels of their own; the others count as <other>.",
    ),
    option_with_default(
        "--max-namespaces",
        "namespaces",
        type=click.IntRange(0, 10_000),
        default=DEFAULTS.namespaces,
        metavar="N",
        help="Maximum number of namespaces with labels of their own; the others count as <other>.",
    ),
)


@click.command(
    context_settings=CONTEXT,
    epilog="Exit status: 0 printed, or stopped; 1 an object was invalid; 2 usage error; 3 an input "
    "could not be read, or the cluster cannot be reached or used.",
)
@click.option("--once", "is_once", is_flag=True, help="Print the metrics of --live once and exit.")
@output_option(
    PROMETHEUS,
    default=PROMETHEUS,
    names="the metrics",
    text="prometheus is the text that is served",
)
@click.option("--openmetrics", "is_open", is_flag=True, help="Print in the OpenMetrics format.")
@option_with_default(
    "--interval",
    "interval_s",
    type=Duration(1, 3600),
    default="15s",
    help="With --live: minimum pause before everything is counted again.",
)
@watching_options(metrics="127.0.0.1:10270", aliases=("--bind-address",))
@source_options
@scheduler_config_option
@lambda function: add_options(function, _COUNTING)
def command(sources: Sources, is_once: bool, is_open: bool, output: str, **given: Any) -> None:
    """Export metrics that Kubernetes lacks: about devices, claims and pending pods.

    With --live, the command serves /metrics, /healthz and /readyz for Prometheus until interrupted;
    without a kubeconfig, it uses the service account of its pod. With -f, --on, --profile or
    --once, it prints the metrics and exits.

    The numbers are those of moor devices, moor explain and moor fit: devices by driver, node, class
    and state; pods without a node by kind of cause; claims by state and age; and for each shape of
    claims, how many more would get devices, and how many free devices are of no use to one more.
    Labels have a bounded number of values.

    \b
    moor metrics --live
    moor metrics --live --metrics-bind-address 0.0.0.0:10270 --cert-dir /tmp/certs
    moor metrics --on cluster.yaml --shape worker=worker-claim.yaml
    """
    place = status_place(given["place"], given)
    shapes = tuple(_shapes(given["shape_texts"], sources.context))
    live = sources.live
    if is_open and output != PROMETHEUS:
        raise click.UsageError(f"--openmetrics is a text format: give it without -o {output}")
    if live is None or is_once:
        families = _families(read := read_sources(sources), given, shapes)
        _print_families(families, output, is_open=is_open)
        raise SystemExit(read.exit_status(FITS))
    if output != PROMETHEUS:
        raise click.UsageError("-o: with --live only with --once; scrapers ask for the format")
    if is_open:
        raise click.UsageError(
            "--openmetrics: with --live only with --once; scrapers ask for the format"
        )
    if len(sources.cluster) > 1 or sources.manifests:
        raise click.UsageError("--live: together with other sources only with --once")
    if isinstance(live.access, ClientError):
        fail(str(live.access))
    from moorage.cluster.metrics_exporter import ExporterSettings

    settings = ExporterSettings(
        shapes, given["shapes_max"], given["claims_max"], _limits(given), given["interval_s"]
    )
    run_program(
        _serve(live.access, sources.context, settings, place),
        verbosity=given["verbosity"],
        server=live.access.server,
    )


def _limits(given: dict[str, Any]) -> LabelLimits:
    return DEFAULTS._replace(nodes=given["nodes"], namespaces=given["namespaces"])


def _families(read: ClusterInput, given: dict[str, Any], shapes: tuple[Shape, ...]) -> list[Family]:
    """Return the metrics of what was read."""
    monitor = Monitor(
        read.context,
        shapes=shapes,
        shapes_max=given["shapes_max"],
        claims_max=given["claims_max"],
        effort=DiagnosisTimeLimit(time.monotonic).effort,
        limit=lambda: EvaluationLimit(time.monotonic),
    )
    try:
        figures = monitor.figures_of(read.everything, read.context)
    except TooManyPodsError as error:
        raise click.UsageError(str(error)) from None
    now = read.context.now.instant
    return list(MonitorFamilies(lambda: figures, lambda: now, _limits(given)).families())


def _print_families(families: list[Family], output: str, *, is_open: bool) -> None:
    if output == PROMETHEUS:
        text = openmetrics_exposition(families) if is_open else exposition(families)
        echo(printable_lines(text), nl=False)
        return
    print_answer(
        output,
        table=lambda is_wide: _print_samples(families, is_wide=is_wide),
        document=lambda: {"metrics": list(map(_family_tree, families))},
        rows=lambda: (
            {"metric": f"{each.name}{end}", "type": each.type, "value": _figure(value)}
            | {f"label {name}": text for name, text in labels.items()}
            for each in families
            for end, labels, value in each.samples()
        ),
        names=lambda: (f"metric/{each.name}" for each in families),
        columns=("metric", "type", "value"),
    )


def _family_tree(family: Family) -> dict[str, Any]:
    samples = [
        {"metric": f"{family.name}{end}", "labels": dict(labels), "value": _figure(value)}
        for end, labels, value in family.samples()
    ]
    return {"name": family.name, "type": family.type, "help": family.text, "samples": samples}


def _figure(value: float) -> float | None:
    """Return a value as JSON has it, which knows neither infinity nor NaN."""
    return None if not math.isfinite(value) else int(value) if value == int(value) else value


def _print_samples(families: list[Family], *, is_wide: bool) -> None:
    header = ("METRIC", "LABELS", "VALUE", *(("TYPE", "HELP") if is_wide else ()))
    rows = (
        (f"{each.name}{end}", _labels(labels), number_text(value), each.type, each.text)
        for each in families
        for end, labels, value in each.samples()
    )
    print_table(header, (row[: len(header)] for row in rows), is_wide=is_wide)


def _labels(labels: Mapping[str, str]) -> str:
    return ",".join(f"{name}={text}" for name, text in labels.items())


async def _serve(
    access: RestConfig, context: Context, settings: ExporterSettings, place: ListenAddress | None
) -> None:
    from moorage.client.client_factory import http_client
    from moorage.cluster.leader_process import check_connection, run_as_leader
    from moorage.cluster.metrics_exporter import MetricsProgram
    from moorage.cluster.programs import ProgramContext

    around = ProgramContext(gates=context.gates)
    async with http_client(access, manager="moorage-metrics") as client:
        await check_connection(client)
        program = MetricsProgram(client, around, context, settings)
        await run_as_leader(
            program,
            client,
            around,
            lead=None,
            place=place,
            tell=lambda text: say(text, err=True),
            working=f"counting at {access.server}",
            openmetrics=program.openmetrics_pages,
            troubles=lambda: program.troubles,
        )


# --- shapes ---------------------------------------------------------------------------------------


def _shapes(texts: tuple[str, ...], context: Context) -> Iterator[Shape]:
    """Yield the shapes of --shape, or exit if a file cannot be used."""
    names: set[str] = set()
    for text in texts:
        name, equals, file = text.partition("=")
        if not (name and equals and file):
            raise click.UsageError(f"--shape {text}: expected NAME=FILE")
        if len(name) > NAME_LENGTH_MAX or printable(name) != name:
            raise click.UsageError(f"--shape: a name has up to {NAME_LENGTH_MAX} characters")
        if name in names:
            raise click.UsageError(f"--shape {name}: the name is given twice")
        names.add(name)
        yield Shape(name, _model(name, file, context))


def _model(name: str, file: str, context: Context) -> ResourceClaim | ResourceClaimTemplate:
    source = FileSource((file,), False, context.yaml_schema)
    read = read_cluster(cluster=[], manifests=[source], context=context)
    for fault in (*read.unreadable, *read.refused):
        fail(f"--shape {name}: {fault}")
    found: tuple[ResourceClaim | ResourceClaimTemplate, ...]
    found = (*read.manifests.claims, *read.manifests.templates)
    if len(found) != 1:
        fail(f"--shape {name}: {file} must hold one ResourceClaim or ResourceClaimTemplate")
    return found[0]
