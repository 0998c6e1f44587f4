"""`simulate`: pods arrive, wait, run and leave in simulated time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import inf
from os import PathLike, fspath
from pathlib import Path
from random import Random
from typing import Any, final

from mooring.insight.messages import counted
from mooring.insight.plan.evaluation_limit import EvaluationLimit
from mooring.insight.plan.planner import unwatched
from mooring.insight.simulation import (
    Arrival,
    DriverUse,
    Sample,
    SimulatedPod,
    SimulationResult,
    SimulationSettings,
    draw_arrivals,
    read_rows,
    read_trace,
    seconds_of,
)
from mooring.insight.simulation import simulate as run
from mooring.insight.simulation.result import (
    USE_TITLE,
    csv_text,
    pod_rows,
    simulation_tree,
    summary_of,
    timeline_rows,
    use_lines,
    workload_rows,
)
from mooring.library import html
from mooring.library.charts import Chart, chart
from mooring.library.results import Readable, plain_tree
from mooring.library.world import World
from mooring.sources.inputs import InputSource

Time = str | float
Trace = str | PathLike[str] | Iterable[Arrival | Mapping[str, Any]]


@final
class Simulation(Readable):
    """Waits, use and left-over devices. `mooring.simulate` makes it.

    Times are in seconds from the beginning of the simulation.
    """

    __slots__ = ("_found",)

    def __init__(self, found: SimulationResult) -> None:
        self._found = found

    @property
    def pods(self) -> tuple[SimulatedPod, ...]:
        """What became of each pod, in the order of the trace."""
        return self._found.pods

    @property
    def waiting(self) -> tuple[SimulatedPod, ...]:
        """The pods that have no node at the end."""
        return self._found.waiting

    @property
    def timeline(self) -> tuple[Sample, ...]:
        """Running and waiting pods, devices in use and left over, over time."""
        return self._found.timeline

    @property
    def drivers(self) -> tuple[DriverUse, ...]:
        """The use of each driver's devices over the whole time."""
        return self._found.drivers

    @property
    def end_s(self) -> float:
        """When the last pod left, or the simulation ended."""
        return self._found.end_s

    @property
    def mean_wait_s(self) -> float | None:
        """The mean wait of pods that got a node; None if none did."""
        return self._found.mean_wait_s

    def wait_percentile_s(self, percent: float) -> float | None:
        """Return the wait that so many percent of the pods with a node did not exceed."""
        return self._found.wait_percentile_s(percent)

    @property
    def evicted(self) -> tuple[str, ...]:
        """Pods of the cluster itself that were preempted; they do not come again."""
        return self._found.evicted

    @property
    def warnings(self) -> tuple[str, ...]:
        """What to know before believing the result."""
        return self._found.notes

    def summary(self) -> dict[str, Any]:
        """Return the figures that one compares between simulations."""
        return summary_of(self._found)

    def workloads(self) -> list[dict[str, Any]]:
        """Return the figures of each workload: its waits, and what it would leave over."""
        return workload_rows(self._found)

    def rows(self) -> list[dict[str, Any]]:
        """Return a flat row for each pod: its wait, its node, when it ran."""
        return pod_rows(self._found)

    def timeline_rows(self) -> list[dict[str, Any]]:
        """Return a flat row for each sample, with a column for each driver and workload."""
        return timeline_rows(self._found)

    def to_csv(self) -> str:
        """Return the rows of all pods as CSV."""
        return csv_text(self.rows())

    def chart(self) -> Chart:
        """Return a chart of waiting pods and devices in use over hours."""
        return chart(use_lines(self._found), title=USE_TITLE, x="hours")

    def to_dict(self) -> dict[str, Any]:
        """Return the result as `moor simulate -o json` prints it."""
        return plain_tree(simulation_tree(self._found))

    def _repr_html_(self) -> str:
        drivers = (
            (each.driver, each.devices, f"{each.mean_percent:g} %", each.peak)
            for each in self.drivers
        )
        workloads = self.workloads()
        return html.block(
            html.table(
                tuple(workloads[0]) if workloads else (), (tuple(e.values()) for e in workloads)
            ),
            html.table(("Driver", "Devices", "Mean use", "Peak"), drivers),
            self.chart().svg,
            *map(html.paragraph, self.warnings),
        )

    def __str__(self) -> str:
        figures = self.summary()
        waits = "" if self.mean_wait_s is None else f", mean wait {self.mean_wait_s:.0f} s"
        placed, total = figures["placed"], counted(figures["pods"], "pod")
        return f"{placed:,} of {total} got a node{waits}"


def simulate(
    world: World,
    trace: Trace,
    *,
    until: Time | None = None,
    sample: Time | None = None,
    left_over: bool = True,
    progress: Callable[[int, int], None] | None = None,
) -> Simulation:
    """Play a cluster in simulated time, with pods that arrive by a trace.

    The trace is a CSV or JSON file, or Arrivals, or mappings with the fields of such a file:
    `arrival`, `workload` (KIND/NAME of the world), `duration` and `count`. Times are seconds or
    durations such as `1h30m`. The scheduler is the one that plans, with priorities and preemption.
    Workloads of the trace run only as it says; other pods of the world are there from the beginning
    and stay.

    `until` ends the simulation, `sample` is the time between two rows of the timeline. Without
    `left_over` nothing is known about left-over devices, and the simulation takes less time.
    """
    settings = SimulationSettings(
        until_s=inf if until is None else seconds_of(until),
        sample_s=None if sample is None else seconds_of(sample),
        has_left_over=left_over,
    )
    given = world._given
    found = run(
        given.everything,
        _arrivals(trace),
        given.context,
        namespace=given.namespace,
        settings=settings,
        progress=progress or unwatched,
        limit=EvaluationLimit(time.monotonic),
    )
    return Simulation(found)


def _arrivals(trace: Trace) -> Sequence[Arrival]:
    if isinstance(trace, str | PathLike):
        name = fspath(trace)
        return read_trace(InputSource(name, Path(name)).packed(), name)
    found: list[Arrival] = []
    for number, each in enumerate(trace):
        found += [each] if isinstance(each, Arrival) else read_rows([each], f"trace[{number}]")
    return found


def random_arrivals(
    workload: str, *, per_hour: float, until: Time, duration: Time | None = None, seed: int = 0
) -> list[Arrival]:
    """Return arrivals at random, the same for the same seed: a Poisson process.

    `per_hour` is the mean number of arrivals, `duration` the mean of durations, which are
    exponentially distributed; without one, pods stay. `until` is when the last may arrive.
    """
    return draw_arrivals(
        workload,
        per_hour=per_hour,
        duration_s=None if duration is None else seconds_of(duration),
        until_s=seconds_of(until),
        draw=Random(seed).random,  # noqa: S311 (a simulation, no secret)
    )
