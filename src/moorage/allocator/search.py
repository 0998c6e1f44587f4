"""Find the first assignment of devices that every rule admits.

The order is Kubernetes': requests in order, alternatives in order, devices in order. Within one
request positions only go up; each new request starts from the first device again. The first full
assignment is the result. The search knows no feature: it calls the rules of each slot.

    # frame: one decision, with the states before it, so that backtracking needs no undo

    ┌ Fork ─────────────┐   which alternative of a request (only if there are several)
    │  ┌ Pick ────────┐ │   which device is the k-th of a slot
    │  │  ┌ Pick …    │ │
    stack grows downwards; a decision that fails takes its next candidate, or is popped

1. Enter the next stage. A slot that would bring its claim over the limit of devices is not tried:
   go back to the last fork of the claim, since other devices would not help.
2. For a slot, narrow the candidates by the rules that can do so, and take them lowest first.
3. A device that is not judged yet is judged now. A candidate with a static error ends the search:
   Kubernetes evaluates lazily, so an error counts only when the search reaches its device.
4. Each rule takes the pick or refuses it. If all take it, go on; otherwise try the next candidate
   that is not interchangeable with it (see `moorage.allocator.interchangeable`).

That alone is exponential when there is no solution. So after a number of steps the search starts
again with a feasibility check (see `moorage.allocator.feasibility`), which skips subtrees that have
neither a solution nor an error. The result stays the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

from moorage.allocator.errors import AllocationError, OutOfStepsError
from moorage.allocator.interchangeable import NONE_ALIKE
from moorage.allocator.problem import Names, Problem, Slot, place
from moorage.allocator.requests import RESULTS_MAX, SubRequest
from moorage.allocator.rules.base import States

PROBE_STEPS_MAX = 64
# Steps before interchangeable devices are looked for, besides one for each device that is wanted:
# as many as take as long as looking, which depends on the devices that there are.
PLAIN_STEPS = 4
DEVICES_PER_PLAIN_STEP = 2
INTERRUPT_EVERY_STEPS = 64


class Pick(NamedTuple):
    """A device for a request."""

    request: SubRequest
    position: int


class Solution(NamedTuple):
    """Devices for all slots, and the chosen alternative of each request."""

    picks: tuple[Pick, ...]
    chosen: tuple[SubRequest, ...]


class FeasibilityCheck(Protocol):
    """Checks whether the remaining slots can be filled."""

    def is_infeasible(
        self, states: States, stage: int, slot: Slot, filled: int, above: int
    ) -> bool:
        """Return whether there is no completion, and no error on the way to one.

        The slot, at this stage, has `filled` devices, all below position `above`.
        """

    def picked(self, before: States, slot: Slot, position: int, after: States) -> None:
        """Note the pick that led from one state to the next."""


class _Fork:
    """A decision between the alternatives of a request."""

    __slots__ = ("all_exceed", "alternative", "stage", "states")

    def __init__(self, stage: int, states: States) -> None:
        self.stage = stage
        self.states = states
        self.alternative = -1
        self.all_exceed = True


class _Pick:
    """A decision which device is the next of a slot."""

    __slots__ = ("candidates", "filled", "open", "position", "slot", "stage", "states")

    def __init__(
        self, stage: int, slot: Slot, filled: int, states: States, candidates: int, open_: int
    ) -> None:
        self.stage = stage
        self.slot = slot
        self.filled = filled
        self.states = states
        self.candidates = candidates
        self.open = open_  # those among them that must be looked at again when they are tried
        self.position = -1


class Search:
    """One traversal of the assignments."""

    def __init__(
        self,
        problem: Problem,
        names: Names,
        *,
        steps_max: int,
        feasibility: FeasibilityCheck | None = None,
        interrupt: Callable[[], None],
    ) -> None:
        self._problem = problem
        self._names = names
        self._stages = problem.stages
        self._steps_max = steps_max
        in_vain = PLAIN_STEPS + len(problem.view.devices) // DEVICES_PER_PLAIN_STEP
        self._plain_steps = problem.devices_wanted + in_vain
        self._feasibility = feasibility
        self._interrupt = interrupt  # called now and then; may raise
        self._stack: list[_Fork | _Pick] = []
        self._base = 0  # decisions below are not this search's own
        self._found: Solution | None = None
        self.steps = 0

    def run(self) -> Solution | None:
        """Return the first solution, or None; raise AllocationError for an error."""
        return self._run(self._enter(0, self._problem.start))

    def _run(self, going_on: object | None) -> Solution | None:
        while going_on is _MORE:
            frame = self._stack[-1]
            if type(frame) is _Pick:
                going_on = self._next_device(frame)
            else:
                going_on = self._next_alternative()
        if going_on is None:
            return None
        return self._found or self._solution()

    # Each of these advances one decision and returns whether there is a solution (_DONE), more to
    # decide (_MORE), or nothing left (None).

    def _enter(self, stage: int, states: States) -> object | None:
        """Go on to a stage."""
        while stage < len(self._stages):
            slots = self._stages[stage]
            if len(slots) > 1:
                self._stack.append(_Fork(stage, states))
                return _MORE
            slot = slots[0]
            if slot.count > 0 or slot.listed is not None:
                return self._enter_slot(stage, slot, states)
            stage += 1
        return _DONE

    def _enter_slot(self, stage: int, slot: Slot, states: States) -> object | None:
        if slot.count <= 0:
            # Zero devices are enough, except in mode All, which needs at least one.
            return self._enter(stage + 1, states) if slot.listed is None else self._fail()
        if self._problem.is_near_limit and self._exceeds(slot):
            return self._exceed(slot.request.claim)
        return self._open(stage, slot, 0, states, 0)

    def _open(
        self, stage: int, slot: Slot, filled: int, states: States, above: int
    ) -> object | None:
        """Start to look for the next device of a slot."""
        self.steps += 1
        if self.steps > self._steps_max:
            raise OutOfStepsError
        if not self.steps % INTERRUPT_EVERY_STEPS:
            self._interrupt()
        if self._feasibility is not None:
            may_prune = not self._may_skip_faults(stage, slot, filled)
            if may_prune and self._feasibility.is_infeasible(states, stage, slot, filled, above):
                return self._fail()
            try:
                self._found = self._probe(stage, slot, filled, states, above)
            except OutOfStepsError:
                pass
            else:
                return self._fail() if self._found is None else _DONE
        return self._open_pick(stage, slot, filled, states, above)

    def _probe(
        self, stage: int, slot: Slot, filled: int, states: States, above: int
    ) -> Solution | None:
        """Return the first solution from here on, if a few steps decide it."""
        probe = Search(
            self._problem, self._names, steps_max=PROBE_STEPS_MAX, interrupt=self._interrupt
        )
        probe._stack = [*self._stack]
        probe._base = len(self._stack)
        return probe._run(probe._open_pick(stage, slot, filled, states, above))

    def _open_pick(
        self, stage: int, slot: Slot, filled: int, states: States, above: int
    ) -> object | None:
        open_ = 0
        if slot.is_lazy:
            self._problem.reach(slot)
        if slot.listed is None:
            candidates = slot.candidates >> above << above
            for rule in slot.sure:
                candidates = rule.narrow(states, slot, candidates)
            if slot.faults:
                candidates |= self._faulty(slot, states) >> above << above
            if slot.open:
                open_ = self._problem.in_use.narrow(states, slot, slot.open) >> above << above
                candidates |= open_
            if slot.is_lazy:
                open_ = candidates  # Once all are asked, rules that are unsure now are sure.
        else:
            candidates = 1 << slot.listed[filled]
        if not candidates:
            return self._fail()
        self._stack.append(_Pick(stage, slot, filled, states, candidates, open_))
        return _MORE

    def _next_device(self, frame: _Pick) -> object | None:
        slot, states = frame.slot, frame.states
        alike = NONE_ALIKE
        if self.steps > self._plain_steps and not slot.request.is_admin:
            alike = self._problem.alike
            frame.candidates &= ~alike.get(frame.position, 0)  # where the last one failed
        while frame.candidates:
            low = frame.candidates & -frame.candidates
            frame.candidates ^= low
            position = low.bit_length() - 1
            if frame.open & low and not self._is_candidate(slot, states, position):
                continue
            after = self._take(slot, states, position)
            if after is None:
                frame.candidates &= ~alike.get(position, 0)
                continue
            frame.position = position
            if self._feasibility is not None:
                self._feasibility.picked(states, slot, position, after)
            filled = frame.filled + 1
            if filled < slot.count:
                return self._open(frame.stage, slot, filled, after, position + 1)
            return self._enter(frame.stage + 1, after)
        self._stack.pop()
        return self._fail()

    def _take(self, slot: Slot, states: States, position: int) -> States | None:
        """Return the states after the pick; None if some rule refuses it."""
        if slot.listed is not None:
            return self._take_listed(slot, states, position)
        if position in slot.faults:
            fault = slot.faults[position]
            message = self._problem.message(slot.request, position, fault, self._names)
            raise AllocationError(message)
        after = states.copy()
        for rule in slot.unsure:
            state = rule.take(states, slot, position)
            if state is None:
                return None
            after[rule.index] = state
        for sure in slot.sure:
            after[sure.index] = sure.add(states, slot, position)
        return after

    def _is_candidate(self, slot: Slot, states: States, position: int) -> bool:
        """Judge a device, and return whether it is a candidate, or its error is to be raised."""
        bit = 1 << position
        slot.judge(bit)
        if position in slot.faults:
            return True
        if not slot.candidates & bit:
            return False
        return all(rule.narrow(states, slot, bit) for rule in slot.sure)

    def _take_listed(self, slot: Slot, states: States, position: int) -> States | None:
        """Take a device of a slot in mode All; a violated constraint is an error."""
        if not slot.candidates >> position & 1:
            return None
        after = states.copy()
        for rule in slot.rules:
            state = rule.take(states, slot, position)
            if state is None:
                if rule.is_constraint:
                    device = self._problem.view.device_id(position)
                    raise AllocationError(
                        f"{place(slot.request, self._names)}: cannot add device {device} because a "
                        "claim constraint would not be satisfied"
                    )
                return None
            after[rule.index] = state
        return after

    def _faulty(self, slot: Slot, states: States) -> int:
        """Return the devices that would end the search with an error: those not in use."""
        mask = 0
        for position in slot.faults:
            mask |= 1 << position
        return self._problem.in_use.narrow(states, slot, mask)

    def _exceeds(self, slot: Slot) -> bool:
        """Return whether the slot would bring its claim over the limit of devices."""
        return len(self._picks_of(slot.request.claim)) + slot.count > RESULTS_MAX

    def _may_skip_faults(self, stage: int, slot: Slot, filled: int) -> bool:
        """Return whether the claim may exceed the limit and go back past devices with an error.

        Going back one by one, because the rest is infeasible, would raise the error.
        """
        if not self._problem.is_near_limit:
            return False
        claim = slot.request.claim
        picks = self._picks_of(claim)
        if not any(pick.slot.is_risky for pick in picks):
            return False
        most = len(picks) + slot.count - filled
        for later in range(stage + 1, len(self._stages)):
            if self._problem.claims[later] == claim:
                most += max(slot.count for slot in self._stages[later])
        return most > RESULTS_MAX

    def _picks_of(self, claim: int) -> list[_Pick]:
        """Return the decisions on devices of the claim that is being served."""
        picks = []
        for frame in reversed(self._stack):
            if self._problem.claims[frame.stage] != claim:
                break
            if type(frame) is _Pick:
                picks.append(frame)
        return picks

    # --- going back -----------------------------------------------------------------------------

    def _fail(self) -> object | None:
        """Go back to the last decision, which leads to no solution."""
        if len(self._stack) == self._base:
            return None
        frame = self._stack[-1]
        if isinstance(frame, _Fork):
            frame.all_exceed = False
        return _MORE

    def _next_alternative(self) -> object | None:
        frame = self._stack[-1]
        assert isinstance(frame, _Fork)
        slots = self._stages[frame.stage]
        frame.alternative += 1
        if frame.alternative == len(slots):
            self._stack.pop()
            if frame.all_exceed:
                return self._exceed(slots[0].request.claim)
            return self._fail()
        return self._enter_slot(frame.stage, slots[frame.alternative], frame.states)

    def _exceed(self, claim: int) -> object | None:
        """Go back to the last fork of the claim: it has too many devices, whichever they are."""
        while self._stack:
            if self._base and len(self._stack) == self._base:
                raise OutOfStepsError  # The search below has to go back further.
            frame = self._stack[-1]
            if self._problem.claims[frame.stage] != claim:
                return self._fail()
            if isinstance(frame, _Fork):
                return _MORE
            self._stack.pop()
        return None

    def _solution(self) -> Solution:
        chosen = [slots[0].request for slots in self._stages]
        picks = []
        for frame in self._stack:
            if isinstance(frame, _Fork):
                chosen[frame.stage] = self._stages[frame.stage][frame.alternative].request
            else:
                picks.append(Pick(frame.slot.request, frame.position))
        return Solution(tuple(picks), tuple(chosen))


_DONE = object()
_MORE = object()


def is_short(problem: Problem) -> bool:
    """Return whether a request finds too few devices before any is picked.

    Then no search has a solution; and none ends with an error, for that is excluded here.
    """
    for slot in [slot for stage in problem.stages for slot in stage]:
        if problem.is_near_limit or slot.is_risky or slot.is_lazy:
            return False
    return any(all(_is_slot_short(problem, slot) for slot in stage) for stage in problem.stages)


def _is_slot_short(problem: Problem, slot: Slot) -> bool:
    free = problem.in_use.narrow(problem.start, slot, slot.candidates)
    if slot.listed is None:
        return free.bit_count() < slot.count
    return not slot.listed or any(not free >> position & 1 for position in slot.listed)
