"""Monitoring: metrics about devices, pods and claims that Kubernetes lacks, with bounded labels.

objects of informers ─► Monitor ─► Figures ─► families ─► a page for Prometheus

figures   the counts at one moment, as values
monitor   computes the counts of a changing cluster, reusing what has not changed
shapes    what most claims request, and the devices that cannot serve another such claim
families  the counts as metrics, with a bounded number of label values
"""

from __future__ import annotations

from moorage.insight.monitor.families import LabelLimits, MonitorFamilies
from moorage.insight.monitor.figures import Figures, ShapeRoom, WaitingPod
from moorage.insight.monitor.monitor import Monitor
from moorage.insight.monitor.shapes import Shape, common_shapes

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
