"""Objects with their shapes: is one valid, what is in it, what changed, merged, taken away."""

from __future__ import annotations

from mooring.apiserver.patching.structured.comparing import Comparison, compare
from mooring.apiserver.patching.structured.fields import fields_of
from mooring.apiserver.patching.structured.merging import merge
from mooring.apiserver.patching.structured.removing import remove
from mooring.apiserver.patching.structured.validating import ShapeError, check

__all__ = ["Comparison", "ShapeError", "check", "compare", "fields_of", "merge", "remove"]
