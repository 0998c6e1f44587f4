"""Prediction: which alternative to take, with as much lookahead as it needs.

All alternatives are followed at once, token by token, until one is left. This is ANTLR's algorithm,
ALL(*), which cel-go's parser uses; errors depend on it, so it is followed to the letter:

1. SLL: follow the alternatives without the context of the rule: behind its end, everything that can
   follow it anywhere in the grammar is possible.
2. One alternative left: predict it. None left: the first one on which the rule could end before the
   wrong token; the error then belongs to a rule further out. If there is none, the error is here.
3. LL: if alternatives conflict, start again from the first token, with the full context. A conflict
   now means that the text is ambiguous, and the first alternative is right.

    # configuration: a state on an alternative, with the return addresses of the rules entered
    # stack: return addresses, linked from the newest; None is where prediction began
    # dipped: it has left the rule in which prediction began
    # whole: it left that rule as a whole, see ReturnTransition
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import ClassVar, Final, NamedTuple

from moorage.cel.lang.lexer import TokenKind
from moorage.cel.lang.recovery.atn import (
    ATNState,
    PrecedenceTransition,
    ReturnTransition,
    RuleTransition,
    StateRole,
    TokenTransition,
)

# How many steps all predictions for one text may take together. Only texts made for it need more;
# their errors may then be other ones than cel-go's.
STEPS_MAX: Final = 20_000
_MEMO_MAX: Final = 20_000


class NoViableAlternative(Exception):  # noqa: N818 - a signal of the machine
    """No alt is left; `distance` is how far ahead the token is that ended the last."""

    def __init__(self, distance: int) -> None:
        self.distance = distance


class _Exhausted(Exception):  # noqa: N818 - handled here
    """All steps are spent."""


@dataclass(frozen=True, slots=True, eq=False)
class ContextFrame:
    """A return address; equal frames are the same object."""

    follow: ATNState
    below: Stack


Stack = ContextFrame | None


class _ConfigKey(NamedTuple):
    state: ATNState
    alt: int


class _Configs(NamedTuple):
    stacks: frozenset[Stack]
    is_dipped: bool
    is_whole: bool


_ConfigSet = dict[_ConfigKey, _Configs]
# A thread with one stack on its alt along edges that take no token. `is_home`: it is still in the
# rule in which we began, and in no rule entered from there.
_Config = tuple[ATNState, int, Stack, bool, bool, bool]  # state, alt, stack, dipped, whole, home


@dataclass(slots=True, eq=False)
class _DFAState:
    """Where all threads are after some tokens, and what that means for the choice."""

    threads: _ConfigSet
    alt: int | None  # the only one left
    is_conflict: bool
    next: dict[TokenKind, _DFAState | None] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class _DFACache:
    """What predictions for one text leave for the next."""

    frames: dict[tuple[ATNState, Stack], ContextFrame] = field(default_factory=dict)
    starts: dict[tuple[ATNState, int], _DFAState] = field(default_factory=dict)
    nodes: dict[frozenset[tuple[_ConfigKey, _Configs]], _DFAState] = field(default_factory=dict)

    _current: ClassVar[_DFACache]

    @classmethod
    def current(cls) -> _DFACache:
        """Return the memo to use; a full one is thrown away."""
        if len(cls._current.frames) + len(cls._current.nodes) > _MEMO_MAX:
            cls._current = cls()
        return cls._current


_DFACache._current = _DFACache()


@cache
def by_first(choice: ATNState) -> dict[TokenKind, int] | None:
    """Return the alternative for each first token, or None if one token does not decide."""
    alts: dict[TokenKind, int] = {}
    for alt, edge in enumerate(choice.edges, start=1):
        kinds = _first(edge.target)
        if kinds is None or not alts.keys().isdisjoint(kinds):
            return None
        alts |= dict.fromkeys(kinds, alt)
    return alts


def _first(state: ATNState) -> set[TokenKind] | None:
    """Return what can come next, here or in whatever follows the rule; None if it depends."""
    kinds: set[TokenKind] = set()
    seen, todo = {state}, [state]
    while todo:
        for edge in todo.pop().edges:
            if isinstance(edge, PrecedenceTransition):
                return None
            if isinstance(edge, TokenTransition):
                kinds |= edge.kinds
            elif edge.target not in seen:
                seen.add(edge.target)
                todo.append(edge.target)
    return kinds


class Predictor:
    """Predicts for one text; `ahead(n)` is the kind of the token n behind the current one."""

    def __init__(self, ahead: Callable[[int], TokenKind]) -> None:
        self._ahead = ahead
        self._steps_left = STEPS_MAX
        self._memo = _DFACache.current()

    def frame(self, follow: ATNState, below: Stack) -> ContextFrame:
        """Return the stack with one more return address."""
        frames, key = self._memo.frames, (follow, below)
        return frames.get(key) or frames.setdefault(key, ContextFrame(follow, below))

    def predict(self, choice: ATNState, precedence: int, stack: Stack) -> int:
        """Return the number of the alt to go, from 1; raises NoViableAlternative."""
        node = self._memo.starts.get((choice, precedence))
        if node is None:
            threads = self._start(choice, precedence, None, is_full=False)
            node = self._memo.starts[choice, precedence] = self._node(threads)
        distance = 0
        try:
            while True:
                after = self._advance(node, self._ahead(distance))
                if after is None:
                    return _last_resort(node.threads, distance)
                if after.alt:
                    return after.alt
                if after.is_conflict:
                    return self._predict_fully(choice, precedence, stack)
                node = after
                distance += 1
        except _Exhausted:
            return min(place.alt for place in node.threads)

    def _advance(self, node: _DFAState, kind: TokenKind) -> _DFAState | None:
        """Return the node behind a token."""
        if kind not in node.next:
            threads = self._reach(node.threads, kind, is_full=False)
            node.next[kind] = self._node(threads) if threads else None
        return node.next[kind]

    def _node(self, threads: _ConfigSet) -> _DFAState:
        """Return the node of threads; equal threads have the same."""
        key = frozenset(threads.items())
        node = self._memo.nodes.get(key)
        if node is None:
            alts = {place.alt for place in threads}
            is_decided = len(alts) == 1
            alt = alts.pop() if is_decided else None
            node = _DFAState(threads, alt, not is_decided and _is_conflict(threads))
            self._memo.nodes[key] = node
        return node

    def _predict_fully(self, choice: ATNState, precedence: int, stack: Stack) -> int:
        """Return the alt to go, knowing who entered the rule."""
        threads = self._start(choice, precedence, stack, is_full=True)
        distance = 0
        while True:
            reached = self._reach(threads, self._ahead(distance), is_full=True)
            if not reached:
                return _last_resort(threads, 0)
            threads = reached
            first_alts = {min(alts) for alts in _alike(threads)}
            if len(first_alts) == 1:
                return first_alts.pop()
            distance += 1

    # --- threads ------------------------------------------------------------------------------

    def _start(
        self, choice: ATNState, precedence: int, stack: Stack, *, is_full: bool
    ) -> _ConfigSet:
        """Return where the alts begin."""
        closure = _Closure(self, is_full=is_full, choice=choice, precedence=precedence)
        for alt, edge in enumerate(choice.edges, start=1):
            closure.run((edge.target, alt, stack, False, False, True))
        threads = closure.threads()
        return _prefer_operators(threads) if choice.is_tail and not is_full else threads

    def _reach(self, threads: _ConfigSet, kind: TokenKind, *, is_full: bool) -> _ConfigSet:
        """Return where the threads are behind a token."""
        items: list[_Config] = []
        stopped: _ConfigSet = {}
        for place, thread in threads.items():
            if place.state.role is StateRole.STOP:
                if is_full or kind is TokenKind.EOF:
                    stopped[place] = thread
                continue
            items += (
                (edge.target, place.alt, stack, thread.is_dipped, thread.is_whole, False)
                for edge in place.state.edges
                if isinstance(edge, TokenTransition) and kind in edge.kinds
                for stack in thread.stacks
            )
        closure = _Closure(self, is_full=is_full)
        if not stopped and kind is not TokenKind.EOF and len({item[1] for item in items}) == 1:
            for item in items:
                closure.add(item)
            return closure.threads()
        for item in items:
            closure.run(item)
        reached = closure.threads()
        if kind is TokenKind.EOF:
            reached = {p: t for p, t in reached.items() if p.state.role is StateRole.STOP}
        if is_full and any(place.state.role is StateRole.STOP for place in reached):
            return reached
        return stopped | reached

    def spend(self) -> None:
        """Count a step."""
        self._steps_left -= 1
        if self._steps_left < 0:
            raise _Exhausted


class _Closure:
    """Follows all edges that take no token."""

    def __init__(
        self,
        predictor: Predictor,
        *,
        is_full: bool,
        choice: ATNState | None = None,
        precedence: int = 0,
    ) -> None:
        self._predictor = predictor
        self._is_full = is_full
        # The rule whose operators are being chosen, if that is the choice.
        self._tail_rule = choice.rule if choice and choice.is_tail else None
        self._precedence = precedence
        self._seen: set[_Config] = set()
        self._arrived: dict[_ConfigKey, list[_Config]] = {}

    def threads(self) -> _ConfigSet:
        """Return all that arrived."""
        threads: _ConfigSet = {}
        for place, items in self._arrived.items():
            stacks = frozenset(item[2] for item in items)
            threads[place] = _Configs(
                stacks if self._is_full else _absorb(self._predictor, stacks),
                any(item[3] for item in items),
                any(item[4] for item in items),
            )
        return threads

    def add(self, item: _Config) -> None:
        """Note that a thread arrived where the next token decides."""
        self._arrived.setdefault(_ConfigKey(item[0], item[1]), []).append(item)

    def run(self, item: _Config) -> None:
        """Follow a thread to all places where the next token decides."""
        todo = [item]
        while todo:
            item = todo.pop()
            if item in self._seen:
                continue
            self._seen.add(item)
            self._predictor.spend()
            for state in item[0].ends:
                if state.role is StateRole.STOP:
                    todo += self._leave(state, item)
                else:
                    todo += self._enter(state, item)

    def _enter(self, state: ATNState, item: _Config) -> Iterator[_Config]:
        """Yield where it goes on at a state, in rules that begin there."""
        _, alt, stack, is_dipped, is_whole, is_home = item
        for edge in state.edges:
            match edge:
                case TokenTransition():
                    self.add((state, alt, stack, is_dipped, is_whole, is_home))
                case RuleTransition(target, follow):
                    frame = self._predictor.frame(follow, stack)
                    yield target, alt, frame, is_dipped, is_whole, False
                case PrecedenceTransition(target, precedence):
                    if not is_home or precedence >= self._precedence:
                        yield target, alt, stack, is_dipped, is_whole, is_home

    def _leave(self, stop: ATNState, item: _Config) -> Iterator[_Config]:
        """Yield where it goes on behind the end of a rule."""
        _, alt, stack, is_dipped, is_whole, is_home = item
        if stack is not None:
            yield stack.follow, alt, stack.below, is_dipped, is_whole, is_home
        elif self._is_full or not stop.edges:
            self.add((stop, alt, stack, is_dipped, is_whole, is_home))
        else:
            for edge in stop.edges:
                assert isinstance(edge, ReturnTransition)
                leaves_whole = edge.is_whole and stop.rule == self._tail_rule
                yield edge.target, alt, None, True, is_whole or leaves_whole, False


def _absorb(predictor: Predictor, stacks: frozenset[Stack]) -> frozenset[Stack]:
    """Return stacks without those that another one covers: below its last frame anything goes."""
    if len(stacks) < 2:
        return stacks
    below: dict[ATNState, set[Stack]] = {}
    for stack in stacks:
        if stack is None:
            return frozenset((None,))
        below.setdefault(stack.follow, set()).add(stack.below)
    return frozenset(
        predictor.frame(follow, rest)
        for follow, rests in below.items()
        for rest in _absorb(predictor, frozenset(rests))
    )


def _last_resort(threads: _ConfigSet, distance: int) -> int:
    """Return the first alt on which the rule could end before the token that fits nowhere."""
    ended = [
        place.alt
        for place, thread in threads.items()
        if thread.is_dipped or (place.state.role is StateRole.STOP and None in thread.stacks)
    ]
    if not ended:
        raise NoViableAlternative(distance)
    return min(ended)


def _prefer_operators(threads: _ConfigSet) -> _ConfigSet:
    """Return threads without those that leave a rule only to read the same operator outside."""
    return {
        place: thread
        for place, thread in threads.items()
        if place.alt == 1
        or thread.is_whole
        or (first := threads.get(_ConfigKey(place.state, 1))) is None
        or first.stacks != thread.stacks
    }


def _alike(threads: _ConfigSet) -> list[set[int]]:
    """Return the alts of all threads, those together that nothing distinguishes."""
    groups: dict[tuple[ATNState, frozenset[Stack]], set[int]] = {}
    for place, thread in threads.items():
        groups.setdefault((place.state, thread.stacks), set()).add(place.alt)
    return list(groups.values())


def _is_conflict(threads: _ConfigSet) -> bool:
    """Return whether alts have become indistinguishable as far as can be seen."""
    if all(place.state.role is StateRole.STOP for place in threads):
        return True
    alts: dict[ATNState, set[int]] = {}
    for place in threads:
        alts.setdefault(place.state, set()).add(place.alt)
    if any(len(found) == 1 for found in alts.values()):
        return False
    return any(len(group) > 1 for group in _alike(threads))
