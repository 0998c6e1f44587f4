"""The grammar as a network of states, and what can come next in each.

Where several edges leave a state they are choices, in the order of preference.

    optional        BLOCK ─1→ parts → end                       BLOCK ─2→ end
    repeated        ENTRY ─1→ parts → BACK → ENTRY              ENTRY ─2→ end
    at least once   BLOCK ─→ parts → BACK ─1→ BLOCK             BACK ─2→ end

The machine walks through steps, which know their states; prediction runs ahead along the edges.
No rule can be empty, so what a rule can begin with is decided within it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Final

from mooring.cel.lang.lexer import TokenKind
from mooring.cel.lang.recovery.grammar import (
    RULES,
    Alternative,
    Element,
    Make,
    Optional,
    Reference,
    Repeated,
    Rule,
    Terminal,
)

Kinds = frozenset[TokenKind]


class Role(Enum):
    """What a state is for; recovery treats them differently."""

    PLAIN = auto()
    BLOCK = auto()
    ENTRY = auto()
    BACK = auto()
    STOP = auto()


@dataclass(slots=True, eq=False)
class State:
    """A place in a rule. `is_tail` marks the entry of the loop that reads a rule's tail."""

    rule: str
    role: Role = Role.PLAIN
    is_tail: bool = False
    edges: list[Edge] = field(default_factory=list)
    # What can come next without leaving the rule, and whether the rule can end here.
    next: Kinds = frozenset()
    can_end: bool = False
    # The states with edges that are not free, or a rule's end, to which free edges lead from here.
    ends: tuple[State, ...] = ()

    def close(self) -> None:
        """Note what can be known once all edges are there."""
        states = _reachable(self, lambda edge: isinstance(edge, Free))
        self.ends = tuple(
            state
            for state in states
            if state.role is Role.STOP or not all(isinstance(edge, Free) for edge in state.edges)
        )
        states = _reachable(self, lambda edge: not isinstance(edge, Taking | Leaving))
        edges = [edge for state in states for edge in state.edges]
        takings = (edge.kinds for edge in edges if isinstance(edge, Taking))
        self.next = frozenset().union(*takings)
        self.can_end = any(state.role is Role.STOP for state in states)


@dataclass(frozen=True, slots=True, eq=False)
class Free:
    """Leads on."""

    target: State


@dataclass(frozen=True, slots=True, eq=False)
class Taking:
    """Leads on over a token."""

    target: State
    kinds: Kinds


@dataclass(frozen=True, slots=True, eq=False)
class Entering:
    """Leads into a rule, at whose end it goes on at `follow`."""

    target: State
    follow: State
    precedence: int


@dataclass(frozen=True, slots=True, eq=False)
class Binding:
    """Leads on if an operator of this precedence may be read here."""

    target: State
    precedence: int


@dataclass(frozen=True, slots=True, eq=False)
class Leaving:
    """Leads from the end of a rule to where it goes on, for one of the places that enter it.

    `is_whole`: it was entered for all its operators, not as the operand of one of them.
    """

    target: State
    is_whole: bool


Edge = Free | Taking | Entering | Binding | Leaving


def _reachable(start: State, may_follow: Callable[[Edge], bool]) -> list[State]:
    """Return the states to which some edges lead, the start first."""
    states, seen = [start], {start}
    for state in states:
        for edge in state.edges:
            if may_follow(edge) and edge.target not in seen:
                seen.add(edge.target)
                states.append(edge.target)
    return states


def expected(state: State, follows: Iterable[State]) -> Kinds:
    """Return what can come next at a state, with where the rules under way go on, innermost first.

    Behind the outermost rule comes the end of the text.
    """
    kinds, can_end = state.next, state.can_end
    for follow in follows:
        if not can_end:
            return kinds
        kinds, can_end = kinds | follow.next, follow.can_end
    return kinds | {TokenKind.EOF} if can_end else kinds


# --- what the machine walks through -------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Take:
    """Take a token."""

    state: State
    part: Terminal


@dataclass(frozen=True, slots=True, eq=False)
class Enter:
    """Read a rule."""

    state: State
    part: Reference
    follow: State


@dataclass(frozen=True, slots=True, eq=False)
class Maybe:
    """Read the steps, or not."""

    choice: State
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Loop:
    """Read the steps as often as they come."""

    entry: State
    back: State
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True, eq=False)
class LoopOnce:
    """Read the steps, and again as often as they come."""

    block: State
    back: State
    steps: tuple[Step, ...]


