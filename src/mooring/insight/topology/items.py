"""Devices as the picture has them, from what is known of who has what.

An old device that a newer generation of its pool has, too, is left out: it is drawn once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from mooring.insight.devices import DeviceHolding, State
from mooring.insight.devices.places import Place as Reach
from mooring.insight.devices.places import only_node, selector_text
from mooring.insight.topology.model import Item, Use
from mooring.insight.topology.owners import Hold, Owners
from mooring.insight.topology.places import place_of

ALL_NODES = "all nodes"
NO_NODES = "no nodes"
NOT_PUBLISHED = "held, but published by no slice"


class Site(NamedTuple):
    """Where devices are: on one node by name, or for several in words."""

    node: str = ""
    several: str = ""


def items_by_site(devices: Iterable[DeviceHolding], owners: Owners) -> dict[Site, list[Item]]:
    """Return the devices by where they are; one that a site has twice is there once."""
    found: defaultdict[Site, dict[tuple[str, str, str], Item]] = defaultdict(dict)
    sites: dict[Reach, Site] = {}
    for holding in devices:
        if holding.is_replaced:
            continue
        site = sites.get(holding.place)
        if site is None:
            site = sites[holding.place] = _site(holding.place)
        if holding.state is State.MISSING:
            site = Site(several=NOT_PUBLISHED)
        if holding.id not in found[site]:
            found[site][holding.id] = _item(holding, owners)
    return {site: list(items.values()) for site, items in found.items()}


def _site(reach: Reach) -> Site:
    if reach.node:
        return Site(node=reach.node)
    if reach.all_nodes:
        return Site(several=ALL_NODES)
    if reach.selector is None or not reach.selector.node_selector_terms:
        return Site(several=NO_NODES)
    if name := only_node(reach.selector):
        return Site(node=name)
    return Site(several=f"nodes with {selector_text(reach.selector)}")


def _item(holding: DeviceHolding, owners: Owners) -> Item:
    device = holding.device
    holds = owners.holds(holding)
    shortages = [reason for reason in holding.reasons if reason.state is State.BLOCKED]
    if holding.state is not State.BLOCKED:
        shortages = []
    users = (user for reason in shortages for user in reason.users)
    return Item(
        *holding.id,
        state=holding.state,
        place=place_of(device, holding.id.driver),
        holds=holds,
        admins=owners.of(holder.claim for holder in holding.admins),
        uses=tuple(_uses(holding, holds)),
        is_shareable=bool(device.allow_multiple_allocations),
        counter_sets=tuple(sorted({each.counter_set for each in device.consumes_counters})),
        shortages=tuple(reason.text for reason in shortages),
        blocked_by=owners.of(claim for user in users for claim in user.claims),
        taints=tuple(sorted(set(map(str, holding.marks)))),
        problem=_problem(holding),
        conflict=holding.conflict,
    )


def _problem(holding: DeviceHolding) -> str:
    """Return why nobody gets a device, whatever is given back."""
    lost = (State.UNUSABLE, State.MISSING)
    return next((reason.text for reason in holding.reasons if reason.state in lost), "")


def _uses(holding: DeviceHolding, holds: Iterable[Hold]) -> Iterator[Use]:
    for room in holding.rooms:
        shares = ((hold.owner, hold.consumed.get(room.name)) for hold in holds)
        taken = tuple((owner, amount) for owner, amount in shares if amount is not None)
        yield Use(room.name, room.total, taken)
