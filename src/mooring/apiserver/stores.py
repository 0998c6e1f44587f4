"""MOVED."""

from mooring.apiserver.storage.store import open_store as open_store  # noqa

__all__ = ["open_store"]  # noqa
