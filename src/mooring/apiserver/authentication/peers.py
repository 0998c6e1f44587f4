"""MOVED."""

from mooring.apiserver.auth.authenticator import certificate_user as user_of  # noqa

__all__ = ["user_of"]  # noqa
