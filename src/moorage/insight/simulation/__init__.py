"""A cluster in simulated time, where pods arrive as a trace says, wait, run and leave.

trace        arrivals, read from CSV or JSON or drawn at random
simulator    processes the events, and runs the scheduler after each of them
jobs         the pods of a trace, and their queues
device_use   counts devices in use and left over, over time
result       waits, use and left-over devices as values, rows and JSON
line_chart   line charts as SVG
"""

from moorage.insight.simulation.result import DriverUse, Sample, SimulatedPod, SimulationResult
from moorage.insight.simulation.simulator import PODS_MAX, SimulationSettings, simulate
from moorage.insight.simulation.trace import (
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
