"""MOVED."""

from mooring.allocator.rules.consumption import CounterKey as CounterKey  # noqa
from mooring.allocator.rules.consumption import amounts_of as amounts_of  # noqa

__all__ = ["CounterKey", "amounts_of"]  # noqa
