"""MOVED."""

from mooring.allocator.rules.consumption import ConsumptionRule as Amounts  # noqa

__all__ = ["Amounts"]  # noqa
