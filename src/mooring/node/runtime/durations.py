"""MOVED."""

from mooring.node.runtime.sim import End as End  # noqa
from mooring.node.runtime.sim import end_of as end_of  # noqa

__all__ = ["End", "end_of"]  # noqa
