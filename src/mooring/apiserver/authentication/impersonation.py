"""MOVED."""

from mooring.apiserver.auth.authenticator import impersonated as impersonated  # noqa

__all__ = ["impersonated"]  # noqa
