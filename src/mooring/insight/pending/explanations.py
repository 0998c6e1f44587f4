"""MOVED."""

from mooring.insight.explain.report import explanation_lines as lines  # noqa
from mooring.insight.explain.report import name_of as name_of  # noqa
from mooring.insight.explain.report import placed_line as placed_line  # noqa
from mooring.insight.explain.report import explanation_tree as tree  # noqa

__all__ = ["lines", "name_of", "placed_line", "tree"]  # noqa
