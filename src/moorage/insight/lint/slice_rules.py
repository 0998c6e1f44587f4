"""Rules about single slices: rejected fields, impossible amounts, and their nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

from moorage.allocator.errors import CapacityError
from moorage.allocator.rules.capacity import consumed_capacity
from moorage.api.core.placement import NodeSelector
from moorage.api.field_path import MapKey, Place
from moorage.api.gates import Gate
from moorage.api.quantity import Quantity
from moorage.api.resource.v1 import CapacityRequestPolicy, Device, DeviceCapacity
from moorage.insight.lint.pool_rules import pool_of, slice_of
from moorage.insight.lint.pools import DriverSightings, Sighting
from moorage.insight.lint.rule import SLICES, Case, E, N, Needs, Oddity, RuleTable, W
from moorage.insight.messages import counted, suggestion
from moorage.validation.registry import strategy_for

RULES = RuleTable(SLICES)

SPEC: Final = ("spec",)
NODE_ALLOCATABLE: Final = str(Gate.DRA_NODE_ALLOCATABLE_RESOURCES)

_ANY_NAME: Final = "capacity"  # the policy ignores its name


@RULES.add(E)
def refused_slice(case: Case) -> Iterator[Oddity]:
    """A slice that an API server refuses: limits, names, values."""
    errors = strategy_for(case.subject.kind).validate(slice_of(case), case.context.objects.context)
    alike = Counter(error.body for error in errors)
    for error in errors:
        number = alike.pop(error.body, 0)
        if number:  # The same error in many devices is reported once.
            more = f", here and in {counted(number - 1, 'other place')}" if number > 1 else ""
            message = f"an API server refuses it: {error.body}{more}"
            yield Oddity(error.path.segments, message, "correct it")


@RULES.add(W)
def odd_driver_name(case: Case) -> Iterator[Oddity]:
    """A driver's name with capitals."""
    driver = slice_of(case).spec.driver
    if driver != driver.lower():
        yield Oddity(
            (*SPEC, "driver"),
            f'capitals in "{driver}": constraints cannot name attributes in its domain',
            "write the driver's name in small letters",
        )


@RULES.add(E)
def breaks_expressions(case: Case) -> Iterator[Oddity]:
    """A device on which every expression fails."""
    slice_ = slice_of(case)
    if not case.context.unreadable or pool_of(case) is None or case.once(refused_slice):
        return  # A rejected device reaches no expression.
    broken = case.context.unreadable.get(slice_.metadata.name, ())
    places = {device.name: i for i, device in enumerate(slice_.spec.devices or ())}
    for device in broken:
        if device.name in places:
            yield Oddity(
                (*SPEC, "devices", places[device.name]),
                f"every expression fails on device {device.name}, and scheduling aborts when it "
                f"looks at it: {device.problem}",
                "correct the value, or leave it out",
            )


@RULES.add(W)
def capacity_never_fits(case: Case) -> Iterator[Oddity]:
    """A capacity that requests never get, because of its requestPolicy."""
    context = case.context.objects.context
    if not context.enabled(Gate.DRA_CONSUMABLE_CAPACITY):
        return
    fractional = context.enabled(Gate.DRA_FRACTIONAL_CAPACITY_RANGE)
    for place, device in _devices(case):
        for name, capacity in device.capacity.items():
            if capacity.request_policy is None and capacity.value.sign >= 0:
                continue
            fault = _capacity_fault(name, capacity, fractional=fractional)
            if fault is not None:
                yield Oddity(
                    (*place, "capacity", MapKey(name)),
                    f"device {device.name}: {fault}",
                    "correct the value, or the requestPolicy",
                )


def _capacity_fault(name: str, capacity: DeviceCapacity, *, fractional: bool) -> str | None:
    """Return why requests do not get the capacity, None if they do."""
    policy = capacity.request_policy or CapacityRequestPolicy()
    try:
        if _fits(None, capacity, fractional=fractional):
            return None
        least = None if policy.valid_range is None else policy.valid_range.min
        amounts = (capacity.value, *policy.valid_values, *(() if least is None else (least,)))
        is_given = any(_fits(amount, capacity, fractional=fractional) for amount in amounts)
    except CapacityError as fault:
        return f"scheduling aborts when it looks at {name}: {fault}"
    if not is_given:
        return f"no request ever gets any of {name}, of which there is {capacity.value}"
    return (
        f"a request that does not say how much of {name} it wants takes the default, "
        f"{policy.default}, which it never gets: there is {capacity.value}"
    )


