"""MOVED."""
from mooring.insight.whatif.taint_evictions import TaintEviction as Leaving  # noqa
from mooring.insight.whatif.taint_evictions import RulePreview as Preview  # noqa
__all__ = ["Leaving", "Preview"]  # noqa
