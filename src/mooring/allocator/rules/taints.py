"""MOVED."""

from mooring.allocator.taints import BLOCKING as BLOCKING  # noqa
from mooring.allocator.taints import blocking_taint as blocking_taint  # noqa
from mooring.allocator.taints import tolerates as tolerates  # noqa

__all__ = ["BLOCKING", "blocking_taint", "tolerates"]  # noqa
