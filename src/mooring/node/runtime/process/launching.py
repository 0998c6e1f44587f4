"""MOVED."""

from mooring.node.runtime.process.runtime import launch_of as launch_of  # noqa

__all__ = ["launch_of"]  # noqa
