"""MOVED."""

from mooring.cluster.programs import CONTROLLERS as CONTROLLERS  # noqa

__all__ = ["CONTROLLERS"]  # noqa
