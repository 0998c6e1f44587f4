"""MOVED."""
from mooring.insight.devices.model import Held as Held  # noqa
from mooring.insight.devices.model import Holder as Holder  # noqa
from mooring.insight.devices.model import Mark as Mark  # noqa
from mooring.insight.devices.model import Reason as Reason  # noqa
from mooring.insight.devices.model import Wanted as Wanted  # noqa
__all__ = ["Held", "Holder", "Mark", "Reason", "Wanted"]  # noqa
