"""MOVED."""
from mooring.node.runtime.shim.foreground import main as main  # noqa
__all__ = ["main"]  # noqa
