"""MOVED."""
from mooring.insight.devices.counting import Counts as Counts  # noqa
from mooring.insight.devices.counting import by_node as by_node  # noqa
from mooring.insight.devices.counting import count as count  # noqa
__all__ = ["Counts", "by_node", "count"]  # noqa
