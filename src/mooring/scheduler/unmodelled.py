"""MOVED."""

from mooring.scheduler.pre_filter import UNMODELLED as PLUGIN  # noqa
from mooring.scheduler.pre_filter import unmodelled as unmodelled  # noqa

__all__ = ["PLUGIN", "unmodelled"]  # noqa
