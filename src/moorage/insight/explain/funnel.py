"""Funnels: how many of all devices are left for a request after each question.

    in fleet ─► on the node ─► of the class ─► selected ─► free ─► tolerated ─► fitting ─► together

Every question is put to the devices that passed those before it, before anything is picked. The
last counts what the constraints allow: a device passes if with one of its values the requests that
must match it could have as many devices as they want. When enough devices pass and there is still
no solution, the conflict explains why.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct

from moorage.allocator.node_view import NodeView
from moorage.allocator.pool_facts import PoolFacts
from moorage.allocator.pools import PoolState, bits
from moorage.allocator.problem import Problem, Slot
from moorage.allocator.requests import SubRequest
from moorage.allocator.rules.constraints import Constraint, Element, MatchAttribute
from moorage.cel.device import DeviceCompiler
from moorage.insight.explain.device_rejections import (
    DeviceRejection,
    amounts_rules,
    constraints_of,
    has_types,
    refuses,
    rejection_of,
    value_text,
)
from moorage.insight.explain.situation import DropConstraint, SituationChange
from moorage.insight.messages import shortened

CLASS = "of the class"
STAGES = (
    "on the node",
    CLASS,
    "selected",
    "free",
    "tolerated",
    "fitting",
    "together",
)
SELECTED, FREE, TOLERATED, FITTING, TOGETHER = range(2, len(STAGES))
VALUES_SHOWN_MAX = 4
DEVICES_SHOWN_MAX = 3


class Nearest(Struct, frozen=True):
    """The device that passed the most questions, and what rejected it."""

    device: str
    stage: str  # the question that it did not pass
    refusal: DeviceRejection


class Funnel(Struct, frozen=True):
    """How many devices are left for a request, or an alternative of one, after each question."""

    claim: str
    request: str
    wanted: int | None  # None: all that are selected
    nearest: Nearest | None  # None if enough devices pass
    in_fleet: int
    on_node: int
    of_class: int
    selected: int
    free: int
    tolerated: int
    fitting: int
    together: int

    @property
    def counts(self) -> tuple[int, ...]:
        """The counts after each question."""
        return (
            self.on_node,
            self.of_class,
            self.selected,
            self.free,
            self.tolerated,
            self.fitting,
            self.together,
        )


class Funnels(Struct, frozen=True):
    """The funnels of all requests, and the values that constraints compare."""

    funnels: tuple[Funnel, ...] = ()
    values: tuple[ConstraintValues, ...] = ()


def funnels(
    problem: Problem, names: Sequence[str], *, in_fleet: int, compiler: DeviceCompiler
) -> Funnels:
    """Return a funnel for each request and alternative."""
    slots = [slot for stage in problem.stages for slot in stage]
    left = devices_left(problem)
    fitting = {ask: masks[FITTING] for ask, masks in left.items()}
    found = []
    for slot in slots:
        masks = left[slot.request]
        wanted = None if slot.request.wants_all else slot.count
        nearest = _nearest(problem, slot, masks, fitting, compiler)
        counts = [mask.bit_count() for mask in masks]
        found.append(
            Funnel(
                names[slot.request.claim],
                slot.request.full_name,
                wanted,
                nearest,
                in_fleet,
                *counts,
            )
        )
    return Funnels(tuple(found), _values_of(problem, fitting))


def devices_left(problem: Problem) -> dict[SubRequest, tuple[int, ...]]:
    """Return the devices that are left for each request after each question, as bit masks."""
    slots = [slot for stage in problem.stages for slot in stage]
    before = {slot.request: _masks(problem, slot) for slot in slots}
    fitting = {ask: masks[-1] for ask, masks in before.items()}
    return {
        slot.request: (*before[slot.request], _together(problem, slot, fitting)) for slot in slots
    }


def found_devices(problem: Problem) -> tuple[int, ...]:
    """Return how many devices each request finds, and how many pools cannot be used.

    Those of the class, those that are selected as well, those that are tolerated, too, and of these
    those that are free: a node without such devices is not like one whose devices are tainted.
    """
    free = ~problem.allocated.whole
    masks = [
        (
            of_class := _of_class(problem, slot),
            of_class & _selected(problem, slot),
            slot.candidates,
            slot.candidates & free,
        )
        for slot in problem.slots.values()
    ]
    return (_unusable(problem), *(mask.bit_count() for each in masks for mask in each))


class Missing(NamedTuple):
    """What a node lacks for claims."""

    classes: int = 0  # requests that find no device of their class, and no pool that may have some
    devices: int = 0
    passed: int = 0  # questions that are answered by enough devices for every request


def missing_devices(problem: Problem) -> Missing:
    """Return what a node lacks."""
    classes = devices = 0
    passed, is_known = len(STAGES), not _unusable(problem)
    for ask, masks in devices_left(problem).items():
        wanted = masks[SELECTED].bit_count() if ask.wants_all else ask.count
        counts = [mask.bit_count() for mask in masks]
        classes += is_known and not counts[STAGES.index(CLASS)]
        devices += max(wanted - counts[TOGETHER], 0)
        failing = (number for number, count in enumerate(counts) if count < max(wanted, 1))
        passed = min(passed, next(failing, passed))
    return Missing(classes, devices, passed)


def _unusable(problem: Problem) -> int:
    return sum(pool.state is not PoolState.USABLE for pool in problem.view.seen)


def _selected(problem: Problem, slot: Slot) -> int:
    selectors = slot.request.requirements.selectors
    return _joined(problem.view, lambda facts: facts.selected(selectors).yes)


def _of_class(problem: Problem, slot: Slot) -> int:
    """Return the devices of a request's class, as a bit mask."""
    selectors = slot.request.requirements.class_selectors
    return _joined(problem.view, lambda facts: facts.selected(selectors).yes)


