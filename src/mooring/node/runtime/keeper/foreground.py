"""MOVED."""

from mooring.node.runtime.shim.container_process import run_foreground as main  # noqa

__all__ = ["main"]  # noqa
