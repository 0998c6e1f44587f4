"""Rules that compare devices with each other: the constraints of a claim, and compatibility groups.

# element: one value of an attribute, which equals another only if the types are the same: a text
#     or an int is itself, others have their type beside them; a list has several
# known: the devices that have the attribute, with a value that can be compared
# only_first: devices whose value equals no other; a constraint takes one as its first only
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, cast

from moorage.allocator.errors import AllocationError
from moorage.allocator.pools import Pool, bits
from moorage.allocator.rules.base import NarrowingRule, Rule, State, States
from moorage.api.resource.v1 import Device, DeviceAttribute

if TYPE_CHECKING:
    from moorage.allocator.answers import DerivedAnswers
    from moorage.allocator.node_view import NodeView
    from moorage.allocator.problem import Slot
    from moorage.allocator.requests import SubRequest


Element = str | int | tuple[str, bool | str]
ANY: tuple[Element, ...] = (("any", ""),)  # not a value of any attribute
TABLES_MAX = 4096  # of published attributes that pools may share
SHORT_MAX = 4  # elements of a list that are taken in one by one


class Constraint(NarrowingRule):
    """A rule over an attribute of the devices of one claim."""

    is_constraint = True

    def __init__(
        self, index: int, attribute: str, tables: Mapping[SubRequest, AttributeTable]
    ) -> None:
        self.index = index
        self.attribute = attribute
        self.tables = tables  # by request: derived attributes are an request's own

    def take(self, states: States, slot: Slot, position: int) -> State | None:
        """Return the state after the pick; raise the error of an attribute without a value."""
        table = self.tables[slot.request]
        if isinstance(table, DerivedTable):
            table.ask(1 << position)
            if position in table.faults:
                raise AllocationError(table.faults[position])
        return super().take(states, slot, position)


class MatchAttribute(Constraint):
    """All devices have a value in common. State: the elements that all have; ANY: no device."""

    def __init__(
        self, index: int, attribute: str, tables: Mapping[SubRequest, AttributeTable]
    ) -> None:
        super().__init__(index, attribute, tables)
        self.start = ANY

    def narrow(self, states: States, slot: Slot, candidates: int) -> int:
        """Return the candidates that have one of the common elements."""
        table = self.tables[slot.request]
        common: tuple[Element, ...] = states[self.index]
        if common is ANY:
            return candidates & table.known
        fitting = 0
        for holders in filter(None, map(table.holders.get, common)):
            fitting |= holders
        return candidates & fitting

    def add(self, states: States, slot: Slot, position: int) -> tuple[Element, ...]:
        """Return the elements that the device has as well."""
        elements = self.tables[slot.request].elements[position]
        common: tuple[Element, ...] = states[self.index]
        if common is ANY or common == elements:
            return elements
        return tuple([element for element in common if element in elements])


# How many devices, their elements, and the devices with one of these in the table they came from.
Used = tuple[int, frozenset[Element], int]
NOTHING_USED: Used = (0, frozenset(), 0)


class DistinctAttribute(Constraint):
    """No two devices have a value in common."""

    def __init__(
        self, index: int, attribute: str, tables: Mapping[SubRequest, AttributeTable]
    ) -> None:
        super().__init__(index, attribute, tables)
        self.start = NOTHING_USED
        # The devices with an element are known from the start, unless they are asked one by one.
        self._has_one_table = len({id(table) for table in tables.values()}) == 1 and not any(
            table.is_lazy for table in tables.values()
        )

    def narrow(self, states: States, slot: Slot, candidates: int) -> int:
        """Return the candidates that have none of the elements."""
        table = self.tables[slot.request]
        used: Used = states[self.index]
        count, elements, holders = used
        candidates &= table.known
        if not count:
            return candidates
        if not self._has_one_table:
            holders = 0
            for element in elements:
                holders |= table.holders.get(element, 0)
        return candidates & ~(holders | table.only_first)

    def add(self, states: States, slot: Slot, position: int) -> Used:
        """Return the elements with those of the device."""
        table = self.tables[slot.request]
        count, used, holders = states[self.index]
        elements = table.elements[position]
        for element in elements:
            holders |= table.holders[element]
        return count + 1, used.union(elements), holders


class AttributeTable:
    """The values of one attribute; masks have the bits of devices' positions."""

    is_lazy = False  # whether devices are asked for the value when it is needed

    def __init__(self, *, with_lists: bool) -> None:
        self._with_lists = with_lists
        self.known = 0
        self.only_first = 0
        self.holders: dict[Element, int] = {}  # the devices that have an element
        self.elements: dict[int, tuple[Element, ...]] = {}  # by position
        self.faults: dict[int, str] = {}  # why there is no answer for a position

    def add(self, position: int, elements: tuple[Element, ...]) -> None:
        """Take in the elements of an attribute that a device has."""
        bit = 1 << position
        if not elements:
            if self._with_lists:
                return
            self.only_first |= bit
        self.known |= bit
        self.elements[position] = elements
        holders = self.holders
        if len(elements) > SHORT_MAX:
            new = dict.fromkeys(elements, bit)
            for element in holders.keys() & new.keys():
                new[element] |= holders[element]
            holders.update(new)
            return
        for element in elements:
            holders[element] = holders.get(element, 0) | bit

    def add_run(self, start: int, values: Sequence[tuple[Element, ...]]) -> None:
        """Take in the elements that devices in a row have: each has some, but few."""
        self.known |= (1 << len(values)) - 1 << start
        self.elements.update(enumerate(values, start))
        holders, bit = self.holders, 1 << start
        known = holders.get
        for elements in values:
            element = elements[0]
            holders[element] = known(element, 0) | bit
            for element in elements[1:] if len(elements) > 1 else ():
                holders[element] = known(element, 0) | bit
            bit <<= 1

    def add_table(self, table: AttributeTable, offset: int) -> None:
        """Take in the table of a pool whose devices begin at a position."""
        self.known |= table.known << offset
        self.only_first |= table.only_first << offset
        for element, mask in table.holders.items():
            self.holders[element] = self.holders.get(element, 0) | mask << offset
        for position, elements in table.elements.items():
            self.elements[position + offset] = elements


