"""MOVED."""

from mooring.insight.errors import ArchiveError as ArchiveError  # noqa

__all__ = ["ArchiveError"]  # noqa
