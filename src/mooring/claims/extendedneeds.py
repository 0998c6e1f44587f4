"""MOVED."""

from mooring.claims.extended_resources import ExtendedNeeds as Needs

__all__ = ["Needs"]
