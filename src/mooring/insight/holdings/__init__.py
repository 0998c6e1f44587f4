"""MOVED."""

from mooring.insight.devices import ClaimUsage as ClaimHolding  # noqa
from mooring.insight.devices import ClaimState as ClaimState  # noqa
from mooring.insight.devices import DeviceUsage as DeviceHolding  # noqa
from mooring.insight.devices import ClusterUsage as Holdings  # noqa
from mooring.insight.devices import DeviceState as State  # noqa
from mooring.insight.devices import usage_in as holdings_in  # noqa

__all__ = ["ClaimHolding", "ClaimState", "DeviceHolding", "Holdings", "State", "holdings_in"]  # noqa
