"""MOVED."""

from mooring.api.runtime_class import GROUP as GROUP  # noqa
from mooring.api.runtime_class import Overhead as Overhead  # noqa
from mooring.api.runtime_class import RuntimeClass as RuntimeClass  # noqa
from mooring.api.runtime_class import Scheduling as Scheduling  # noqa

__all__ = ["GROUP", "Overhead", "RuntimeClass", "Scheduling"]  # noqa
