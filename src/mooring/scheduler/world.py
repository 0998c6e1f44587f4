"""What outlooks are made from: nodes, namespaces, who is where, which images are where."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from mooring.api.core.node import ContainerImage
from mooring.scheduler.census import Census
from mooring.scheduler.nodestate import NodeState


class World:
    """The state of a fleet that filters and scores read; only the fleet changes it."""

    def __init__(self) -> None:
        self.nodes: dict[str, NodeState] = {}
        self.namespaces: dict[str, Mapping[str, str]] = {}
        self.census = Census()
        self.images = Images()
        self.closed = 0  # nodes that take no new pods
        self.hard_tainted = 0  # nodes that pods without a toleration stay away from
        self.soft_tainted = 0  # nodes that pods should rather avoid
        # Extended resources that device classes provide, where a node does not have them itself.
        self.delegated: frozenset[str] = frozenset()


class Images:
    """Which nodes have which image, and how large it is there."""

    def __init__(self) -> None:
        self._sizes: dict[str, dict[str, int]] = {}

    def sizes(self, image: str) -> Mapping[str, int]:
        """Return the size in bytes by node."""
        return self._sizes.get(image, {})

    def put(self, node: str, images: Iterable[ContainerImage]) -> None:
        """Note the images of a node; of several with one name the first counts."""
        for image in images:
            for name in image.names or ():
                self._sizes.setdefault(name, {}).setdefault(node, image.size_bytes)

    def remove(self, node: str, images: Iterable[ContainerImage]) -> None:
        """Forget the images of a node."""
        for image in images:
            for name in image.names or ():
                by_node = self._sizes.get(name, {})
                by_node.pop(node, None)
                if not by_node:
                    self._sizes.pop(name, None)
