"""MOVED."""

from mooring.cluster.programs import CONTROLLERS as CONTROLLERS

__all__ = ["CONTROLLERS"]
