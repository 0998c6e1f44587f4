"""MOVED."""
from mooring.node.runtime.shim.launches import Launch as Launch  # noqa
__all__ = ["Launch"]  # noqa
