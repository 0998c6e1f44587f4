"""MOVED."""

from mooring.scheduler.node_info import NodeInfo as NodeState  # noqa

__all__ = ["NodeState"]  # noqa
