"""MOVED."""

from mooring.claims.extended_resources import is_in_memory as is_in_memory
from mooring.claims.extended_resources import is_special_for as is_special_for

__all__ = ["is_in_memory", "is_special_for"]
