"""MOVED."""

from mooring.validation.pod.strategy import GATED_MESSAGE as GATED_MESSAGE
from mooring.validation.pod.strategy import GATED_REASON as GATED_REASON

__all__ = ["GATED_MESSAGE", "GATED_REASON"]
