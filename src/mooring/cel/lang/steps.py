"""MOVED."""

from mooring.cel.lang.interpretable import Budget as Budget  # noqa
from mooring.cel.lang.errors import COST_EXCEEDED as COST_EXCEEDED  # noqa
from mooring.cel.lang.interpretable import Failure as Failure  # noqa

__all__ = ["Budget", "COST_EXCEEDED", "Failure"]  # noqa
