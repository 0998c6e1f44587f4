"""MOVED."""

from mooring.apiserver.storage.registry import written as written  # noqa

__all__ = ["written"]  # noqa
