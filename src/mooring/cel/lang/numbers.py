"""MOVED."""

from mooring.cel.lang.values import double_text as double_text  # noqa

__all__ = ["double_text"]  # noqa
