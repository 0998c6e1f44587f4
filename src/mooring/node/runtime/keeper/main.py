"""MOVED."""
from mooring.node.runtime.shim.main import LOCK as LOCK  # noqa
__all__ = ["LOCK"]  # noqa
