"""MOVED."""

from mooring.node.runtime.shim.protocol import Launch as Launch  # noqa

__all__ = ["Launch"]  # noqa
