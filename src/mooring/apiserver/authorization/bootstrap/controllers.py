"""MOVED."""

from mooring.apiserver.auth.bootstrap_component_roles import CONTROLLER_PREFIX as PREFIX  # noqa
from mooring.apiserver.auth.bootstrap_component_roles import CONTROLLER_ROLES as ROLES  # noqa

__all__ = ["PREFIX", "ROLES"]  # noqa
