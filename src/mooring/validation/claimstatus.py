"""MOVED."""

from mooring.validation.resource_claim_status import RESERVED_FOR_MAX as RESERVED_FOR_MAX

__all__ = ["RESERVED_FOR_MAX"]
