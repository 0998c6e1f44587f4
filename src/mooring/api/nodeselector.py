"""MOVED."""

from mooring.api.core.placement import NodeSelector as NodeSelector  # noqa
from mooring.api.core.placement import NodeSelectorRequirement as NodeSelectorRequirement  # noqa
from mooring.api.core.placement import NodeSelectorTerm as NodeSelectorTerm  # noqa

__all__ = ["NodeSelector", "NodeSelectorRequirement", "NodeSelectorTerm"]  # noqa
