"""MOVED."""
from mooring.insight.devices import ClaimHolding as ClaimHolding  # noqa
from mooring.insight.devices import ClaimState as ClaimState  # noqa
from mooring.insight.devices import DeviceHolding as DeviceHolding  # noqa
from mooring.insight.devices import Holdings as Holdings  # noqa
from mooring.insight.devices import State as State  # noqa
from mooring.insight.devices import holdings_in as holdings_in  # noqa
__all__ = ["ClaimHolding", "ClaimState", "DeviceHolding", "Holdings", "State", "holdings_in"]  # noqa
