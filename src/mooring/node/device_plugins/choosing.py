"""Which devices a container gets.

1. What it has already it keeps; how many it asks for cannot change.
2. Devices of init containers that will have ended come first: they are the pod's own.
3. The rest are free and healthy ones: those that the plugin prefers, then those it lists first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import NamedTuple

from mooring.api.core import Container, Pod
from mooring.node.device_plugins.inventory import Stock
from mooring.node.device_plugins.ledger import Allotment, Ledger


class Choice(NamedTuple):
    """Devices that are to be chosen."""

    size: int
    own: tuple[str, ...]  # chosen already
    free: tuple[str, ...]  # of which the others are

    @property
    def is_settled(self) -> bool:
        """Whether nothing is left to choose."""
        return len(self.own) == self.size


class Refusal(NamedTuple):
    """Why a container cannot have devices."""

    text: str
    is_final: bool = True  # False: the plugin may come back


def wanted(pod: Pod, container: Container) -> Iterator[tuple[str, int]]:
    """Yield what a container asks of device plugins, if there are such: resource and count.

    What claims serve is not asked of plugins, even where both could.
    """
    status = pod.status.extended_resource_claim_status
    mappings = () if status is None else status.request_mappings
    by_claims = {each.resource_name for each in mappings if each.container_name == container.name}
    for resource, quantity in container.resources.limits.items():
        if resource not in by_claims and quantity.value > 0:
            yield resource, quantity.value


def reusable(pod: Pod, container: Container, resource: str, ledger: Ledger) -> tuple[str, ...]:
    """Return the devices of earlier containers of a pod that a container may have after them."""
    found: dict[str, None] = {}  # a set that keeps its order
    ends_first = {each.name for each in pod.spec.init_containers if not each.is_sidecar}
    for each in (*pod.spec.init_containers, *pod.spec.containers):
        if each.name == container.name:
            break
        allotment = ledger.held(pod.metadata.uid, each.name, resource)
        for id_ in () if allotment is None else allotment.ids:
            if each.name in ends_first:
                found[id_] = None
            else:
                found.pop(id_, None)
    return tuple(found)


def check_size(held: Allotment, size: int) -> Refusal | None:
    """Return why a container cannot ask for so many when it has others, None if it can."""
    if len(held.ids) == size:
        return None
    who = f'pod "{held.pod_uid}" container "{held.container}"'
    was = f'resource "{held.resource}" from {len(held.ids)} to {size}'
    return Refusal(f"{who} changed request for {was}")


def check_health(held: Allotment, stock: Stock | None) -> Refusal | None:
    """Return why a container cannot begin with devices that it had, None if it can."""
    if stock is None:
        return Refusal(f"cannot allocate unregistered device {held.resource}", is_final=False)
    if not stock.usable:
        return Refusal(_unhealthy("no healthy devices present", held.resource), is_final=False)
    if not stock.usable.issuperset(held.ids):
        text = "previously allocated devices are no longer healthy"
        return Refusal(_unhealthy(text, held.resource))
    return None


def choose(
    resource: str, size: int, *, own: Sequence[str], stock: Stock | None, taken: frozenset[str]
) -> Choice | Refusal:
    """Return among which devices to choose."""
    if stock is None:
        return Refusal(f"cannot allocate unregistered device {resource}")
    if not stock.usable:
        return Refusal(_unhealthy("no healthy devices present", resource))
    mine = tuple(own[:size])
    needed = size - len(mine)
    usable = stock.usable - taken - set(mine)
    if len(usable) < needed:
        numbers = f"Requested: {needed}, Available: {len(usable)}"
        return Refusal(f"requested number of devices unavailable for {resource}. {numbers}")
    return Choice(size, mine, tuple(id_ for id_ in stock.devices if id_ in usable))


def settle(choice: Choice, preferred: Iterable[str] = ()) -> tuple[str, ...]:
    """Return the devices; what the plugin prefers and cannot be had is passed over."""
    wished = tuple(preferred)
    free = set(choice.free) if wished else ()
    found = dict.fromkeys(choice.own)  # a set that keeps its order
    for id_ in chain((each for each in wished if each in free), choice.free):
        if len(found) == choice.size:
            break
        found[id_] = None
    return tuple(found)


def _unhealthy(why: str, resource: str) -> str:
    return f"{why}; cannot allocate unhealthy devices {resource}"
