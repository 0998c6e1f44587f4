"""What Kubernetes sets in a node that leaves it open."""

from __future__ import annotations

from msgspec.structs import replace

from mooring.api.core.node import Node
from mooring.api.timestamp import Timestamp
from mooring.validation.context import Context
from mooring.validation.errors import Errors
from mooring.validation.metadata import check_metadata, check_metadata_update
from mooring.validation.strategy import Strategy


def default_node(node: Node) -> Node:
    """Return the node with all its capacity allocatable, where it does not say how much is."""
    status = node.status
    if status.allocatable or not status.capacity:
        return node
    return replace(node, status=replace(status, allocatable=status.capacity))


class NodeStrategy(Strategy[Node]):
    """Admission of Nodes."""

    def default(self, value: Node, api_version: str, now: Timestamp) -> Node:  # noqa: ARG002
        """Set what is allocatable."""
        return default_node(value)

    def check_create(self, new: Node, context: Context) -> Errors:  # noqa: ARG002
        """Check the metadata."""
        return check_metadata(new.metadata, namespaced=False)

    def check_update(self, new: Node, old: Node, context: Context) -> Errors:  # noqa: ARG002
        """Check the metadata."""
        return check_metadata_update(new.metadata, old.metadata)
