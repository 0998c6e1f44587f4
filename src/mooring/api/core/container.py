"""MOVED."""

from mooring.api.core.pod import Container as Container  # noqa
from mooring.api.core.pod import ContainerPort as ContainerPort  # noqa
from mooring.api.core.pod import EphemeralContainer as EphemeralContainer  # noqa

__all__ = ["Container", "ContainerPort", "EphemeralContainer"]  # noqa
