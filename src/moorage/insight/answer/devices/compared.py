"""What a constraint compares: for each of its requests, the devices and their values.

# fitting: devices of the node that a request could get, as far as it alone decides
# set aside: devices that its selectors choose, but that are in use, tainted or too small
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from moorage.allocator.errors import AllocationError
from moorage.allocator.pools import bits
from moorage.allocator.requests import plan_of
from moorage.api.resource.v1 import DeviceConstraint
from moorage.api.semver import Version
from moorage.cel.device import DeviceCompiler
from moorage.cel.lang.interpretable import Failure
from moorage.insight.answer.devices.shortages import DeviceCase
from moorage.insight.explain.funnel import FITTING, SELECTED, devices_left
from moorage.insight.explain.situation import DropConstraint, RequestPath
from moorage.insight.expressions.derived_repairs import derived_value, stored_evaluator
from moorage.insight.expressions.evaluation import ExpressionEvaluator
from moorage.insight.expressions.published_devices import PublishedDevice, PublishedDevices
from moorage.insight.messages import most_frequent_first, type_name

Element = tuple[str, Any]  # a value with its type: an int never matches a string
MISSING: Final = None
Values = Mapping[int, Any]  # by the index of a device; not those that have none


class ComparedRequest(NamedTuple):
    """A request, or an alternative, that a constraint is about."""

    place: RequestPath
    name: str
    wanted: int
    expression: str | None  # that derives the attribute
    fitting: tuple[PublishedDevice, ...]
    set_aside: tuple[PublishedDevice, ...]
    values: Values
    faults: Mapping[int, str]  # why there is no value

    @property
    def known(self) -> list[Any]:
        """The values of the devices that fit."""
        return [self.values[d.index] for d in self.fitting if d.index in self.values]

    @property
    def is_lacking(self) -> bool:
        """Whether none of its devices has the attribute."""
        return bool(self.fitting) and not self.known and not self.faults

    @property
    def types(self) -> list[str]:
        """The types of the values, the most frequent first."""
        return [name for name, _ in most_frequent_first(Counter(map(type_name, self.known)))]

    def with_values(self, values: Values) -> ComparedRequest:
        """Return the request with other values of its devices."""
        return self._replace(values=values, faults={})


class Compared(NamedTuple):
    """A constraint in conflict, and what it compares."""

    member: DropConstraint
    constraint: DeviceConstraint
    requests: tuple[ComparedRequest, ...]
    has_lists: bool

    @property
    def is_match(self) -> bool:
        """Whether values must match; otherwise they must be distinct."""
        return self.constraint.match_attribute is not None

    @property
    def field(self) -> str:
        """The field of the constraint that names the attribute."""
        return "matchAttribute" if self.is_match else "distinctAttribute"

    @property
    def attribute(self) -> str:
        """The name of the attribute."""
        return self.constraint.match_attribute or self.constraint.distinct_attribute or ""

    @property
    def lacking(self) -> list[ComparedRequest]:
        """The requests none of whose devices has the attribute, whichever alternative is taken."""
        groups: dict[int, list[ComparedRequest]] = {}
        for each in self.requests:
            groups.setdefault(each.place.request, []).append(each)
        return [
            each
            for group in groups.values()
            if all(one.is_lacking for one in group)
            for each in group
        ]

    def can_hold(self) -> bool:
        """Return whether devices could satisfy the constraint if it were the only one."""
        if self.is_match:
            return not self.lacking and can_meet(self.requests, has_lists=self.has_lists)
        wanted = sum(each.wanted for each in self.requests)
        values = distinct_values(self.requests, has_lists=self.has_lists)
        return not self.lacking and wanted <= len(values)


def compared(case: DeviceCase, member: DropConstraint) -> Compared | None:
    """Return what a constraint compares on the node; None if requests cannot be read."""
    situation = case.diagnosis.situation
    inventory = case.case.cluster.inventory
    plan = plan_of(situation.claims, features=situation.features, classes=inventory.device_class)
    try:
        problem = inventory.problem(situation.node, plan)
        left = devices_left(problem)
    except AllocationError:
        return None
    constraint = situation.claims[member.claim].spec.devices.constraints[member.constraint]
    attribute = constraint.match_attribute or constraint.distinct_attribute or ""
    here = PublishedDevices(situation.slices, names=case.case.context.extensions)
    by_name = {str(device): device for device in here.devices}
    places = {(p.claim, situation.request_name(p)): p for p, _ in situation.requests()}
    found = []
    for subrequest, masks in left.items():
        if subrequest.claim != member.claim or member.constraint not in subrequest.constraints:
            continue
        fitting, selected = (
            tuple(filter(None, (by_name.get(problem.view.device_id(p)) for p in bits(mask))))
            for mask in (masks[FITTING], masks[SELECTED])
        )
        expression = subrequest.derived.get(attribute)
        values, faults = _values(selected, attribute, expression, case.compiler)
        found.append(
            ComparedRequest(
                places[subrequest.claim, subrequest.full_name],
                subrequest.full_name,
                subrequest.count or max(1, len(selected)),
                expression,
                fitting,
                tuple(each for each in selected if each not in fitting),
                values,
                faults,
            )
        )
    has_lists = situation.features.list_type_attributes
    return Compared(member, constraint, tuple(found), has_lists)


def _values(
    devices: Iterable[PublishedDevice],
    attribute: str,
    expression: str | None,
    compiler: DeviceCompiler,
) -> tuple[Values, Mapping[int, str]]:
    if expression is None:
        return published_values(devices, attribute), {}
    evaluator = stored_evaluator(expression, compiler)
    if evaluator is None:
        return {}, {device.index: "does not compile" for device in devices}
    return derived_values(devices, evaluator)


def published_values(devices: Iterable[PublishedDevice], attribute: str) -> Values:
    """Return the values of an attribute that devices have."""
    domain, _, name = attribute.partition("/")
    found = {}
    for device in devices:
        if device.variables is not None:
            value = device.variables["device"]["attributes"].get(domain, {}).get(name, MISSING)
            if value is not MISSING and value != ():
                found[device.index] = value
    return found


def derived_values(
    devices: Iterable[PublishedDevice], evaluator: ExpressionEvaluator
) -> tuple[Values, Mapping[int, str]]:
    """Return the values that an expression gives, and the errors; an empty list is no value."""
    values: dict[int, Any] = {}
    faults: dict[int, str] = {}
    for device in devices:
        value = derived_value(evaluator, device)
        if isinstance(value, Failure):
            faults[device.index] = value.message
        elif value != ():
            values[device.index] = value
    return values, faults


# --- what can match -------------------------------------------------------------------------


def elements(value: Any, *, has_lists: bool) -> tuple[Element, ...]:
    """Return the values that others can match; a list has several, or none if lists are off."""
    if isinstance(value, list | tuple):
        inner = value if has_lists else ()
        return tuple(each for one in inner for each in elements(one, has_lists=True))
    return ((type_name(value), str(value) if isinstance(value, Version) else value),)


def holders(request: ComparedRequest, *, has_lists: bool) -> Counter[Element]:
    """Return how many fitting devices of a request have each value."""
    return Counter(
        element
        for value in request.known
        for element in dict.fromkeys(elements(value, has_lists=has_lists))
    )


def common(requests: Sequence[ComparedRequest], *, has_lists: bool) -> set[Element]:
    """Return the values that some device of each request has."""
    found = [set(holders(each, has_lists=has_lists)) for each in requests]
    return set.intersection(*found) if found else set()


def can_meet(requests: Sequence[ComparedRequest], *, has_lists: bool) -> bool:
    """Return whether one value has enough devices for each request, by counting.

    Of alternatives one is enough.
    """
    groups: dict[int, list[tuple[int, Counter[Element]]]] = {}
    for each in requests:
        counts = (each.wanted, holders(each, has_lists=has_lists))
        groups.setdefault(each.place.request, []).append(counts)
    known = {e for group in groups.values() for _, counts in group for e in counts}
    return any(
        all(any(counts[element] >= wanted for wanted, counts in g) for g in groups.values())
        for element in known
    )


def distinct_values(requests: Iterable[ComparedRequest], *, has_lists: bool) -> list[Element]:
    """Return all values of all requests, in the order of the devices."""
    return list(
        dict.fromkeys(
            element
            for each in requests
            for value in each.known
            for element in elements(value, has_lists=has_lists)
        )
    )


def drivers_of(request: ComparedRequest) -> list[str]:
    """Return the drivers of the devices that fit a request."""
    return list(dict.fromkeys(device.driver for device in request.fitting))
