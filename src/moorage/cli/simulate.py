"""`moor simulate`: simulates how long pods wait, and how well devices are used."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterable, Iterator
from math import inf
from pathlib import Path
from random import Random
from typing import Any

import click

from moorage.cli import CONTEXT
from moorage.cli.cluster_options import ClusterInput, manifest_cluster_options
from moorage.cli.device_trees import write_text
from moorage.cli.errors import DOES_NOT_FIT, FITS, UNREADABLE
from moorage.cli.output import (
    Progress,
    Row,
    complain,
    output_option,
    print_answer,
    print_table,
    warn,
)
from moorage.cli.scheduler_file import scheduler_config_option
from moorage.cli.terminal import echo, printable
from moorage.insight.errors import InsightError, TraceError, UnknownObjectError
from moorage.insight.messages import counted, listed
from moorage.insight.object_names import pod_name
from moorage.insight.plan.evaluation_limit import EvaluationLimit
from moorage.insight.simulation import (
    Arrival,
    SimulationResult,
    SimulationSettings,
    draw_arrivals,
    read_trace,
    seconds_of,
    simulate,
)
from moorage.insight.simulation.line_chart import line_chart
from moorage.insight.simulation.result import (
    USE_TITLE,
    pod_rows,
    simulation_tree,
    timeline_rows,
    use_lines,
    workload_rows,
)
from moorage.kit.go_duration import duration_text
from moorage.sources.errors import UnreadableError
from moorage.sources.inputs import STDIN, InputSource

ARRIVALS_UNTIL_S = 24 * 3600.0
_RATE = re.compile(r"(?P<workload>[^=]+)=(?P<rate>\d+(?:\.\d+)?)/h(?::(?P<duration>[^:]+))?")

WORKLOADS = ("WORKLOAD", "PODS", "WAITING", "MEAN WAIT", "MEDIAN", "P95", "MAX", "LEFT OVER")
DRIVERS = ("DRIVER", "DEVICES", "MEAN USE", "PEAK")


class _Time(click.ParamType[float]):
    """Seconds, or a duration as Go writes it."""

    name = "time"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return seconds."""
        try:
            return seconds_of(value)
        except TraceError as error:
            self.fail(str(error), param, ctx)


@click.command(
    context_settings=CONTEXT,
    epilog="Exit status: 0 every pod got a node, 1 some wait at the end, 2 usage error, 3 an "
    "input could not be read or has no objects.",
)
@click.option(
    "--trace",
    "trace_name",
    metavar="FILE|-",
    help="Arrivals as CSV or JSON: arrival, workload, duration, count.",
)
@click.option(
    "--arrivals",
    "rates",
    multiple=True,
    metavar="KIND/NAME=N/h[:DURATION]",
    help="Pods that arrive at random: how many per hour, and how long they run, both on average. "
    "Without a duration, they stay. May be repeated.",
)
@click.option(
    "--seed", type=int, default=0, show_default=True, metavar="N", help="Seed of --arrivals."
)
@click.option(
    "--until",
    "until_s",
    type=_Time(),
    metavar="TIME",
    help="When to end the simulation: seconds, or a duration such as 8h. By default, --arrivals "
    "come for 24h, and the simulation ends with the last pod.",
)
@click.option(
    "--sample",
    "sample_s",
    type=_Time(),
    show_default="a hundredth of the trace",
    metavar="TIME",
    help="Time between two samples of the timeline.",
)
@click.option(
    "--no-left-over",
    "is_quick",
    is_flag=True,
    help="Do not count left-over devices, which takes time.",
)
@click.option(
    "--timeline", "is_timeline", is_flag=True, help="Print the timeline instead of workloads."
)
@click.option(
    "--picture",
    "picture_file",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE.svg",
    help="Write a picture of waiting pods and devices in use.",
)
@output_option(
    wide="adds preemptions",
    names="the pods of the trace",
    text="csv prints a line per pod, with --timeline per sample",
)
@manifest_cluster_options
@scheduler_config_option
def command(
    given: ClusterInput,
    trace_name: str | None,
    rates: tuple[str, ...],
    seed: int,
    until_s: float | None,
    sample_s: float | None,
    is_quick: bool,
    is_timeline: bool,
    picture_file: Path | None,
    output: str,
) -> None:
    """Simulate pods that arrive, wait, run and leave, on the cluster of --on, --profile and -f.

    The scheduler is that of `moor plan`, with priorities and preemption. Time is simulated: days
    pass in seconds, and the same input gives the same result. --trace names workloads of -f or of
    the cluster: a pod, an object that creates pods (deployment/train), a claim or a template. They
    run only as the trace says; other pods exist from the beginning and stay. A preempted pod starts
    over.

    The command prints how long the pods of each workload wait, how many devices are in use on
    average and at most, and which percentage of the devices for a workload is left over on average:
    devices that would stay free if the workload filled the cluster, as `moor fit` counts them.

    \b
    moor simulate -f training.yaml --profile dgx-h100x4 --trace trace.csv
    moor simulate -f training.yaml --profile dgx-h100x4 --arrivals deployment/train=6/h:45m
    moor simulate -f training.yaml --on cluster.yaml --trace trace.csv --timeline -o csv
    """
    _check_usage(trace_name, rates, picture_file)
    arrivals = [*_read(trace_name), *_drawn(rates, seed, until_s)]
    settings = SimulationSettings(
        until_s=inf if until_s is None else until_s,
        sample_s=sample_s,
        has_left_over=not is_quick,
    )
    found = _simulated(given, arrivals, settings)
    for note in found.notes:
        warn(note)
    if picture_file is not None:
        chart = line_chart(use_lines(found), title=USE_TITLE, x="hours")
        write_text(str(picture_file), chart)
    _print(found, output, is_timeline=is_timeline)
    sys.exit(given.exit_status(DOES_NOT_FIT if found.waiting else FITS))