def selected_devices(problem: Problem, slot: Slot) -> int:
    """Return the devices of the class that are selected as well, free or not, as a bit mask."""
    return _of_class(problem, slot) & _selected(problem, slot)


def _masks(problem: Problem, slot: Slot) -> list[int]:
    view, ask = problem.view, slot.request
    here = view.all
    for position, spot in enumerate(view.published):
        if spot.slice.spec.per_device_node_selection and not view.is_for_node(position):
            here &= ~(1 << position)
    classed = here & _of_class(problem, slot)
    selected = classed & _selected(problem, slot)
    free = selected if ask.is_admin else selected & ~problem.allocated.whole
    tolerated = free
    if view.features.device_taints:
        tolerated &= _joined(view, lambda facts: facts.tolerated(ask.requirements.tolerations))
    fitting = tolerated & slot.candidates
    for position in bits(fitting):
        if any(refuses(rule, problem, slot, position) for rule in amounts_rules(problem)):
            fitting &= ~(1 << position)
    return [here, classed, selected, free, tolerated, fitting]


def _joined(view: NodeView, mask: Callable[[PoolFacts], int]) -> int:
    joined = 0
    for facts, offset in zip(view.pools, view.offsets, strict=True):
        joined |= mask(facts) << offset
    return joined


def _together(problem: Problem, slot: Slot, fitting: Mapping[SubRequest, int]) -> int:
    """Return the devices that the constraints allow, by counting."""
    left = fitting[slot.request]
    for rule in constraints_of(slot):
        table = rule.tables[slot.request]
        allowed = left & table.known
        if isinstance(rule, MatchAttribute):
            allowed &= table.only_first
            for element, holders in table.holders.items():
                if left & holders and _is_enough(problem, rule, element, fitting):
                    allowed |= left & holders
        left = allowed
    return left


def _is_enough(
    problem: Problem, rule: Constraint, element: Element, fitting: Mapping[SubRequest, int]
) -> bool:
    """Return whether one value could satisfy all requests of a constraint."""
    for stage in problem.stages:
        counts = [
            slot.count
            <= (
                (
                    fitting[slot.request] & rule.tables[slot.request].holders.get(element, 0)
                ).bit_count()
                if slot.request in rule.tables
                else slot.count
            )
            for slot in stage
        ]
        if not any(counts):
            return False
    return True


def _nearest(
    problem: Problem,
    slot: Slot,
    masks: Sequence[int],
    fitting: Mapping[SubRequest, int],
    compiler: DeviceCompiler,
) -> Nearest | None:
    """Return the first of the devices that passed the most questions, unless enough pass all.

    Where all devices of the class pass and are too few, a device of another class is not near.
    """
    goal = masks[STAGES.index("selected")].bit_count() if slot.request.wants_all else slot.count
    if masks[-1].bit_count() >= max(goal, 1):
        return None
    before = (problem.view.all, *masks)
    for number in range(len(masks) - 1, -1, -1):
        lost = before[number] & ~masks[number]
        stage = STAGES[number]
        if lost and stage == CLASS and masks[number]:
            return None
        if lost:
            position = next(iter(bits(lost)))
            refusal = rejection_of(problem, slot, position, stage, fitting, compiler)
            return Nearest(problem.view.device_id(position), stage, refusal)
    return None


class ConstraintValues(Struct, frozen=True):
    """The values of a constraint's attribute on the devices that fit a request."""

    claim: int
    constraint: int
    request: str
    devices: Mapping[str, tuple[str, ...]]  # by value; "" for those that have none


def _values_of(problem: Problem, fitting: Mapping[SubRequest, int]) -> tuple[ConstraintValues, ...]:
    """Return the values that each constraint finds for each of its requests."""
    found = []
    for stage in problem.stages:
        for slot in stage:
            rules = constraints_of(slot)
            for number, rule in zip(slot.request.constraints, rules, strict=True):
                table, is_typed = rule.tables[slot.request], has_types(rule)
                devices: dict[str, list[str]] = {}
                for position in bits(fitting[slot.request]):
                    known = table.known >> position & 1
                    elements = table.elements[position] if known else ()
                    value = value_text(elements, is_typed=is_typed) if known else ""
                    name = problem.view.published[position].device.name
                    devices.setdefault(value, []).append(name)
                grouped = {value: tuple(names) for value, names in devices.items()}
                found.append(
                    ConstraintValues(slot.request.claim, number, slot.request.full_name, grouped)
                )
    return tuple(found)


def values_text(values: Sequence[ConstraintValues], member: SituationChange) -> str:
    """Return the values of a constraint on one line: `gpus: 0 on gpu-0, 1 on gpu-1; nics: …`."""
    assert isinstance(member, DropConstraint)
    requests: dict[str, list[str]] = {}  # by the values that their devices have
    for each in values:
        if (each.claim, each.constraint) == (member.claim, member.constraint):
            requests.setdefault(_listed(each.devices), []).append(each.request)
    if not requests:
        return "about no request"
    return "; ".join(f"{', '.join(names)}: {listed}" for listed, names in requests.items())


def _listed(devices: Mapping[str, tuple[str, ...]]) -> str:
    texts = (
        f"{value or 'none'} on {' '.join(shortened(names, DEVICES_SHOWN_MAX))}"
        for value, names in devices.items()
    )
    return ", ".join(shortened(texts, VALUES_SHOWN_MAX, "more values")) or "no device fits"
