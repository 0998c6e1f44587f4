"""`simulate`: pods that arrive, wait, run and leave in simulated time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import inf
from os import PathLike, fspath
from pathlib import Path
from random import Random
from typing import Any, final

from moorage.insight.messages import counted
from moorage.insight.plan.evaluation_limit import EvaluationLimit
from moorage.insight.plan.planner import unwatched
from moorage.insight.rows import csv_text
from moorage.insight.simulation import (
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
from moorage.insight.simulation import simulate as run
from moorage.insight.simulation.result import (
    USE_TITLE,
    pod_rows,
    simulation_tree,
    summary_of,
    timeline_rows,
    use_lines,
    workload_rows,
)
from moorage.kit.errors import MoorageError
from moorage.library import html
from moorage.library.charts import Chart, chart
from moorage.library.results import Readable, check_type, plain_tree
from moorage.library.world import World
from moorage.sources.inputs import InputSource

Time = str | float
Trace = str | PathLike[str] | Iterable[Arrival | Mapping[str, Any]]


@final
class Simulation(Readable):
    """Waits, use of devices and left-over devices. `moorage.simulate` returns it.

    Times are seconds since the beginning of the simulation.
    """

    __slots__ = ("_found",)

    def __init__(self, found: SimulationResult) -> None:
        self._found = found

    @property
    def pods(self) -> tuple[SimulatedPod, ...]:
        """The pods of the trace, in its order."""
        return self._found.pods

    @property
    def waiting(self) -> tuple[SimulatedPod, ...]:
        """The pods that have no node at the end."""
        return self._found.waiting

    @property
    def timeline(self) -> tuple[Sample, ...]:
        """Samples over time: running and waiting pods, devices in use and left over."""
        return self._found.timeline

    @property
    def drivers(self) -> tuple[DriverUse, ...]:
        """How much each driver's devices were in use, over the whole simulation."""
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
        """Return the wait that this percentage of the pods with a node did not exceed."""
        if not 0 <= percent <= 100:
            raise MoorageError(f"percent: {percent}: must be between 0 and 100")
        return self._found.wait_percentile_s(percent)

    @property
    def evicted(self) -> tuple[str, ...]:
        """Preempted pods that the trace does not have; they do not return."""
        return self._found.evicted

    @property
    def warnings(self) -> tuple[str, ...]:
        """Caveats that limit what the result means."""
        return self._found.notes

    def summary(self) -> dict[str, Any]:
        """Return the main figures, for comparing simulations."""
        return summary_of(self._found)

    def workloads(self) -> list[dict[str, Any]]:
        """Return the figures of each workload: waits, and the devices that it would leave over."""
        return workload_rows(self._found)

    def timeline_rows(self) -> list[dict[str, Any]]:
        """Return a flat dictionary for each sample, with entries for each driver and workload."""
        return timeline_rows(self._found)

    def to_csv(self) -> str:
        """Return the rows of all pods as CSV."""
        return csv_text(self.rows())

    def chart(self) -> Chart:
        """Return a chart of waiting pods and devices in use, by hour."""
        return chart(use_lines(self._found), title=USE_TITLE, x="hours")

    def to_dict(self) -> dict[str, Any]:
        """Return the result as `moor simulate -o json` prints it."""
        return plain_tree(simulation_tree(self._found))

    def _rows(self) -> Iterator[Mapping[str, Any]]:
        return iter(pod_rows(self._found))

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
    """Simulate a cluster whose pods arrive as a trace says.

    The trace is a CSV or JSON file, or Arrivals, or mappings with the fields of such a file:
    `arrival`, `workload` (KIND/NAME in the world), `duration` and `count`. Times are seconds or
    durations such as `1h30m`. The scheduler is that of `World.plan`, with priorities and
    preemption. Workloads of the trace run only as it says; all other pods of the world exist from
    the beginning and stay.

    `until` ends the simulation; `sample` is the time between two samples of the timeline. With
    `left_over=False`, left-over devices are not counted, which saves time.
    """
    check_type("world", world, World)
    check_type("trace", trace, str, PathLike, Iterable)
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
    """Return random arrivals, drawn from a Poisson process; the same seed gives the same ones.

    `per_hour` is the mean number of arrivals. `duration` is the mean of the exponentially
    distributed durations; without it, pods stay. No pods arrive after `until`.
    """
    return draw_arrivals(
        workload,
        per_hour=per_hour,
        duration_s=None if duration is None else seconds_of(duration),
        until_s=seconds_of(until),
        draw=Random(seed).random,  # noqa: S311 (a simulation, no secret)
    )
