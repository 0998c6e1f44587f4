"""MOVED."""

from mooring.insight.explain.pods import DiagnosisTimeLimit as Patience  # noqa

__all__ = ["Patience"]  # noqa
