"""MOVED."""

from mooring.insight.snapshot.snapshot import FIELDS as FIELDS  # noqa
from mooring.insight.snapshot.snapshot import Snapshot as Snapshot  # noqa

__all__ = ["FIELDS", "Snapshot"]  # noqa
