"""MOVED."""

from mooring.insight.devices.model import HeldDevice as Held  # noqa
from mooring.insight.devices.model import Holder as Holder  # noqa
from mooring.insight.devices.model import AppliedTaint as Mark  # noqa
from mooring.insight.devices.model import UnavailableReason as Reason  # noqa
from mooring.insight.devices.model import RequestSummary as Wanted  # noqa

__all__ = ["Held", "Holder", "Mark", "Reason", "Wanted"]  # noqa
