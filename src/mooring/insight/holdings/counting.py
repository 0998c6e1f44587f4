"""MOVED."""

from mooring.insight.devices.model import StateCounts as Counts  # noqa
from mooring.insight.devices.model import by_node as by_node  # noqa
from mooring.insight.devices.model import count_states as count  # noqa

__all__ = ["Counts", "by_node", "count"]  # noqa
