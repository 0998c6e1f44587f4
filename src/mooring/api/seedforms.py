"""MOVED."""
from mooring.api.kep_forms import RewrittenForm as Rewritten  # noqa
from mooring.api.kep_forms import rewrite as rewrite  # noqa
__all__ = ["Rewritten", "rewrite"]  # noqa
