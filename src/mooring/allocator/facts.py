"""MOVED."""

from mooring.allocator.pool_facts import PoolFacts as Facts  # noqa

__all__ = ["Facts"]  # noqa
