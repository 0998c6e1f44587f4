"""MOVED."""

from mooring.validation.plain_devices import ENTRIES_MAX as ENTRIES_MAX  # noqa
from mooring.validation.plain_devices import VALUE_MAX_BYTES as VALUE_MAX_BYTES  # noqa
from mooring.validation.plain_devices import are_plainly_good as are_plainly_good  # noqa
from mooring.validation.plain_devices import name_no_nodes as name_no_nodes  # noqa

__all__ = ["ENTRIES_MAX", "VALUE_MAX_BYTES", "are_plainly_good", "name_no_nodes"]  # noqa
