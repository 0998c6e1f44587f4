"""Requests that each find enough devices, and want more than there are together.

Requests and the devices that fit them are matched, each device with one request. Where a request
stays short, it and those that it competes with want more devices than all of them find: no
selector, taint or constraint is wrong, only the sum.

    # contenders: requests that together want more devices than fit any of them, none to spare
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from moorage.allocator.errors import AllocationError
from moorage.allocator.pools import bits
from moorage.allocator.problem import Problem
from moorage.insight.answer.devices.shortages import DeviceCase, Shortage
from moorage.insight.answer.finding import Finding, FixRank, Proposal
from moorage.insight.answer.holders import waits_for_claims
from moorage.insight.explain.funnel import FITTING, SELECTED, TOGETHER, devices_left
from moorage.insight.explain.situation import RequestPath
from moorage.insight.messages import fitting, listed

DEVICES_MAX: Final = 1024  # that requests are matched with
DEVICES_SHOWN_MAX: Final = 3


class _Contender(NamedTuple):
    """A request without alternatives, and what it wants."""

    short: Shortage
    wish: Wish

    @property
    def wanted(self) -> int:
        return self.wish.wanted


def contention_findings(case: DeviceCase) -> Iterator[Finding]:
    """Find requests that want more devices together than there are for them."""
    problem = _problem(case)
    contenders = [] if problem is None else list(_contenders(case, problem))
    found = [contenders[number] for number in overdrawn([each.wish for each in contenders])]
    if problem is None or len(found) < 2:
        return
    there = _union(each.wish for each in found)
    excess = sum(each.wanted for each in found) - there.bit_count()
    held = any(each.short.funnel.free < each.short.funnel.selected for each in found)
    waiting = waits_for_claims(case.case, list(case.diagnosis.obstacles.holders)) if held else ()
    yield Finding(
        _cause(case, problem, found), (*_fewer(case, found, excess), *waiting, _more(found))
    )


def _problem(case: DeviceCase) -> Problem | None:
    situation, inventory = case.diagnosis.situation, case.case.cluster.inventory
    try:
        problem = inventory.problem(situation.node, inventory.plan(situation.claims))
    except AllocationError:
        return None
    return problem if len(problem.view.published) <= DEVICES_MAX else None


def _contenders(case: DeviceCase, problem: Problem) -> Iterator[_Contender]:
    """Yield the requests that need devices of their own."""
    situation, left = case.diagnosis.situation, devices_left(problem)
    masks = {(ask.claim, ask.full_name): (ask, left[ask]) for ask in left}
    for place, details in situation.requests():
        found = masks.get((place.claim, situation.request_name(place)))
        funnel = case.funnel(place)
        if found is None or funnel is None or place.alternative is not None:
            continue
        ask, counts = found
        fitting = counts[FITTING]
        if not ask.is_admin and not fitting & problem.view.shareable:
            wanted = counts[SELECTED].bit_count() if ask.wants_all else ask.count
            short = Shortage(place, details, funnel, TOGETHER, _asker(case, place))
            yield _Contender(short, Wish(wanted, fitting))


def _asker(case: DeviceCase, place: RequestPath) -> str:
    found = case.resource(place)
    if found is not None:
        return f"container {found.container} ({found.name})"
    return case.request_text(place)


# --- matching -------------------------------------------------------------------------------


class Wish(NamedTuple):
    """How many devices a request wants, and which fit it, as bits."""

    wanted: int
    fitting: int


def overdrawn(wishes: Sequence[Wish]) -> list[int]:
    """Return wishes that together want more than fits them, without any that can be spared.

    There are none exactly if all can be fulfilled, each device for one of them.
    """
    found = _short_together(wishes)
    while True:
        rests = ([other for other in found if other != each] for each in found)
        less = next((rest for rest in rests if _is_too_much([wishes[n] for n in rest])), None)
        if less is None:
            return found
        found = less


def _is_too_much(wishes: Sequence[Wish]) -> bool:
    return sum(each.wanted for each in wishes) > _union(wishes).bit_count()


def _short_together(wishes: Sequence[Wish]) -> list[int]:
    """Return a wish that cannot be fulfilled, and those that have its devices instead."""
    given: dict[int, int] = {}  # by device: the number of the wish that has it
    for number, wish in enumerate(wishes):
        for _ in range(wish.wanted):
            reached = _give(number, wishes, given)
            if reached is not None:
                return sorted(reached)
    return []


def _give(number: int, wishes: Sequence[Wish], given: dict[int, int]) -> set[int] | None:
    """Give a wish one device more, taking over from others; else return whom it asked."""
    asked: dict[int, tuple[int, int]] = {}  # by wish: the device it would leave, and to whom
    waiting = [number]
    for current in waiting:
        for device in bits(wishes[current].fitting):
            holder = given.get(device)
            if holder is None:
                _hand_over(device, current, asked, given)
                return None
            if holder != number and holder not in asked:
                asked[holder] = (device, current)
                waiting.append(holder)
    return set(waiting)


def _hand_over(
    device: int, taker: int, asked: Mapping[int, tuple[int, int]], given: dict[int, int]
) -> None:
    """Give a free device away, and pass on those that led to it."""
    given[device] = taker
    while taker in asked:
        device, taker = asked[taker]
        given[device] = taker


def _union(wishes: Iterable[Wish]) -> int:
    found = 0
    for each in wishes:
        found |= each.fitting
    return found


# --- words ----------------------------------------------------------------------------------


def _cause(case: DeviceCase, problem: Problem, found: Sequence[_Contender]) -> str:
    total, there = sum(each.wanted for each in found), _union(each.wish for each in found)
    count, node = there.bit_count(), case.node
    classes = {each.short.class_name for each in found}
    asked = [(_short_name(each.short), each.wanted) for each in found]
    names = _joined([f"{name} ({wanted})" for name, wanted in asked])
    noun = "containers" if all("container" in each.short.asker for each in found) else "requests"
    resources = {resource.name for each in found if (resource := case.resource(each.short.place))}
    what = f"devices of class {next(iter(classes))}" if len(classes) == 1 else "devices"
    if len(resources) == 1 and noun == "containers":
        what = next(iter(resources))
    of_class = {each.short.funnel.of_class for each in found}
    selected = {each.short.funnel.selected for each in found}
    if len({each.wish.fitting for each in found}) == 1 and of_class == selected:
        in_use = max(selected) - count
        free = {each.short.funnel.free for each in found}
        left = "free" if free == {count} else "usable"
        has = f"{count + in_use}, {count} of them {left}" if in_use else str(count)
        texts = [
            f"{noun} {names} want {total} {what} together, node {node} has {has}",
            f"{noun} want {total} {what} together, node {node} has {has}: {names}",
        ]
    else:
        ids = [problem.view.device_id(position).rpartition("/")[2] for position in bits(there)]
        one = "1 device fits them" if count == 1 else f"only {count} devices fit them"
        shown = listed(ids, shown_max=DEVICES_SHOWN_MAX)
        texts = [
            f"{noun} {names} want {total} {what} together, {one} on node {node}: {shown}",
            f"{noun} {names} want {total} devices together, {one} on node {node}",
        ]
    return fitting(*texts)


def _short_name(short: Shortage) -> str:
    return short.asker.removeprefix("request ").removeprefix("container ").partition(" (")[0]


def _joined(texts: Sequence[str]) -> str:
    *first, last = texts
    return f"{', '.join(first)} and {last}" if first else last


def _fewer(case: DeviceCase, found: Sequence[_Contender], excess: int) -> Iterator[Proposal]:
    """Yield one of the requests lowered by what is too much, the largest first."""
    for each in sorted(found, key=lambda each: -each.wanted):
        yield from case.fewer(each.short, each.wanted - excess)


def _more(found: Sequence[_Contender]) -> Proposal:
    wanted: dict[str, int] = {}
    for each in found:
        wanted[each.short.class_name] = wanted.get(each.short.class_name, 0) + each.wanted
    texts = [f"{count} devices of class {name}" for name, count in wanted.items()]
    return Proposal(f"add a node with {_joined(texts)}", FixRank.HARDWARE)
