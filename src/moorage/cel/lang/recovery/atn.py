"""The augmented transition network (ATN) of the grammar, and which tokens can follow each state.

Several transitions of a state are alternatives, in the order of preference.

    optional        BLOCK ─1→ parts → end                       BLOCK ─2→ end
    repeated        ENTRY ─1→ parts → BACK → ENTRY              ENTRY ─2→ end
    at least once   BLOCK ─→ parts → BACK ─1→ BLOCK             BACK ─2→ end

The parser walks through steps, which know their states; prediction looks ahead along transitions.
No rule can be empty, so the first tokens of a rule are decided within it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Final

from moorage.cel.lang.lexer import TokenKind
from moorage.cel.lang.recovery.grammar import (
    RULES,
    Alternative,
    Element,
    GrammarRule,
    Make,
    Optional,
    Repeated,
    RuleReference,
    Terminal,
)

Kinds = frozenset[TokenKind]


class StateRole(Enum):
    """The type of a state; recovery treats them differently."""

    PLAIN = auto()
    BLOCK = auto()
    ENTRY = auto()
    BACK = auto()
    STOP = auto()


@dataclass(slots=True, eq=False)
class ATNState:
    """A place in a rule. `is_tail` marks the entry of the loop that reads a rule's tail."""

    rule: str
    role: StateRole = StateRole.PLAIN
    is_tail: bool = False
    edges: list[Transition] = field(default_factory=list)
    # What can come next without leaving the rule, and whether the rule can end here.
    next: Kinds = frozenset()
    can_end: bool = False
    # The states with edges that are not free, or a rule's end, to which free edges lead from here.
    ends: tuple[ATNState, ...] = ()

    def close(self) -> None:
        """Note what can be known once all edges are there."""
        states = _reachable(self, lambda edge: isinstance(edge, EpsilonTransition))
        self.ends = tuple(
            state
            for state in states
            if state.role is StateRole.STOP
            or not all(isinstance(edge, EpsilonTransition) for edge in state.edges)
        )
        states = _reachable(
            self, lambda edge: not isinstance(edge, TokenTransition | ReturnTransition)
        )
        edges = [edge for state in states for edge in state.edges]
        takings = (edge.kinds for edge in edges if isinstance(edge, TokenTransition))
        self.next = frozenset().union(*takings)
        self.can_end = any(state.role is StateRole.STOP for state in states)


@dataclass(frozen=True, slots=True, eq=False)
class EpsilonTransition:
    """Leads on."""

    target: ATNState


@dataclass(frozen=True, slots=True, eq=False)
class TokenTransition:
    """Leads on over a token."""

    target: ATNState
    kinds: Kinds


@dataclass(frozen=True, slots=True, eq=False)
class RuleTransition:
    """Leads into a rule, at whose end it goes on at `follow`."""

    target: ATNState
    follow: ATNState
    precedence: int


@dataclass(frozen=True, slots=True, eq=False)
class PrecedenceTransition:
    """Leads on if an operator of this precedence may be read here."""

    target: ATNState
    precedence: int


@dataclass(frozen=True, slots=True, eq=False)
class ReturnTransition:
    """Leads from the end of a rule to where it goes on, for one of the places that enter it.

    `is_whole`: it was entered for all its operators, not as the operand of one of them.
    """

    target: ATNState
    is_whole: bool


Transition = (
    EpsilonTransition | TokenTransition | RuleTransition | PrecedenceTransition | ReturnTransition
)


def _reachable(start: ATNState, may_follow: Callable[[Transition], bool]) -> list[ATNState]:
    """Return the states to which some edges lead, the start first."""
    states, seen = [start], {start}
    for state in states:
        for edge in state.edges:
            if may_follow(edge) and edge.target not in seen:
                seen.add(edge.target)
                states.append(edge.target)
    return states


def expected(state: ATNState, follows: Iterable[ATNState]) -> Kinds:
    """Return what can come next at a state, with where the rules under alt go on, innermost first.

    Behind the outermost rule comes the end of the text.
    """
    kinds, can_end = state.next, state.can_end
    for follow in follows:
        if not can_end:
            return kinds
        kinds, can_end = kinds | follow.next, follow.can_end
    return kinds | {TokenKind.EOF} if can_end else kinds


# --- states and transitions ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class MatchToken:
    """Take a token."""

    state: ATNState
    part: Terminal


@dataclass(frozen=True, slots=True, eq=False)
class InvokeRule:
    """Read a rule."""

    state: ATNState
    part: RuleReference
    follow: ATNState


@dataclass(frozen=True, slots=True, eq=False)
class OptionalBlock:
    """Read the steps, or not."""

    choice: ATNState
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True, eq=False)
class StarLoop:
    """Read the steps as often as they come."""

    entry: ATNState
    back: ATNState
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True, eq=False)
class PlusLoop:
    """Read the steps, and again as often as they come."""

    block: ATNState
    back: ATNState
    steps: tuple[Step, ...]


