"""MOVED."""

from mooring.api.core.kinds import ReplicationController as ReplicationController  # noqa
from mooring.api.core.kinds import Service as Service  # noqa

__all__ = ["ReplicationController", "Service"]  # noqa
