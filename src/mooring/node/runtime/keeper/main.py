"""MOVED."""

from mooring.node.runtime.shim.shim import LOCK as LOCK  # noqa

__all__ = ["LOCK"]  # noqa
