"""Who has what: the devices of a cluster with their states, and its claims.

snapshot ─► holdings_of ─► Holdings: devices, claims ─► count, selected

model      what is told of a device and of a claim
places     for which nodes a device is
judging    what the allocator says of each device
shortage   who has what a blocked device needs
devices, claims   all of that together
counting   how many are in which state
selecting  the devices that a class or an expression means
"""

from __future__ import annotations

from mooring.allocator.features import ALL_FEATURES, Features
from mooring.allocator.ledger import Ledger
from mooring.allocator.taintrules import TaintRules
from mooring.api.gates import Gate
from mooring.cel.device import DeviceCompiler
from mooring.cel.device import Features as CelFeatures
from mooring.insight.devices.claims import ClaimBook, holder_index
from mooring.insight.devices.devices import DeviceBook
from mooring.insight.devices.model import ClaimHolding, ClaimState, DeviceHolding, Holdings, State
from mooring.insight.snapshot.snapshot import Snapshot
from mooring.validation.context import Context

__all__ = [
    "ClaimHolding",
    "ClaimState",
    "DeviceHolding",
    "Holdings",
    "State",
    "holdings_in",
    "holdings_of",
]


def holdings_in(snapshot: Snapshot, context: Context) -> Holdings:
    """Return who has what, and what is free, with the gates of a context."""
    return holdings_of(
        snapshot,
        Features.of(context.gates),
        with_taint_rules=context.gates.enabled(Gate.DRA_DEVICE_TAINT_RULES),
        extensions=context.extensions,
    )


def holdings_of(
    snapshot: Snapshot,
    features: Features = ALL_FEATURES,
    *,
    with_taint_rules: bool = True,
    extensions: bool = True,
) -> Holdings:
    """Return who has what, and what is free; `extensions` are about what taint rules may say."""
    ledger = Ledger(shares_are_whole=not features.consumable_capacity)
    for claim in snapshot.claims:
        ledger.put(claim)
    rules = TaintRules(DeviceCompiler(CelFeatures(list_attributes=True), extensions=extensions))
    if with_taint_rules:
        for device_class in snapshot.classes:
            rules.put_class(device_class)
        for rule in snapshot.taint_rules:
            rules.put(rule)
    book = DeviceBook(
        snapshot.slices,
        snapshot.nodes,
        ledger=ledger,
        holders=holder_index(snapshot.claims),
        features=features,
        rules=rules,
    )
    devices = tuple(sorted(book.devices(), key=lambda each: (each.id, each.slice_name)))
    claims = tuple(ClaimBook(snapshot, devices).claims())
    return Holdings(devices, claims, book.nodes.are_known)
