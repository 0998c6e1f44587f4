"""MOVED."""

from mooring.insight.explain.situation import AskCapacity as AskCapacity  # noqa
from mooring.insight.explain.situation import LowerCount as LowerCount  # noqa
from mooring.insight.explain.situation import PublishList as PublishList  # noqa

__all__ = ["AskCapacity", "LowerCount", "PublishList"]  # noqa
