"""The topology picture: sockets, NUMA nodes, PCIe roots and devices of nodes, by owner.

    model      nodes, devices, their locations and owners
    builder    a snapshot as a topology
    layout     where everything is in the picture
    elements   SVG elements, colours and text
    cells      devices as they are drawn, and the legend
    drawing    the picture
    page       the picture in a page, with a table and a filter

format = format_of("out.svg")
text = picture(snapshot, title="My cluster", format=format)
"""

from __future__ import annotations

from enum import Enum

from mooring.insight.devices import ClusterUsage
from mooring.insight.snapshot.snapshot import Snapshot
from mooring.insight.topology.builder import topology
from mooring.insight.topology.drawing import svg
from mooring.insight.topology.model import Topology
from mooring.insight.topology.page import html

__all__ = ["Format", "Topology", "format_of", "html", "picture", "svg", "topology"]


class Format(Enum):
    """The format of a picture; the value is the suffix of its file."""

    SVG = ".svg"
    HTML = ".html"


def picture(
    snapshot: Snapshot,
    *,
    title: str,
    format: Format = Format.SVG,  # noqa: A002
    holdings: ClusterUsage | None = None,
) -> str:
    """Return the picture of a snapshot as text, always the same for the same objects.

    Without `holdings`, device usage is computed with all features on.
    """
    draw = svg if format is Format.SVG else html
    return draw(topology(snapshot, holdings), title=title)


def format_of(file_name: str) -> Format | None:
    """Return the picture format of a file name; None if it has none."""
    for format in Format:  # noqa: A001
        if file_name.lower().endswith(format.value):
            return format
    return None
