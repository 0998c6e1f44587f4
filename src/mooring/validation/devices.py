"""MOVED."""

from mooring.validation.device_fields import EXPRESSION_MAX_BYTES as EXPRESSION_MAX_BYTES

__all__ = ["EXPRESSION_MAX_BYTES"]
