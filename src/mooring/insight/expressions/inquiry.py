"""MOVED."""

from mooring.insight.expressions.evaluation import DeviceResult as Answer  # noqa
from mooring.insight.expressions.evaluation import MatchOutcome as Outcome  # noqa
from mooring.insight.expressions.evaluation import InvalidExpression as Refusal  # noqa
from mooring.insight.expressions.evaluation import compiler_for as compiler_for  # noqa
from mooring.insight.expressions.evaluation import evaluator_of as inquire  # noqa

__all__ = ["Answer", "Outcome", "Refusal", "compiler_for", "inquire"]  # noqa
