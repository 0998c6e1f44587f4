"""MOVED."""
from mooring.node.runtime.shim.child import Failure as Failure  # noqa
from mooring.node.runtime.shim.child import Forked as Forked  # noqa
__all__ = ["Failure", "Forked"]  # noqa
