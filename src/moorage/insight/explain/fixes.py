"""Fixes: changes that make the claims possible, as a trial has shown.

1. Each candidate is tried by itself. Many claims to free, or taints to tolerate, are first tried
   all together, and then in halves.
2. One that helps is made as small as possible: the largest count that works, the largest amount.
3. If nothing helps by itself, pairs are tried that touch the conflict: a change that leaves the
   whole conflict unchanged cannot help.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, islice

from msgspec import Struct

from moorage.insight.explain.candidates import (
    candidates,
    counts_below,
    lists_for,
    rank,
    smaller_amounts,
)
from moorage.insight.explain.conflict import Conflict, Obstacles
from moorage.insight.explain.situation import (
    AskCapacity,
    DropAlternative,
    DropConstraint,
    DropRequest,
    DropSelector,
    FreeClaim,
    LowerCount,
    RequestPath,
    Situation,
    SituationChange,
    Tolerate,
)
from moorage.insight.explain.trials import Trials

FIXES_MAX = 8
ALIKE_MAX = 3  # fixes of one kind that are offered beside others
FEW = 4  # candidates of a kind that are tried one by one; more are bisected
PAIRS_MAX = 60
LISTS_MAX = 12


class Fix(Struct, frozen=True):
    """Changes that together make the claims possible: one, or two if no single one does."""

    changes: tuple[SituationChange, ...]


def asks_for_nothing(fix: Fix, situation: Situation) -> bool:
    """Return whether a fix drops the only request, which always works and never helps."""
    asked = sum(len(claim.spec.devices.requests or ()) for claim in situation.claims)
    return asked == 1 and any(isinstance(change, DropRequest) for change in fix.changes)


def single_changes(trials: Trials, obstacles: Obstacles) -> list[SituationChange]:
    """Return the candidates that help by themselves."""
    found: list[SituationChange] = []
    for group in _by_kind(candidates(trials.situation, obstacles)):
        if isinstance(group[0], Tolerate):
            found += _helping_tolerations(trials, group)
        elif isinstance(group[0], FreeClaim):
            found += _helping_among(trials, group)
        elif isinstance(group[0], AskCapacity):
            found += _helping_amounts(trials, group)
        else:
            found += [change for change in group if trials.is_possible([change])]
    return found


def single_fixes(trials: Trials, helping: Sequence[SituationChange]) -> list[Fix]:
    """Return fixes of one change, as small as possible, the least invasive first."""
    fixes = [Fix((_smallest(trials, change, ()),)) for change in helping]
    for change in helping:
        if isinstance(change, DropConstraint):
            fixes += [Fix((each,)) for each in _helping_lists(trials, change)]
    return sorted(fixes, key=lambda fix: _invasiveness(trials, fix))


def paired_fixes(
    trials: Trials, obstacles: Obstacles, conflict: Conflict, helping: Sequence[SituationChange]
) -> list[Fix]:
    """Return fixes of two changes, neither of which helps alone."""
    found: list[Fix] = []
    everything = [c for c in candidates(trials.situation, obstacles) if c not in helping]
    touching = [c for c in everything if any(_touches(c, member) for member in conflict.members)]
    rest = [change for change in everything if change not in touching]
    for first, second in islice(_pairs(touching, rest), PAIRS_MAX):
        if len(found) == FIXES_MAX:
            break
        if trials.is_possible([first, second]):
            first = _smallest(trials, first, (second,))
            second = _smallest(trials, second, (first,))
            found.append(Fix((first, second)))
    return sorted(found, key=lambda fix: _invasiveness(trials, fix))


def nearest(fixes: Sequence[Fix]) -> list[Fix]:
    """Return the first few fixes, with only a few of each kind if there are several kinds."""
    kinds = [tuple(type(change) for change in fix.changes) for fix in fixes]
    alike_max = ALIKE_MAX if len(set(kinds)) > 1 else FIXES_MAX
    shown = [
        fix for number, fix in enumerate(fixes) if kinds[:number].count(kinds[number]) < alike_max
    ]
    return shown[:FIXES_MAX]


def _by_kind(changes: Sequence[SituationChange]) -> list[list[SituationChange]]:
    groups: dict[type, list[SituationChange]] = {}
    for change in changes:
        groups.setdefault(type(change), []).append(change)
    return list(groups.values())


def _helping_among(trials: Trials, group: Sequence[SituationChange]) -> list[SituationChange]:
    """Return the changes that help alone, by bisection: if all together do not help, none does."""
    if len(group) <= FEW:
        return [change for change in group if trials.is_possible([change])]
    if trials.is_possible(group) is False:
        return []
    middle = len(group) // 2
    return [*_helping_among(trials, group[:middle]), *_helping_among(trials, group[middle:])]


def _helping_tolerations(trials: Trials, group: Sequence[SituationChange]) -> list[SituationChange]:
    """Return the tolerations that help, unless a narrower one does as well."""
    if len(group) > FEW and trials.is_possible(group) is False:
        return []
    found: list[SituationChange] = []
    tolerated: set[tuple[str, RequestPath | None]] = set()
    for change in group:
        assert isinstance(change, Tolerate)
        if not _is_covered(change, tolerated) and trials.is_possible([change]):
            found.append(change)
            tolerated.add((change.toleration.key, change.place))
    return found


def _helping_amounts(trials: Trials, group: Sequence[SituationChange]) -> list[SituationChange]:
    """Return the capacity requests that can be dropped or lowered.

    A device may give all of its capacity to a request without an amount; then only less helps.
    """
    found: list[SituationChange] = []
    for change in group:
        assert isinstance(change, AskCapacity)
        ways = (change, *smaller_amounts(trials.situation, change))
        found += islice((way for way in ways if trials.is_possible([way])), 1)
    return found


def _is_covered(change: Tolerate, tolerated: set[tuple[str, RequestPath | None]]) -> bool:
    if change.place is None:
        return bool(tolerated)
    return not change.toleration.value and any(
        place == change.place and change.toleration.key in ("", key) for key, place in tolerated
    )


def _pairs(
    touching: Sequence[SituationChange], rest: Sequence[SituationChange]
) -> Iterator[tuple[SituationChange, SituationChange]]:
    """Yield the pairs that touch the conflict, the least invasive first."""
    pairs = [*combinations(touching, 2), *((one, other) for one in touching for other in rest)]
    pairs.sort(key=lambda pair: sum(rank(change) ** 2 for change in pair))
    yield from pairs


def _touches(change: SituationChange, member: SituationChange) -> bool:
    """Return whether a change takes away a member of a conflict, or part of one."""
    if change == member:
        return True
    match change, member:
        case Tolerate(), Tolerate():
            return True
        case (
            (LowerCount(place=place) | DropAlternative(place=place)),
            DropRequest(claim=claim, request=request),
        ):
            return (place.claim, place.request) == (claim, request)
        case (
            (DropSelector(place=place) | AskCapacity(place=place)),
            DropRequest(claim=claim, request=request),
        ):
            return (place.claim, place.request) == (claim, request)
        case DropRequest(claim=claim, request=request), _:
            where = getattr(member, "place", None)
            return where is not None and (where.claim, where.request) == (claim, request)
    return False


def _smallest(
    trials: Trials, change: SituationChange, others: Sequence[SituationChange]
) -> SituationChange:
    """Return the smallest form of a change that helps."""
    match change:
        case LowerCount(place=place):
            return LowerCount(place, _largest_count(trials, place, others))
        case AskCapacity(amount=None):
            for less in smaller_amounts(trials.situation, change):
                if trials.is_possible([less, *others]):
                    return less
    return change


def _largest_count(trials: Trials, place: RequestPath, others: Sequence[SituationChange]) -> int:
    """Return a count that works while one more does not; one is known to work."""
    works, fails = 1, counts_below(trials.situation.details(place)) + 1
    while fails - works > 1:
        middle = (works + fails) // 2
        if trials.is_possible([LowerCount(place, middle), *others]):
            works = middle
        else:
            fails = middle
    return works


def _helping_lists(trials: Trials, change: DropConstraint) -> list[SituationChange]:
    """Return a list for each driver that helps as much as dropping the constraint."""
    situation = trials.situation
    constraint = situation.claims[change.claim].spec.devices.constraints[change.constraint]
    found: dict[str, SituationChange] = {}
    drivers = trials.drivers([change])  # of the devices that the claims would get without it
    for published in lists_for(situation, constraint, drivers)[:LISTS_MAX]:
        if published.driver not in found and trials.is_possible([published]):
            found[published.driver] = published
    return list(found.values())


def _invasiveness(trials: Trials, fix: Fix) -> tuple[float, ...]:
    """Return the sort key of a fix: one that drops the only request comes last."""
    is_all = asks_for_nothing(fix, trials.situation)
    return (is_all, *sorted((rank(change) for change in fix.changes), reverse=True))
