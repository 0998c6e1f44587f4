"""MOVED."""

from mooring.claims.taint_evictions import CONDITION as CONDITION
from mooring.claims.taint_evictions import EvictionCounts as Counts
from mooring.claims.taint_evictions import as_evicting as as_evicting
from mooring.claims.taint_evictions import counts_of as counts_of
from mooring.claims.taint_evictions import rule_status as rule_status

__all__ = ["CONDITION", "Counts", "as_evicting", "counts_of", "rule_status"]
