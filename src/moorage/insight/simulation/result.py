"""The result of a simulation: how long pods waited, and the use of devices over time."""

from __future__ import annotations

from collections.abc import Iterable
from math import ceil
from typing import Any

import msgspec
from msgspec import Struct

Row = dict[str, Any]
USE_TITLE = "Waiting pods and devices in use"


class SimulatedPod(Struct, frozen=True, rename="camel"):
    """What happened to a pod of the trace; times are seconds since the simulation began.

    `start_s` and `end_s` are those of its last run, on `node`: a preempted pod starts over, with
    its whole duration. `wait_s` is the total time that it waited, and `preemptions` how often it
    was preempted. `message` is what Kubernetes says about a pod that still waits at the end.
    """

    pod: str
    workload: str
    arrival_s: float
    wait_s: float
    start_s: float | None = None
    end_s: float | None = None
    node: str | None = None
    preemptions: int = 0
    message: str = ""

    @property
    def is_waiting(self) -> bool:
        """Whether the pod has no node at the end."""
        return self.node is None


class Sample(Struct, frozen=True, rename="camel"):
    """The cluster at one moment of the simulation, `at_s`.

    `running` and `waiting` count pods of the trace; `used` counts devices that claims have, by
    driver. `left_over` has a percentage for each workload: the devices that would stay free if the
    workload filled the cluster, as `moor fit` counts them, for the request that leaves over the
    fewest. It is None if unknown.
    """

    at_s: float
    running: int
    waiting: int
    used: dict[str, int]
    left_over: dict[str, float | None] = {}


class DriverUse(Struct, frozen=True, rename="camel"):
    """How many of a driver's devices were in use over the whole simulation.

    `mean_percent` is weighted by time; `peak` is the largest number of devices in use at once.
    """

    driver: str
    devices: int
    mean_percent: float
    peak: int


class SimulationResult(Struct, frozen=True, rename="camel"):
    """Waits, use and left-over devices."""

    pods: tuple[SimulatedPod, ...]  # in the order of the trace
    timeline: tuple[Sample, ...]
    drivers: tuple[DriverUse, ...]
    end_s: float  # the time of the last event
    evicted: tuple[str, ...] = ()  # preempted pods that the trace does not have
    notes: tuple[str, ...] = ()

    @property
    def waits_s(self) -> tuple[float, ...]:
        """The waits of all pods that got a node, the shortest first."""
        return tuple(sorted(each.wait_s for each in self.pods if not each.is_waiting))

    @property
    def waiting(self) -> tuple[SimulatedPod, ...]:
        """The pods that have no node at the end."""
        return tuple(each for each in self.pods if each.is_waiting)

    @property
    def mean_wait_s(self) -> float | None:
        """The mean wait of pods that got a node; None if none did."""
        waits = self.waits_s
        return sum(waits) / len(waits) if waits else None

    def wait_percentile_s(self, percent: float) -> float | None:
        """Return the wait that this percentage of the pods with a node did not exceed."""
        waits = self.waits_s
        if not waits:
            return None
        place = ceil(len(waits) * min(max(percent, 0.0), 100.0) / 100)
        return waits[max(place, 1) - 1]


def summary_of(result: SimulationResult) -> Row:
    """Return the main figures, for comparing simulations."""
    return {
        "pods": len(result.pods),
        "placed": len(result.pods) - len(result.waiting),
        "waiting": len(result.waiting),
        "meanWaitS": _rounded(result.mean_wait_s),
        "medianWaitS": _rounded(result.wait_percentile_s(50)),
        "p95WaitS": _rounded(result.wait_percentile_s(95)),
        "maxWaitS": _rounded(result.wait_percentile_s(100)),
        "preemptions": sum(each.preemptions for each in result.pods),
        "endS": _rounded(result.end_s),
    }


def workload_rows(result: SimulationResult) -> list[Row]:
    """Return the figures of each workload: waits, and the devices that it would leave over."""
    names = dict.fromkeys(each.workload for each in result.pods)
    return [_workload_row(name, result) for name in names]


def _workload_row(name: str, result: SimulationResult) -> Row:
    own = tuple(each for each in result.pods if each.workload == name)
    lefts = [found for each in result.timeline if (found := each.left_over.get(name)) is not None]
    mean = round(sum(lefts) / len(lefts), 1) if lefts else None
    figures = summary_of(SimulationResult(own, (), (), result.end_s))
    del figures["endS"]
    return {"workload": name, **figures, "meanLeftOverPercent": mean}


def use_lines(result: SimulationResult) -> dict[str, list[tuple[float, float]]]:
    """Return lines of waiting pods, and of each driver's devices in use, by hour."""
    lines = {"waiting pods": [(each.at_s / 3600, float(each.waiting)) for each in result.timeline]}
    for found in result.drivers:
        if found.peak:
            points = (
                (each.at_s / 3600, each.used.get(found.driver, 0)) for each in result.timeline
            )
            lines[f"{found.driver} in use"] = [(at, float(used)) for at, used in points]
    return lines


def simulation_tree(result: SimulationResult) -> Row:
    """Return a result as `moor simulate -o json` prints it."""
    return {
        "summary": summary_of(result),
        "workloads": workload_rows(result),
        **msgspec.to_builtins(result),
    }


def pod_rows(result: SimulationResult) -> list[Row]:
    """Return a flat dictionary for each pod of the trace."""
    fields = ("pod", "workload", "arrival_s", "start_s", "end_s", "wait_s", "node", "preemptions")
    return [{name: _rounded(getattr(each, name)) for name in fields} for each in result.pods]


def timeline_rows(result: SimulationResult) -> list[Row]:
    """Return a flat dictionary for each sample, with entries for each driver and workload."""
    return [_sample_row(each, result.drivers) for each in result.timeline]


def _sample_row(sample: Sample, drivers: Iterable[DriverUse]) -> Row:
    row: Row = {
        "at_s": _rounded(sample.at_s),
        "running": sample.running,
        "waiting": sample.waiting,
    }
    row |= {f"used {each.driver}": sample.used.get(each.driver, 0) for each in drivers}
    return row | {f"left over % {name}": found for name, found in sample.left_over.items()}


def _rounded(value: Any) -> Any:
    return round(value, 3) if isinstance(value, float) else value
