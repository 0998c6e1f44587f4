"""MOVED."""
from mooring.insight.snapshot.tarstream import ArchiveError as ArchiveError  # noqa
__all__ = ["ArchiveError"]  # noqa
