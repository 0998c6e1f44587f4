"""Static rules: which devices of a node some requirements admit, whatever is allocated.

Kubernetes asks a device for its class's selectors, the request's selectors, its node selection and
its capacity, in this order, when the search reaches it. Errors count in the same order.

    # judged: all static rules have answered for the device
    # open: it is not judged yet, because its next selector is expensive
    # selectable: the device is selected, for this node, and large enough
    # usable: nothing else about the device or the node hinders it, either

Up to the first expensive selector all devices are asked at once. From there on a device is judged
when the search reaches it, so a device that it does not reach costs nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from moorage.allocator.pools import bits
from moorage.api.quantity import Quantity

if TYPE_CHECKING:
    from moorage.allocator.node_view import NodeView
    from moorage.allocator.pool_facts import FittingDevices
    from moorage.allocator.requests import Requirements

Stage = str  # "class", "request", "node" or "capacity"
Selector = tuple[Stage, int, str]  # a selector: its number in its stage, and its expression

NOTHING: Mapping[int, Mapping[str, Quantity]] = {}


class StaticFault(NamedTuple):
    """Why a static rule fails for a device; it only counts if the search reaches the device."""

    stage: Stage
    text: str
    selector: int = 0  # which one, of a stage that has several
    is_compile: bool = False


NO_MATCHES: tuple[int, dict[int, str]] = (0, {})


class StaticCandidates:
    """The devices that the static rules admit for some requirements, as far as they were judged."""

    __slots__ = (
        "_by_device",
        "_fitting",
        "_matches",
        "_offsets",
        "_pools",
        "_rest",
        "_unhindered",
        "consumed",
        "faults",
        "open",
        "selectable",
        "usable",
    )

    def __init__(self, view: NodeView, requirements: Requirements) -> None:
        # The view caches these candidates, so they have parts of it, and not the view.
        self._pools, self._offsets = view.pools, view.offsets
        self._by_device = view.by_device
        self._matches = view.node_matches if view.by_device else NO_MATCHES
        self.selectable = 0
        self.usable = 0
        self.open = 0
        self.faults: dict[int, StaticFault] = {}
        self.consumed: Mapping[int, Mapping[str, Quantity]] = NOTHING  # of shareable devices
        self._unhindered = _unhindered(view, requirements)
        self._fitting: FittingDevices | None = None
        if view.features.consumable_capacity:
            self._fitting = view.fitting(requirements.amounts)
            self.consumed = self._fitting.consumed
        selectors = _selectors(requirements)
        cheap = 0
        while cheap < len(selectors) and view.is_cheap(selectors[cheap][2]):
            cheap += 1
        yes = view.all
        if not view.features.device_binding_and_status:
            yes &= ~view.waiting
        yes = self._select(yes, selectors[:cheap])
        self._rest = selectors[cheap:]
        if self._rest:
            self.open = yes
        else:
            self._admit(yes)

    def judge(self, wanted: int) -> None:
        """Judge the devices among these that are open; an interruption leaves the others open."""
        if not wanted & self.open:
            return
        for position in bits(wanted & self.open):
            bit = 1 << position
            self._admit(self._select(bit, self._rest))
            self.open ^= bit

    def _select(self, yes: int, selectors: tuple[Selector, ...]) -> int:
        """Return which devices all selectors select; each is asked of those left before it."""
        for stage, number, expression in selectors:
            matching = 0
            for facts, offset in zip(self._pools, self._offsets, strict=True):
                asked = yes >> offset & facts.all
                if not asked:
                    continue
                answers = facts.selector(expression)
                answers.ask(asked)
                matching |= (answers.yes & asked) << offset
                if answers.faulty & asked:
                    is_compile = answers.compiled.error is not None
                    for position in bits(answers.faulty & asked):
                        text = answers.faults[position]
                        self.faults[position + offset] = StaticFault(
                            stage, text, number, is_compile
                        )
            yes = matching
        return yes

    def _admit(self, yes: int) -> None:
        """Take in selected devices that are for this node and large enough."""
        if self._by_device & yes:
            matching, unreadable = self._matches
            for position in bits(yes & self._by_device):
                if position in unreadable:
                    self.faults[position] = StaticFault("node", unreadable[position])
            yes &= matching | ~self._by_device
        if self._fitting is not None:
            enough = self._fitting.yes
            for position, text in self._fitting.faults.items():
                if yes >> position & 1:
                    self.faults[position] = StaticFault("capacity", text)
            yes &= enough
        self.selectable |= yes
        self.usable |= yes & self._unhindered


def _selectors(requirements: Requirements) -> tuple[Selector, ...]:
    """Return all selectors, in the order in which a device is asked for them."""
    return (
        *[("class", n, each) for n, each in enumerate(requirements.class_selectors)],
        *[("request", n, each) for n, each in enumerate(requirements.selectors)],
    )


def _unhindered(view: NodeView, requirements: Requirements) -> int:
    """Return the devices that a request may use if it selects them."""
    usable = view.all
    if not view.features.partitionable_devices:
        usable &= ~view.consumers
    if not view.can_skip_operations:
        usable &= ~view.skipping
    if view.features.device_taints:
        usable &= view.tolerated(requirements.tolerations)
    return usable
