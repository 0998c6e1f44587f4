"""MOVED."""

from mooring.allocator.taints import AffectedSlices as Reach  # noqa
from mooring.allocator.taints import TaintRules as TaintRules  # noqa

__all__ = ["Reach", "TaintRules"]  # noqa
