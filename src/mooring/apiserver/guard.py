"""MOVED."""

from mooring.apiserver.auth.authorizer import ClusterAuthorizer as Guard  # noqa

__all__ = ["Guard"]  # noqa
