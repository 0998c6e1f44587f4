"""MOVED."""

from mooring.api.core.namespace import Event as Event  # noqa
from mooring.api.core.namespace import EventSource as EventSource  # noqa
from mooring.api.core.namespace import NORMAL as NORMAL  # noqa
from mooring.api.core.namespace import WARNING as WARNING  # noqa

__all__ = ["Event", "EventSource", "NORMAL", "WARNING"]  # noqa
