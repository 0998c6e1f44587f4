"""MOVED."""

from mooring.apiserver.auth.users import User as User  # noqa

__all__ = ["User"]  # noqa
