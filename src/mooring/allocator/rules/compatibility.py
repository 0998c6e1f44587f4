"""MOVED."""

from mooring.allocator.rules.constraints import CompatibilityRule as Compatibility  # noqa

__all__ = ["Compatibility"]  # noqa
