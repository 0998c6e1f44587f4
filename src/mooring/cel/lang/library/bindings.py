"""MOVED."""

from mooring.cel.lang.macros import UNUSED as UNUSED  # noqa
from mooring.cel.lang.macros import bindings_library as library  # noqa

__all__ = ["UNUSED", "library"]  # noqa
