"""MOVED."""

from mooring.insight.snapshot.consistency import check_consistency as check_consistency  # noqa

__all__ = ["check_consistency"]  # noqa
