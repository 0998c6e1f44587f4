"""Monitoring: what nobody else counts about devices, pods and claims, as metrics with few labels.

objects of informers ─► Monitor ─► Figures ─► families ─► a page for Prometheus

figures   the counts at one moment, as values
monitor   the counts of a cluster that changes; what did not change is not computed again
shapes    what claims usually look like, and the devices that are of no use to them
families  metrics made of the counts, with a bounded number of label values
"""

from __future__ import annotations

from mooring.insight.monitor.families import LabelLimits, MonitorFamilies
from mooring.insight.monitor.figures import Figures, ShapeRoom, WaitingPod
from mooring.insight.monitor.monitor import Monitor
from mooring.insight.monitor.shapes import Shape, common_shapes

__all__ = [
    "Figures",
    "LabelLimits",
    "Monitor",
    "MonitorFamilies",
    "Shape",
    "ShapeRoom",
    "WaitingPod",
    "common_shapes",
]