class PublishedTables:
    """Tables of published attributes; pools whose devices have the same values share one."""

    def __init__(self, *, with_lists: bool) -> None:
        self._with_lists = with_lists
        self._tables: dict[Hashable, AttributeTable] = {}

    def table(self, devices: Sequence[Device], driver: str, attribute: str) -> AttributeTable:
        """Return the table of devices, the first of which is at position 0."""
        name, short = _keys(driver, attribute)
        found = [device.attributes.get(name) or device.attributes.get(short) for device in devices]
        key = tuple([each and _content(each) for each in found])
        table = self._tables.get(key)
        if table is None:
            table = AttributeTable(with_lists=self._with_lists)
            for position, each in enumerate(found):
                if each is not None:
                    table.add(position, elements_of(each, with_lists=self._with_lists))
            if len(self._tables) >= TABLES_MAX:
                self._tables.clear()  # Those in use stay with their pools.
            self._tables[key] = table
        return table


def _content(attribute: DeviceAttribute) -> Hashable:
    """Return the content of an attribute; texts and ints, which most are, need no type."""
    if (
        attribute.string_values is None
        and attribute.int_values is None
        and attribute.bool_values is None
        and attribute.version_values is None
    ):
        if attribute.string_value is not None:
            return attribute.string_value
        if attribute.int_value is not None:
            return attribute.int_value
    return attribute


class DerivedTable(AttributeTable):
    """The values that an expression derives of the devices of a node, as far as they were asked."""

    is_lazy = True

    def __init__(self, attribute: str, expression: str, view: NodeView) -> None:
        super().__init__(with_lists=view.features.list_type_attributes)
        self.attribute = attribute
        self.asked = 0
        self.is_cheap = all(facts.derived(expression).is_cheap for facts in view.pools[:1])
        self._expression = expression
        # The view caches this table, so it has parts of it, and not the view.
        self._pools, self._offsets = view.pools, view.offsets

    def ask(self, wanted: int) -> None:
        """Ask the devices that were not asked before; may raise Interrupted."""
        missing = wanted & ~self.asked
        if not missing:
            return
        for facts, offset in zip(self._pools, self._offsets, strict=True):
            local = missing >> offset & facts.all
            if not local:
                continue
            answers = facts.derived(self._expression)
            answers.ask(local)
            self._take_in(facts.pool, bits(local), offset, answers)
            self.asked |= local << offset

    def _take_in(
        self, pool: Pool, places: Sequence[int], offset: int, answers: DerivedAnswers
    ) -> None:
        """Take in the values of a pool's devices; equal ones, which are few, are one object."""
        values = list(map(answers.values.__getitem__, places))
        elements: dict[int, tuple[Element, ...]] = {}
        for key, value in dict(zip(map(id, values), values, strict=True)).items():
            if not isinstance(value, str):
                elements[key] = elements_of(value, with_lists=self._with_lists)
        found = list(map(elements.get, map(id, values)))
        are_few = all(0 < len(each) <= SHORT_MAX for each in elements.values())
        if isinstance(places, range) and are_few and None not in found:
            self.add_run(places[0] + offset, cast("list[tuple[Element, ...]]", found))
            return
        is_compile = answers.compiled.error is not None
        for place, value, some in zip(places, values, found, strict=True):
            position = place + offset
            if isinstance(value, str):
                device = f"{pool.id}/{pool.devices[place].name}"
                self.faults[position] = self._fault(device, value, is_compile=is_compile)
            else:
                self.add(position, some or ())

    def _fault(self, device: str, text: str, *, is_compile: bool) -> str:
        if is_compile:
            return f"compile derived attribute {self.attribute} failed: {text}"
        where = f"attribute {self.attribute} on device {device}"
        return f"evaluate derived {where} failed: {text}"