Step = MatchToken | InvokeRule | OptionalBlock | StarLoop | PlusLoop


@dataclass(frozen=True, slots=True, eq=False)
class AlternativeSteps:
    """An alternative of a rule."""

    make: Make
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True, eq=False)
class LeftRecursion:
    """The loop over the alternatives that begin with the rule itself."""

    entry: ATNState
    choice: ATNState
    back: ATNState
    alts: tuple[AlternativeSteps, ...]


@dataclass(frozen=True, slots=True, eq=False)
class RuleSteps:
    """A rule as steps."""

    rule: GrammarRule
    choice: ATNState
    alts: tuple[AlternativeSteps, ...]
    tail: LeftRecursion | None


class ATN:
    """All rules, linked."""

    def __init__(self, rules: dict[str, GrammarRule]) -> None:
        self._states: list[ATNState] = []
        self._starts = {name: self._state(name) for name in rules}
        self._stops = {name: self._state(name, StateRole.STOP) for name in rules}
        self.charts = {name: self._chart(rule) for name, rule in rules.items()}
        for state in self._states:
            state.close()

    def _state(
        self, rule: str, role: StateRole = StateRole.PLAIN, *, is_tail: bool = False
    ) -> ATNState:
        state = ATNState(rule, role, is_tail)
        self._states.append(state)
        return state

    def _chart(self, rule: GrammarRule) -> RuleSteps:
        """Link a rule from its start to its stop."""
        choice, stop = self._state(rule.name, StateRole.BLOCK), self._stops[rule.name]
        self._starts[rule.name].edges.append(EpsilonTransition(choice))
        if not rule.tail:
            return RuleSteps(rule, choice, self._alts(choice, stop, rule.alternatives), None)
        entry = self._state(rule.name, StateRole.ENTRY, is_tail=True)
        block, back = (
            self._state(rule.name, StateRole.BLOCK),
            self._state(rule.name, StateRole.BACK),
        )
        alts = self._alts(choice, entry, rule.alternatives)
        entry.edges += (EpsilonTransition(block), EpsilonTransition(stop))
        tail = LeftRecursion(entry, block, back, self._alts(block, back, rule.tail))
        back.edges.append(EpsilonTransition(entry))
        return RuleSteps(rule, choice, alts, tail)

    def _alts(
        self, before: ATNState, after: ATNState, alternatives: tuple[Alternative, ...]
    ) -> tuple[AlternativeSteps, ...]:
        alts = []
        for alternative in alternatives:
            first = self._state(before.rule)
            before.edges.append(EpsilonTransition(first))
            if alternative.precedence:
                operator = self._state(before.rule)
                first.edges.append(PrecedenceTransition(operator, alternative.precedence))
                first = operator
            alts.append(
                AlternativeSteps(alternative.make, self._steps(first, after, alternative.parts))
            )
        return tuple(alts)

    def _steps(
        self, before: ATNState, after: ATNState, parts: tuple[Element, ...]
    ) -> tuple[Step, ...]:
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

    def _step(self, before: ATNState, after: ATNState, part: Element) -> Step:
        match part:
            case Terminal(kinds):
                before.edges.append(TokenTransition(after, kinds))
                return MatchToken(before, part)
            case RuleReference(rule):
                before.edges.append(RuleTransition(self._starts[rule], after, part.precedence))
                is_whole = bool(RULES[rule].tail) and not part.precedence
                self._stops[rule].edges.append(ReturnTransition(after, is_whole))
                return InvokeRule(before, part, after)
            case Optional(parts):
                choice, first = self._state(before.rule, StateRole.BLOCK), self._state(before.rule)
                before.edges.append(EpsilonTransition(choice))
                choice.edges += (EpsilonTransition(first), EpsilonTransition(after))
                return OptionalBlock(choice, self._steps(first, after, parts))
            case Repeated(parts, at_least_once):
                return self._loop(before, after, parts, at_least_once)

    def _loop(
        self, before: ATNState, after: ATNState, parts: tuple[Element, ...], at_least_once: bool
    ) -> StarLoop | PlusLoop:
        back, first = self._state(before.rule, StateRole.BACK), self._state(before.rule)
        steps = self._steps(first, back, parts)
        if at_least_once:
            block = self._state(before.rule, StateRole.BLOCK)
            before.edges.append(EpsilonTransition(block))
            block.edges.append(EpsilonTransition(first))
            back.edges += (EpsilonTransition(block), EpsilonTransition(after))
            return PlusLoop(block, back, steps)
        entry = self._state(before.rule, StateRole.ENTRY)
        before.edges.append(EpsilonTransition(entry))
        entry.edges += (EpsilonTransition(first), EpsilonTransition(after))
        back.edges.append(EpsilonTransition(entry))
        return StarLoop(entry, back, steps)


CEL_ATN: Final = ATN(RULES)
