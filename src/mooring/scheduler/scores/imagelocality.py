"""Nodes that have the pod's images already are better, the larger the images."""

from __future__ import annotations

from collections.abc import Sequence

from mooring.scheduler.nodestate import NodeState
from mooring.scheduler.outlook import Outlook
from mooring.scheduler.scores.scale import SCORE_MAX
from mooring.scheduler.shape import PodShape

MEGABYTE = 1024 * 1024
SIZE_MIN = 23 * MEGABYTE
SIZE_MAX_PER_IMAGE = 1000 * MEGABYTE


def scores(shape: PodShape, states: Sequence[NodeState], outlook: Outlook) -> list[int] | None:
    """Return scores by the size of the images, each counted by the part of nodes that have it."""
    known = [sizes for image in shape.images if (sizes := outlook.world.images.sizes(image))]
    if not known:
        return None
    nodes_count = len(outlook.world.nodes)
    found = []
    for state in states:
        name = state.facts.name
        total = sum(
            int(sizes[name] * (len(sizes) / nodes_count)) for sizes in known if name in sizes
        )
        found.append(_scaled(total, len(shape.images)))
    return found


def _scaled(size: int, images_count: int) -> int:
    size_max = SIZE_MAX_PER_IMAGE * images_count
    size = min(max(size, SIZE_MIN), size_max)
    return SCORE_MAX * (size - SIZE_MIN) // (size_max - SIZE_MIN)
