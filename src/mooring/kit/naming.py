"""MOVED."""

from mooring.kit.generated_names import new_suffix as new_suffix
from mooring.kit.generated_names import new_uid as new_uid

__all__ = ["new_suffix", "new_uid"]
