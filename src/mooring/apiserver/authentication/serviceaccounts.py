"""MOVED."""

from mooring.apiserver.auth.service_account_tokens import Issuer as Issuer  # noqa

__all__ = ["Issuer"]  # noqa
