"""MOVED."""

from mooring.insight.snapshot.builder import SnapshotBuilder as Intake  # noqa

__all__ = ["Intake"]  # noqa
