"""MOVED."""

from mooring.scheduler.plugins.claim_needs import AllocatedNeed as Held  # noqa
from mooring.scheduler.framework import DYNAMIC_RESOURCES as PLUGIN  # noqa

__all__ = ["Held", "PLUGIN"]  # noqa
