"""The errors of texts that are not correct, found and worded as cel-go does."""

from mooring.cel.lang.recovery.parser import recover

__all__ = ["recover"]