def _fits(amount: Quantity | None, capacity: DeviceCapacity, *, fractional: bool) -> bool:
    """Whether a request for an amount, or for none in particular, can get it."""
    requests = {} if amount is None else {_ANY_NAME: amount}
    return consumed_capacity(requests, {_ANY_NAME: capacity}, fractional=fractional) is not None


@RULES.add(N)
def shared_without_limit(case: Case) -> Iterator[Oddity]:
    """A shareable device without any capacity."""
    seen = _driver_seen(case)
    found = None if seen is None else seen.boundless
    if found is not None and found.first.slice is slice_of(case):
        yield Oddity(
            (*SPEC, "devices", found.first.position, "allowMultipleAllocations"),
            f"any number of claims may share {_several(found)}: "
            "without a capacity nothing limits them",
            "give the device a capacity, if it should run out",
        )


@RULES.add(N)
def share_takes_all(case: Case) -> Iterator[Oddity]:
    """A shareable device of which a plain request takes everything."""
    seen = _driver_seen(case)
    for name, found in seen.greedy.items() if seen is not None else ():
        if found.first.slice is slice_of(case):
            yield Oddity(
                (*SPEC, "devices", found.first.position, "capacity", MapKey(name)),
                f"a request that does not say how much of {name} it wants takes all of it, "
                f"so that nobody else can share {_several(found)}",
                "set requestPolicy.default to what a plain request should take",
            )


def _driver_seen(case: Case) -> DriverSightings | None:
    return case.context.objects.sightings.drivers.get(slice_of(case).spec.driver)


def _several(found: Sighting) -> str:
    spec = found.first.slice.spec
    name = (spec.devices or ())[found.first.position].name
    more = f" and {counted(found.count - 1, 'other')} of {spec.driver}" if found.count > 1 else ""
    return f"device {name}{more}"


@RULES.add(W, Needs.NODES)
def unknown_node(case: Case) -> Iterator[Oddity]:
    """A slice or device for a node that is not among the nodes given."""
    spec = slice_of(case).spec
    yield from _node_oddities(SPEC, spec.node_name, spec.node_selector, "the slice", case)
    for place, device in _devices(case):
        if device.node_name is not None or device.node_selector is not None:
            what = f"device {device.name}"
            yield from _node_oddities(place, device.node_name, device.node_selector, what, case)


def _node_oddities(
    place: Place, name: str | None, selector: NodeSelector | None, what: str, case: Case
) -> Iterator[Oddity]:
    objects = case.context.objects
    if name and name not in objects.nodes:
        otherwise = "delete the slice if the node is gone, or give the node, too"
        remedy = suggestion(name, objects.nodes, otherwise)
        message = f'{what} is for node "{name}", which is not among those given'
        yield Oddity((*place, "nodeName"), message, remedy)
    if selector is not None and not objects.selects_some_node(selector):
        nodes = counted(len(objects.nodes), "node")
        message = f"{what} is for none of the {nodes} given: no labels match"
        yield Oddity((*place, "nodeSelector"), message, "correct the selector, or label nodes")


@RULES.add(E, Needs.NODES)
def undeclared_feature(case: Case) -> Iterator[Oddity]:
    """NodeAllocatableResources on a node that does not declare the feature."""
    spec = slice_of(case).spec
    node = case.context.objects.nodes.get(spec.node_name or "")
    if node is None or NODE_ALLOCATABLE in node.status.declared_features:
        return
    for place, device in _devices(case):
        if device.node_allocatable_resources:
            yield Oddity(
                (*place, "nodeAllocatableResources"),
                f"an API server refuses the slice until node {spec.node_name} lists "
                f"{NODE_ALLOCATABLE} in status.declaredFeatures",
                f"switch on {NODE_ALLOCATABLE} in its kubelet",
            )
            return


@RULES.add(N, Needs.CLASSES)
def unselected_driver(case: Case) -> Iterator[Oddity]:
    """A driver of whose devices no class selects any."""
    slice_ = slice_of(case)
    seen = _driver_seen(case)
    if seen is None or seen.first.slice is not slice_:
        return
    drivers = case.context.selected_drivers if not case.context.unreadable else None
    if drivers is not None and slice_.spec.driver not in drivers:
        yield Oddity(
            (*SPEC, "driver"),
            f"no class given selects any of the {counted(seen.devices, 'device')} of "
            f"{slice_.spec.driver}: no claim can ask for them",
            f'create a DeviceClass with the selector `device.driver == "{slice_.spec.driver}"`',
        )


def _devices(case: Case) -> Iterator[tuple[Place, Device]]:
    for i, device in enumerate(slice_of(case).spec.devices or ()):
        yield (*SPEC, "devices", i), device
