"""MOVED."""

from mooring.node.dra.service import Dra as Dra  # noqa
from mooring.node.dra.service import DraSettings as DraSettings  # noqa

__all__ = ["Dra", "DraSettings"]  # noqa
