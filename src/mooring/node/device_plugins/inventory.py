"""Which devices plugins say there are, and how many of them a node can offer.

# a plugin lists        capacity: all, allocatable: the healthy
# its stream ends       capacity stays, allocatable is 0
# five minutes later    the resource is gone
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from msgspec import Struct, structs

GRACE_S = 300.0  # for a plugin to come back


class PluginDevice(Struct, frozen=True, gc=False):
    """A device as its plugin lists it."""

    id: str
    is_healthy: bool = True
    numa_nodes: tuple[int, ...] = ()


class Amounts(NamedTuple):
    """How many devices a node has, and how many of them pods can have."""

    capacity: int
    allocatable: int


class Stock(Struct, frozen=True):
    """The devices of one resource."""

    devices: Mapping[str, PluginDevice]  # in the order of the plugin
    usable: frozenset[str] = frozenset()  # none while there is no plugin
    stopped_at_s: float | None = None

    @property
    def amounts(self) -> Amounts:
        """What the node says of it."""
        return Amounts(len(self.devices), len(self.usable))


class Inventory:
    """All resources of all plugins."""

    def __init__(self) -> None:
        self._stocks: dict[str, Stock] = {}

    def __contains__(self, resource: str) -> bool:
        return resource in self._stocks

    @property
    def names(self) -> tuple[str, ...]:
        """The resources that plugins brought."""
        return tuple(self._stocks)

    def stock(self, resource: str) -> Stock | None:
        """Return the devices of a resource, None if no plugin brought it."""
        return self._stocks.get(resource)

    def device(self, resource: str, id_: str) -> PluginDevice | None:
        """Return a device, None if no plugin lists it."""
        stock = self._stocks.get(resource)
        return None if stock is None else stock.devices.get(id_)

    def recall(self, resources: Iterable[str], now_s: float) -> None:
        """Know resources again of which no plugin has registered since the agent started."""
        for resource in resources:
            self._stocks.setdefault(resource, Stock({}, stopped_at_s=now_s))

    def start(self, resource: str) -> None:
        """A plugin is there; what it has it says by itself."""
        stock = self._stocks.get(resource)
        if stock is not None:
            self._stocks[resource] = structs.replace(stock, stopped_at_s=None)

    def report(self, resource: str, devices: Iterable[PluginDevice]) -> frozenset[str]:
        """Take what a plugin lists; return the devices whose health is another than before."""
        before = self._stocks.get(resource)
        old = {} if before is None else before.devices
        new = {each.id: each for each in devices}
        usable = frozenset(each.id for each in new.values() if each.is_healthy)
        self._stocks[resource] = Stock(new, usable)
        return frozenset(
            each.id
            for each in new.values()
            # One that was away may still be somebody's.
            if each.id not in old or old[each.id].is_healthy != each.is_healthy
        )

    def stop(self, resource: str, now_s: float) -> None:
        """The last plugin of a resource is gone: nobody new gets its devices."""
        stock = self._stocks.get(resource)
        if stock is not None:
            self._stocks[resource] = Stock(stock.devices, stopped_at_s=now_s)

    @property
    def expires_at_s(self) -> float | None:
        """When the next resource is to be forgotten, None if none is."""
        stops = [each.stopped_at_s for each in self._stocks.values()]
        return min((each + GRACE_S for each in stops if each is not None), default=None)

    def expire(self, now_s: float) -> tuple[str, ...]:
        """Forget the resources whose plugins have been gone for too long; return them."""
        gone = tuple(
            resource
            for resource, stock in self._stocks.items()
            if stock.stopped_at_s is not None and now_s - stock.stopped_at_s >= GRACE_S
        )
        for resource in gone:
            del self._stocks[resource]
        return gone

    def amounts(self) -> Mapping[str, Amounts]:
        """Return what the node has of each resource."""
        return {resource: stock.amounts for resource, stock in self._stocks.items()}
