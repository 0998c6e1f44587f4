"""MOVED."""

from mooring.insight.whatif.difference import PodPlacement as Standing  # noqa

__all__ = ["Standing"]  # noqa
