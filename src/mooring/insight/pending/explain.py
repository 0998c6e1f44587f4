"""MOVED."""

from mooring.insight.explain.pods import Explanation as Explanation  # noqa
from mooring.insight.explain.pods import explain as explain  # noqa

__all__ = ["Explanation", "explain"]  # noqa
