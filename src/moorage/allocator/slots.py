"""Slots: the subrequests of a problem, each with the devices that it may get on the node.

The search fills a slot with `count` devices. Slots of requests that are alike have the same rules.
"""

from __future__ import annotations

from collections.abc import Mapping

from moorage.allocator.pools import bits
from moorage.allocator.requests import SubRequest
from moorage.allocator.rules.base import NarrowingRule, Rule
from moorage.allocator.rules.constraints import Constraint, DerivedTable
from moorage.allocator.static_rules import StaticCandidates


class Slot:
    """A subrequest on one node."""

    __slots__ = (
        "candidates",
        "consumed",
        "count",
        "faults",
        "is_lazy",
        "is_reached",
        "is_risky",
        "listed",
        "open",
        "request",
        "requirements_id",
        "rules",
        "static",
        "sure",
        "takes",
        "unsure",
    )

    def __init__(
        self,
        request: SubRequest,
        requirements_id: int,
        static: StaticCandidates,
        takes: Mapping[int, int],
    ) -> None:
        self.request = request
        self.requirements_id = requirements_id  # the same for equal requirements
        self.static = static
        self.candidates = static.usable
        self.open = static.open
        self.consumed = static.consumed
        self.faults = static.faults
        self.takes = takes  # how much a pick consumes of the device's capacity, packed
        self.listed: tuple[int, ...] | None = None  # all selected devices, for allocation mode All
        self.count = request.count
        self.rules: tuple[Rule, ...] = ()  # all, in the order of their checks
        self.sure: tuple[NarrowingRule, ...] = ()  # those whose `narrow` is exact
        self.unsure: tuple[Rule, ...] = ()  # the others
        self.is_risky = False  # whether searching it may raise an error
        self.is_lazy = False
        self.is_reached = False  # by a search, while it was lazy
        if request.wants_all:
            self.listed = tuple(bits(static.selectable))
            self.count = len(self.listed)

    def judge(self, wanted: int) -> None:
        """Judge the devices among these that are open; may raise Interrupted."""
        self.static.judge(wanted)
        self.candidates = self.static.usable
        self.open = self.static.open

    def is_model_for(self, request: SubRequest) -> bool:
        """Return whether the slot of a request with equal requirements differs in its count only.

        A slot that learns about its devices while it is searched is nobody's model.
        """
        is_simple = not self.is_lazy and self.listed is None and not request.wants_all
        return is_simple and request.derived == self.request.derived

    def for_request(self, request: SubRequest) -> Slot:
        """Return the slot of another request, for which this one is a model."""
        slot = Slot(request, self.requirements_id, self.static, self.takes)
        slot.consumed = self.consumed
        slot.rules = self.rules
        slot.sure = self.sure
        slot.unsure = self.unsure
        slot.is_risky = self.is_risky
        return slot

    @property
    def derived(self) -> list[DerivedTable]:
        """The derived attributes that constraints compare."""
        constraints = [rule for rule in self.rules if isinstance(rule, Constraint)]
        tables = [rule.tables[self.request] for rule in constraints]
        return [table for table in tables if isinstance(table, DerivedTable)]
