"""MOVED."""

from mooring.insight.expressions.evaluation import Selected as Selected  # noqa
from mooring.insight.expressions.evaluation import selected_by_class as selected_by_class  # noqa
from mooring.insight.expressions.evaluation import selected_by_expression as selected_by_expression  # noqa

__all__ = ["Selected", "selected_by_class", "selected_by_expression"]  # noqa
