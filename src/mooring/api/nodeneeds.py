"""MOVED."""

from mooring.api.node_affinity import NodeNeed as NodeNeed  # noqa
from mooring.api.node_affinity import read_need as read_need  # noqa
from mooring.api.node_affinity import required_nodes as required_nodes  # noqa

__all__ = ["NodeNeed", "read_need", "required_nodes"]  # noqa