Step = Take | Enter | Maybe | Loop | LoopOnce


@dataclass(frozen=True, slots=True, eq=False)
class Way:
    """An alternative of a rule."""

    make: Make
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Tail:
    """The loop over the alternatives that begin with the rule itself."""

    entry: State
    choice: State
    back: State
    ways: tuple[Way, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Chart:
    """A rule as steps."""

    rule: Rule
    choice: State
    ways: tuple[Way, ...]
    tail: Tail | None


class Network:
    """All rules, linked."""

    def __init__(self, rules: dict[str, Rule]) -> None:
        self._states: list[State] = []
        self._starts = {name: self._state(name) for name in rules}
        self._stops = {name: self._state(name, Role.STOP) for name in rules}
        self.charts = {name: self._chart(rule) for name, rule in rules.items()}
        for state in self._states:
            state.close()

    def _state(self, rule: str, role: Role = Role.PLAIN, *, is_tail: bool = False) -> State:
        state = State(rule, role, is_tail)
        self._states.append(state)
        return state

    def _chart(self, rule: Rule) -> Chart:
        """Link a rule from its start to its stop."""
        choice, stop = self._state(rule.name, Role.BLOCK), self._stops[rule.name]
        self._starts[rule.name].edges.append(Free(choice))
        if not rule.tail:
            return Chart(rule, choice, self._ways(choice, stop, rule.alternatives), None)
        entry = self._state(rule.name, Role.ENTRY, is_tail=True)
        block, back = self._state(rule.name, Role.BLOCK), self._state(rule.name, Role.BACK)
        ways = self._ways(choice, entry, rule.alternatives)
        entry.edges += (Free(block), Free(stop))
        tail = Tail(entry, block, back, self._ways(block, back, rule.tail))
        back.edges.append(Free(entry))
        return Chart(rule, choice, ways, tail)

    def _ways(
        self, before: State, after: State, alternatives: tuple[Alternative, ...]
    ) -> tuple[Way, ...]:
        ways = []
        for alternative in alternatives:
            first = self._state(before.rule)
            before.edges.append(Free(first))
            if alternative.precedence:
                operator = self._state(before.rule)
                first.edges.append(Binding(operator, alternative.precedence))
                first = operator
            ways.append(Way(alternative.make, self._steps(first, after, alternative.parts)))
        return tuple(ways)

    def _steps(self, before: State, after: State, parts: tuple[Element, ...]) -> tuple[Step, ...]:
        """Link parts, one behind the other, between two states.

        The last one leads straight to `after`, so that threads of different alternatives have the
        same return address: to prediction that makes them indistinguishable.
        """
        steps = []
        for part in parts[:-1]:
            end = self._state(before.rule)
            steps.append(self._step(before, end, part))
            before = end
        steps.append(self._step(before, after, parts[-1]))
        return tuple(steps)

    def _step(self, before: State, after: State, part: Element) -> Step:
        match part:
            case Terminal(kinds):
                before.edges.append(Taking(after, kinds))
                return Take(before, part)
            case Reference(rule):
                before.edges.append(Entering(self._starts[rule], after, part.precedence))
                is_whole = bool(RULES[rule].tail) and not part.precedence
                self._stops[rule].edges.append(Leaving(after, is_whole))
                return Enter(before, part, after)
            case Optional(parts):
                choice, first = self._state(before.rule, Role.BLOCK), self._state(before.rule)
                before.edges.append(Free(choice))
                choice.edges += (Free(first), Free(after))
                return Maybe(choice, self._steps(first, after, parts))
            case Repeated(parts, at_least_once):
                return self._loop(before, after, parts, at_least_once)

    def _loop(
        self, before: State, after: State, parts: tuple[Element, ...], at_least_once: bool
    ) -> Loop | LoopOnce:
        back, first = self._state(before.rule, Role.BACK), self._state(before.rule)
        steps = self._steps(first, back, parts)
        if at_least_once:
            block = self._state(before.rule, Role.BLOCK)
            before.edges.append(Free(block))
            block.edges.append(Free(first))
            back.edges += (Free(block), Free(after))
            return LoopOnce(block, back, steps)
        entry = self._state(before.rule, Role.ENTRY)
        before.edges.append(Free(entry))
        entry.edges += (Free(first), Free(after))
        back.edges.append(Free(entry))
        return Loop(entry, back, steps)


NETWORK: Final = Network(RULES)
