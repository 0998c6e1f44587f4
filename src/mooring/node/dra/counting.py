"""MOVED."""

from mooring.node.dra.manager import DraMetrics as NodeMetrics  # noqa

__all__ = ["NodeMetrics"]  # noqa
