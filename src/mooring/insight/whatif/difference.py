"""Two worlds, planned and compared: what becomes of every pod, and which devices are free."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import StrEnum

from msgspec import Struct

from mooring.insight.concerns import Concern, full_name
from mooring.insight.devices import holdings_in
from mooring.insight.plan.planner import Plan
from mooring.insight.snapshot.snapshot import Snapshot
from mooring.insight.whatif.changes import Change
from mooring.insight.whatif.departures import Departure, Fate
from mooring.insight.whatif.freedoms import Freedom, freedoms, missing_in
from mooring.insight.whatif.leavings import (
    Leaving,
    Preview,
    leaving_again,
    leavings_of,
    preview_of,
)
from mooring.insight.whatif.standings import Standing, standings_of
from mooring.insight.whatif.worlds import World, apply
from mooring.validation.context import Context

MakePlan = Callable[[Snapshot], Plan]


class Turn(StrEnum):
    """How a pod fares with the changes, compared to without."""

    GAINS = "gains"  # gets a node
    LOSES = "loses"  # has no node any more
    MOVES = "moves"  # to another node or other devices
    RESTARTS = "restarts"  # leaves, and comes back to where it was
    WAITS = "waits"  # has no node, for another reason
    LOST = "lost"  # is not made anew
    GONE = "gone"  # goes with its node
    DELETED = "deleted"  # as was asked for
    NEW = "new"  # is there only with the changes


WORSE = frozenset({Turn.LOSES, Turn.LOST})
_TURNS = {Fate.LOST: Turn.LOST, Fate.DELETED: Turn.DELETED}


class PodTurn(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """A pod that fares otherwise."""

    pod: str
    turn: Turn
    is_worse: bool
    before: Standing | None = None
    after: Standing | None = None
    why: str = ""  # it leaves
    again: str = ""  # why it would have to leave again


class Missing(Struct, frozen=True):
    """A device that claims keep and that no slice has any more."""

    device: str
    claims: tuple[str, ...]


class Difference(Struct, frozen=True, rename="camel"):
    """What changes come to."""

    pods: tuple[PodTurn, ...]
    evictions: tuple[Leaving, ...]
    rules: tuple[Preview, ...]  # that are new
    devices: tuple[Freedom, ...]
    missing: tuple[Missing, ...]
    same: int  # pods that fare no different
    leaving_anyway: tuple[str, ...]  # pods that leave also without the changes
    concerns: tuple[Concern, ...]

    @property
    def is_worse(self) -> bool:
        """Whether some pod is worse off."""
        return any(each.is_worse for each in self.pods)


def difference(
    snapshot: Snapshot, changes: Iterable[Change], context: Context, make_plan: MakePlan
) -> Difference:
    """Return what changes come to, or raise UnknownNameError or TooManyPodsError."""
    after = apply(snapshot, changes, context)
    return compare(apply(snapshot, (), context), after, context, make_plan)


def compare(before: World, after: World, context: Context, make_plan: MakePlan) -> Difference:
    """Return how two worlds differ once both are planned."""
    old, new = make_plan(before.snapshot), make_plan(after.snapshot)
    again = leaving_again(new, context)
    for name in leaving_again(old, context):
        again.pop(name, None)
    standings = standings_of(old)
    anyway = _departed(before)
    # Who leaves in both worlds fares the same, unless it is told to be deleted.
    departed = {
        name: each
        for name, each in _departed(after).items()
        if name not in anyway or each.fate is Fate.DELETED
    }
    turns = tuple(_turns(standings, standings_of(new), departed, again))
    had, has = holdings_in(old.after, context), holdings_in(new.after, context)
    missed = missing_in(had)
    return Difference(
        pods=turns,
        evictions=tuple(each for d in departed.values() for each in leavings_of(d, context.now)),
        rules=tuple(preview_of(each, context.now) for each in after.rules),
        devices=tuple(freedoms(had, has, _cordoned(after.snapshot))),
        missing=tuple(
            Missing(device, claims)
            for device, claims in missing_in(has).items()
            if device not in missed
        ),
        same=len(standings) - sum(each.before is not None for each in turns),
        leaving_anyway=tuple(anyway),
        concerns=_unique((*old.concerns, *new.concerns, *after.concerns)),
    )


def _departed(world: World) -> dict[str, Departure]:
    return {full_name(each.pod): each for each in world.departures}


def _cordoned(snapshot: Snapshot) -> set[str]:
    return {node.metadata.name for node in snapshot.nodes if node.spec.unschedulable}


def _unique(concerns: Iterable[Concern]) -> tuple[Concern, ...]:
    return tuple(dict.fromkeys(concerns))


# --- pods -------------------------------------------------------------------------------------


def _turns(
    before: Mapping[str, Standing],
    after: Mapping[str, Standing],
    departures: Mapping[str, Departure],
    again: Mapping[str, str],
) -> Iterator[PodTurn]:
    for name in dict.fromkeys((*before, *after)):
        was, is_, departure = before.get(name), after.get(name), departures.get(name)
        turn = _turn(was, is_, departure)
        if turn is None and name in again:
            turn = Turn.MOVES
        if turn is not None:
            why = departure.order.why if departure is not None else ""
            is_worse = turn in WORSE or (name in again and was is not None)
            yield PodTurn(name, turn, is_worse, was, is_, why, again.get(name, ""))


def _turn(was: Standing | None, is_: Standing | None, left: Departure | None) -> Turn | None:
    """Return how a pod fares; None if no different."""
    if was is None:
        return Turn.NEW
    if is_ is None:
        return Turn.GONE if left is None else _TURNS.get(left.fate, Turn.GONE)
    match was.node, is_.node:
        case None, None:
            return Turn.WAITS if was.message != is_.message else None
        case None, _:
            return Turn.GAINS
        case _, None:
            return Turn.LOSES
    if (was.node, was.devices) != (is_.node, is_.devices):
        return Turn.MOVES
    return None if left is None else Turn.RESTARTS
