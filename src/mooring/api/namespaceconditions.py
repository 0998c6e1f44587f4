"""MOVED."""

from mooring.api.core.namespace import RemainingContent as Remains  # noqa
from mooring.api.core.namespace import deletion_conditions as conditions_of  # noqa

__all__ = ["Remains", "conditions_of"]  # noqa
