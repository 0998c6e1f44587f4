"""MOVED."""

from mooring.node.runtime.shim.container_process import StartFailure as Failure  # noqa
from mooring.node.runtime.shim.container_process import ForkedChild as Forked  # noqa

__all__ = ["Failure", "Forked"]  # noqa
