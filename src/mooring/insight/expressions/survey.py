"""MOVED."""

from mooring.insight.expressions.evaluation import Explained as Explained  # noqa
from mooring.insight.expressions.evaluation import EvaluationReport as Survey  # noqa
from mooring.insight.expressions.evaluation import condensed as condensed  # noqa

__all__ = ["Explained", "Survey", "condensed"]  # noqa
