"""MOVED."""
from mooring.apiserver.patching.shapes import find_shape as find_shape  # noqa
__all__ = ["find_shape"]  # noqa
