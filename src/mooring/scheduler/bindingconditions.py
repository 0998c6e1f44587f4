"""MOVED."""

from mooring.scheduler.binding_conditions import failure as failure  # noqa
from mooring.scheduler.binding_conditions import is_ready as is_ready  # noqa

__all__ = ["failure", "is_ready"]  # noqa
