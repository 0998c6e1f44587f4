"""A cluster in simulated time: pods arrive by a trace, wait, run and leave.

trace        arrivals: read from CSV and JSON, or drawn at random
simulator    the events, and the scheduler at each of them
jobs         the pods of a trace, their queues, and the cluster that they enter and leave
device_use   how many devices are in use, and which are left over, over time
result       waits, use and left-over devices as values, rows and JSON
line_chart   lines over numbers, as SVG
"""

from mooring.insight.simulation.result import DriverUse, Sample, SimulatedPod, SimulationResult
from mooring.insight.simulation.simulator import PODS_MAX, SimulationSettings, simulate
from mooring.insight.simulation.trace import (
    Arrival,
    draw_arrivals,
    read_rows,
    read_trace,
    seconds_of,
)

__all__ = [
    "PODS_MAX",
    "Arrival",
    "DriverUse",
    "Sample",
    "SimulatedPod",
    "SimulationResult",
    "SimulationSettings",
    "draw_arrivals",
    "read_rows",
    "read_trace",
    "seconds_of",
    "simulate",
]
