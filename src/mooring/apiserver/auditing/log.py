"""MOVED."""

from mooring.apiserver.audit.auditor import Rotation as Rotation  # noqa

__all__ = ["Rotation"]  # noqa