def _check_usage(trace: str | None, rates: tuple[str, ...], picture: Path | None) -> None:
    if trace is None and not rates:
        raise click.UsageError("no pods arrive: give --trace or --arrivals")
    if picture is not None and picture.suffix != ".svg":
        raise click.UsageError(f"--picture: {str(picture)!r} does not end in .svg")
    names = click.get_current_context().params
    inputs = [name for field in ("filenames", "cluster_names") for name in names.get(field) or ()]
    if trace == STDIN and STDIN in inputs:
        raise click.UsageError("standard input can be read once only: - is given twice")


def _read(name: str | None) -> list[Arrival]:
    if name is None:
        return []
    source = InputSource("<stdin>", None) if name == STDIN else InputSource(name, Path(name))
    try:
        return read_trace(source.packed(), source.name)
    except (UnreadableError, TraceError) as error:
        complain(str(error))
        sys.exit(UNREADABLE)


def _drawn(rates: Iterable[str], seed: int, until_s: float | None) -> Iterator[Arrival]:
    """Yield random arrivals; those of one workload do not depend on the other workloads."""
    for text in rates:
        found = _RATE.fullmatch(text)
        if found is None:
            raise click.UsageError(f"--arrivals {text}: must be of the form KIND/NAME=N/h:DURATION")
        duration = found["duration"]
        draw = Random(f"{seed} {found['workload']}").random  # noqa: S311 (a simulation)
        try:
            yield from draw_arrivals(
                found["workload"],
                per_hour=float(found["rate"]),
                duration_s=None if duration is None else seconds_of(duration),
                until_s=ARRIVALS_UNTIL_S if until_s is None else until_s,
                draw=draw,
            )
        except TraceError as error:
            raise click.UsageError(f"--arrivals {text}: {error}") from None


def _simulated(
    given: ClusterInput, arrivals: list[Arrival], settings: SimulationSettings
) -> SimulationResult:
    try:
        with Progress("pods done") as progress:
            return simulate(
                given.everything,
                arrivals,
                given.context,
                namespace=given.namespace,
                settings=settings,
                progress=progress,
                limit=EvaluationLimit(time.monotonic),
            )
    except UnknownObjectError as error:
        given.end_without(str(error))
    except InsightError as error:
        raise click.UsageError(printable(str(error))) from None


# --- printing -------------------------------------------------------------------------------------


def _print(found: SimulationResult, output: str, *, is_timeline: bool) -> None:
    print_answer(
        output,
        table=lambda is_wide: (
            _print_timeline(found) if is_timeline else _print_summary(found, is_wide=is_wide)
        ),
        document=lambda: simulation_tree(found),
        rows=lambda: timeline_rows(found) if is_timeline else pod_rows(found),
        names=lambda: (pod_name(each.pod) for each in found.pods),
    )


def _print_timeline(found: SimulationResult) -> None:
    rows = timeline_rows(found)
    fixed = {"at_s": "TIME", "running": "RUNNING", "waiting": "WAITING"}
    header = tuple(fixed.get(name, name) for name in rows[0])
    lines = ([_time(row["at_s"]), *map(_cell, list(row.values())[1:])] for row in rows)
    print_table(header, lines, is_wide=True)


def _print_summary(found: SimulationResult, *, is_wide: bool) -> None:
    header = (*WORKLOADS, "PREEMPTIONS") if is_wide else WORKLOADS
    lines = [_workload_row(row, is_wide=is_wide) for row in workload_rows(found)]
    print_table(header, lines, is_wide=True)
    echo("")
    used = (each for each in found.drivers if each.peak)
    rows = (
        (each.driver, f"{each.devices:,}", f"{each.mean_percent:g} %", f"{each.peak:,}")
        for each in used
    )
    print_table(DRIVERS, rows, is_wide=True)
    waiting = found.waiting
    if waiting:
        echo("")
        echo(printable(f"{waiting[0].pod} still waits: {waiting[0].message}"))
    if found.evicted:
        names = listed(found.evicted)
        echo(printable(f"\npods of the cluster that were preempted: {names}"))
    done = len(found.pods) - len(waiting)
    total = counted(len(found.pods), "pod")
    echo(f"\n{done:,} of {total} got a node in {_time(found.end_s)} of simulated time")


def _workload_row(row: dict[str, Any], *, is_wide: bool) -> Row:
    waits = (_time(row[name]) for name in ("meanWaitS", "medianWaitS", "p95WaitS", "maxWaitS"))
    left = row["meanLeftOverPercent"]
    left_over = "" if left is None else f"{left:g} %"
    rest = (left_over, f"{row['preemptions']:,}") if is_wide else (left_over,)
    return row["workload"], f"{row['pods']:,}", f"{row['waiting']:,}", *waits, *rest


def _time(seconds: float | None) -> str:
    return "" if seconds is None else duration_text(round(seconds) * 10**9)


def _cell(value: object) -> str:
    return "" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
