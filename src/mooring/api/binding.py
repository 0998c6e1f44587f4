"""MOVED."""

from mooring.api.process_binding import CPUS as CPUS  # noqa
from mooring.api.process_binding import ITEMS as ITEMS  # noqa
from mooring.api.process_binding import MEMORY_NODES as MEMORY_NODES  # noqa
from mooring.api.process_binding import process_binding as binding_of  # noqa
from mooring.api.process_binding import item_variable as item_variable  # noqa
from mooring.api.process_binding import binding_variable as variable  # noqa

__all__ = ["CPUS", "ITEMS", "MEMORY_NODES", "binding_of", "item_variable", "variable"]  # noqa
