"""ImageLocality: nodes that have the pod's images already are better, the larger the images."""

from __future__ import annotations

from collections.abc import Sequence

from moorage.scheduler.node_info import NodeInfo
from moorage.scheduler.plugins import SCORE_MAX, Score
from moorage.scheduler.pod_signature import PodSignature
from moorage.scheduler.topology_state import TopologyState

PLUGIN = "ImageLocality"
MEGABYTE = 1024 * 1024
SIZE_MIN = 23 * MEGABYTE
SIZE_MAX_PER_IMAGE = 1000 * MEGABYTE


def score_nodes(
    signature: PodSignature, nodes: Sequence[NodeInfo], state: TopologyState
) -> list[int] | None:
    """Return scores by the size of the images, each weighted by the part of nodes that have it."""
    images = state.inputs.images
    known = [sizes for image in signature.images if (sizes := images.sizes(image))]
    if not known:
        return None
    nodes_count = len(state.inputs.nodes)
    found = []
    for node in nodes:
        name = node.facts.name
        total = sum(
            int(sizes[name] * (len(sizes) / nodes_count)) for sizes in known if name in sizes
        )
        found.append(_scaled(total, len(signature.images)))
    return found


def _scaled(size: int, images_count: int) -> int:
    size_max = SIZE_MAX_PER_IMAGE * images_count
    size = min(max(size, SIZE_MIN), size_max)
    return SCORE_MAX * (size - SIZE_MIN) // (size_max - SIZE_MIN)


SCORE: Score = Score(
    PLUGIN,
    1,
    score_nodes=score_nodes,
    applies=lambda signature, state: any(
        state.inputs.images.sizes(image) for image in signature.images
    ),
)
