"""MOVED."""

from mooring.scheduler.diagnosis import FitDiagnosis as Survey  # noqa

__all__ = ["Survey"]  # noqa