def published(device: Device, driver: str, attribute: str) -> DeviceAttribute | None:
    """Return a device's own attribute of a qualified name; the driver's domain may be left out."""
    name, short = _keys(driver, attribute)
    return device.attributes.get(name) or device.attributes.get(short)


def _keys(driver: str, attribute: str) -> tuple[str, str]:
    """Return the names under which devices may publish an attribute; the first one counts."""
    domain, slash, short = attribute.partition("/")
    return attribute, short if slash and domain == driver else attribute


def elements_of(attribute: DeviceAttribute, *, with_lists: bool) -> tuple[Element, ...]:
    """Return the elements of an attribute; none if it has no value that can be compared."""
    if with_lists:
        if attribute.int_values:
            return _distinct(attribute.int_values)
        if attribute.bool_values:
            return _distinct([("bool", value) for value in attribute.bool_values])
        if attribute.string_values:
            return _distinct(attribute.string_values)
        if attribute.version_values:
            return _distinct([("version", value) for value in attribute.version_values])
    if attribute.string_value is not None:
        return (attribute.string_value,)
    if attribute.int_value is not None:
        return (attribute.int_value,)
    if attribute.bool_value is not None:
        return (("bool", attribute.bool_value),)
    if attribute.version_value is not None:
        return (("version", attribute.version_value),)
    return ()


def _distinct(values: Sequence[Element]) -> tuple[Element, ...]:
    return tuple(values) if len(values) == 1 else tuple(dict.fromkeys(values))


def typed(element: Element) -> tuple[str, int | bool | str]:
    """Return the type of an element, and its value."""
    if isinstance(element, tuple):
        return element
    return ("string" if isinstance(element, str) else "int"), element


SetKey = tuple[int, str]  # pool, counter set
Groups = frozenset[str]
NO_SETS: Mapping[SetKey, Groups] = {}
NO_GROUPS: Groups = frozenset([""])  # as if such devices were a group of their own


class CompatibilityRule(Rule):
    """Devices on one counter set need a group that all of them are in."""

    def __init__(
        self,
        index: int,
        *,
        baseline: Mapping[SetKey, Groups],
        groups: Mapping[int, Sequence[tuple[SetKey, Groups]]],
        shared: int,
    ) -> None:
        self.index = index
        self.start = NO_SETS
        self.baseline = baseline
        self.groups = groups  # by position
        self.shared = shared

    def take(self, states: States, slot: Slot, position: int) -> Mapping[SetKey, Groups] | None:  # noqa: ARG002
        """Return the groups that all devices are in then; None if there would be none."""
        current: Mapping[SetKey, Groups] = states[self.index]
        joined = self.groups.get(position)
        if joined is None or (self.shared | states[0][1]) >> position & 1:
            return current
        changed = dict(current)
        for key, groups in joined:
            before = changed.get(key) or self.baseline.get(key)
            if before is not None:
                groups = before & groups
                if not groups:
                    return None
            changed[key] = groups
        return changed


def compatibility_rule(view: NodeView) -> CompatibilityRule | None:
    """Return the rule for compatibility groups; None if no device has any."""
    taken = view.allocated
    baseline: dict[SetKey, Groups] = {}
    groups: dict[int, list[tuple[SetKey, Groups]]] = {}
    for number, (facts, offset) in enumerate(zip(view.pools, view.offsets, strict=True)):
        if not facts.has_groups:
            continue
        for device in taken.devices[number]:
            for consumption in device.consumes_counters:
                key = (number, consumption.counter_set)
                joining = frozenset(consumption.compatibility_groups) or NO_GROUPS
                baseline[key] = _common_groups(baseline.get(key), joining)
        for position, device in enumerate(facts.pool.devices, offset):
            if device.consumes_counters:
                groups[position] = [
                    (
                        (number, consumption.counter_set),
                        frozenset(consumption.compatibility_groups) or NO_GROUPS,
                    )
                    for consumption in device.consumes_counters
                ]
    if not groups:
        return None
    shared = taken.shared & view.shareable
    return CompatibilityRule(2, baseline=baseline, groups=groups, shared=shared)


def _common_groups(before: Groups | None, joining: Groups) -> Groups:
    """Return the groups of allocated devices; what contradicts itself stays as it was."""
    if before is None:
        return joining
    if NO_GROUPS in (before, joining):
        return before
    return before & joining
