"""MOVED."""

from mooring.controllers.pod_control import is_active as is_active  # noqa
from mooring.controllers.pod_control import is_over as is_over  # noqa

__all__ = ["is_active", "is_over"]  # noqa
