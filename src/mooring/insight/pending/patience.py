"""MOVED."""

from mooring.insight.explain.patience import Patience as Patience  # noqa

__all__ = ["Patience"]  # noqa
