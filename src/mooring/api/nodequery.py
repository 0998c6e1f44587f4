"""MOVED."""

from mooring.api.node_affinity import NAME_FIELD as NAME_FIELD  # noqa
from mooring.api.node_affinity import NodeQuery as NodeQuery  # noqa
from mooring.api.node_affinity import NodeTerm as NodeTerm  # noqa
from mooring.api.node_affinity import read_node_selector as read_node_selector  # noqa
from mooring.api.node_affinity import read_node_term as read_node_term  # noqa

__all__ = ["NAME_FIELD", "NodeQuery", "NodeTerm", "read_node_selector", "read_node_term"]  # noqa
