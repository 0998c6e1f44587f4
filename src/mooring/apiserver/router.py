"""MOVED."""

from mooring.apiserver.http.router import Router as Router  # noqa

__all__ = ["Router"]  # noqa
