"""MOVED."""

from mooring.claims.taint_evictions import Eviction as Eviction  # noqa
from mooring.claims.taint_evictions import LATEST as LATEST
from mooring.claims.taint_evictions import MarkedDevices as MarkedDevices
from mooring.claims.taint_evictions import Means as Means
from mooring.claims.taint_evictions import find_evictions as find_evictions

__all__ = ["Eviction", "LATEST", "MarkedDevices", "Means", "find_evictions"]  # noqa
