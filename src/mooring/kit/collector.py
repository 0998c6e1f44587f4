"""MOVED."""

from mooring.kit.process_memory import relax_garbage_collector as calm_collector  # noqa
from mooring.kit.process_memory import release_memory as clean_up
from mooring.kit.process_memory import limit_malloc_arenas as few_arenas
from mooring.kit.process_memory import garbage_collection_paused as without_collector

__all__ = ["calm_collector", "clean_up", "few_arenas", "without_collector"]
