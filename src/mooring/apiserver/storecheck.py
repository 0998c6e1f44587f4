"""MOVED."""

from mooring.apiserver.storage.store import object_faults as object_faults  # noqa

__all__ = ["object_faults"]  # noqa
