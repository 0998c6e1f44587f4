"""MOVED."""

from mooring.apiserver.auth.authenticator import Authenticator as Authenticator  # noqa

__all__ = ["Authenticator"]  # noqa
