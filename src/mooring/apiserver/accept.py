"""MOVED."""

from mooring.apiserver.http.negotiation import read_accept as read_accept  # noqa

__all__ = ["read_accept"]  # noqa
