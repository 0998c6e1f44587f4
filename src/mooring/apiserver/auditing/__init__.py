"""MOVED."""

from mooring.apiserver.audit import DEFAULT_POLICY as DEFAULT_POLICY  # noqa
from mooring.apiserver.audit import AuditPolicyError as PolicyError  # noqa
from mooring.apiserver.audit import Rotation as Rotation  # noqa
from mooring.apiserver.audit import read_policy as read_policy  # noqa

__all__ = ["DEFAULT_POLICY", "PolicyError", "Rotation", "read_policy"]  # noqa
