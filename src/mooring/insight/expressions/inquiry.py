"""MOVED."""

from mooring.insight.expressions.evaluation import Answer as Answer  # noqa
from mooring.insight.expressions.evaluation import Outcome as Outcome  # noqa
from mooring.insight.expressions.evaluation import Refusal as Refusal  # noqa
from mooring.insight.expressions.evaluation import compiler_for as compiler_for  # noqa
from mooring.insight.expressions.evaluation import inquire as inquire  # noqa

__all__ = ["Answer", "Outcome", "Refusal", "compiler_for", "inquire"]  # noqa
