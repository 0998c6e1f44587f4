"""MOVED."""

from mooring.insight.messages import counted as counted  # noqa
from mooring.insight.expressions.syntax import shown as shown  # noqa
from mooring.insight.expressions.syntax import shown_cost as shown_cost  # noqa

__all__ = ["counted", "shown", "shown_cost"]  # noqa
