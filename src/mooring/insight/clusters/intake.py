"""MOVED."""
from mooring.insight.snapshot.intake import Intake as Intake  # noqa
__all__ = ["Intake"]  # noqa
