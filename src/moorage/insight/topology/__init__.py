"""The topology picture: sockets, NUMA nodes, PCIe roots and devices of nodes, by owner.

    model      nodes, devices, their locations and owners
    builder    a snapshot as a topology
    layout     where everything is in the picture
    elements   SVG elements, colours and text
    cells      devices as they are drawn, and the legend
    drawing    the picture

text = picture(snapshot, title="My cluster")
"""

from __future__ import annotations

from moorage.insight.devices import ClusterUsage
from moorage.insight.snapshot.snapshot import Snapshot
from moorage.insight.topology.builder import topology
from moorage.insight.topology.drawing import svg
from moorage.insight.topology.model import Topology

__all__ = ["Topology", "picture", "svg", "topology"]


def picture(snapshot: Snapshot, *, title: str, holdings: ClusterUsage | None = None) -> str:
    """Return the picture of a snapshot as SVG, always the same for the same objects.

    Without `holdings`, device usage is computed with all features on.
    """
    return svg(topology(snapshot, holdings), title=title)
