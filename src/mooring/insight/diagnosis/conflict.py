"""A minimal conflict: what together is impossible, while without any one of it the rest is not.

    # member: a request (with its class), constraint, selector, taint, capacity asked for, or
    #   claim that holds devices; the change that takes it away stands for it
    # kept: the members that are still there; all others are taken away

Taking members away mostly helps, but not always: devices that a selector kept out may be ones that
another cannot judge. So nothing is inferred, everything is tried:

1. The members that are a fix by themselves are in every conflict. If they are one, it is the
   smallest there is.
2. Otherwise members are taken away, whole groups first and then halves of them, as long as the
   claims stay impossible for the same kind of reason; in two orders, and the smaller result counts.
3. Then one by one as long as the claims stay impossible at all, until no member can go. Only that
   makes it minimal, and it is known of each member from a trial.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Struct

from mooring.api.resource.v1 import DeviceToleration
from mooring.insight.diagnosis.changes import (
    AskCapacity,
    Change,
    DropConstraint,
    DropRequest,
    DropSelector,
    FreeClaim,
    Tolerate,
)
from mooring.insight.diagnosis.situation import Situation
from mooring.insight.diagnosis.surroundings import Surroundings
from mooring.insight.diagnosis.trials import Trials

Members = tuple[Change, ...]
Groups = Sequence[Sequence[Change]]

TAINTS_MAX = 24  # more kinds of taints than these are one member
SMALL = 2  # members; a conflict of so few is not tried to be beaten
EVERYTHING = DeviceToleration(operator="Exists")


class Conflict(Struct, frozen=True):
    """Members that together are impossible."""

    members: Members
    is_minimal: bool  # whether every member is known to be needed; not if trials were given up


def find_conflict(trials: Trials, around: Surroundings, fixing: Sequence[Change]) -> Conflict:
    """Return a minimal conflict of a situation that is known to be impossible.

    `fixing` are changes that are known to make it possible by themselves.
    """
    groups = member_groups(trials.situation, around)
    search = _Search(trials, members_of(trials.situation, around))
    needed = tuple(member for member in search.members if member in set(fixing))
    if needed and search.is_impossible(needed):
        return search.finished(needed)
    best = search.shrunk(groups)
    if len(best) > SMALL:
        best = min(best, search.shrunk(groups[::-1]), key=len)
    return search.finished(best)


def member_groups(situation: Situation, around: Surroundings) -> list[list[Change]]:
    """Return all members by kind; what tells most comes first."""
    asks = situation.asks()
    claims = list(enumerate(situation.claims))
    return [
        [
            DropRequest(number, index)
            for number, claim in claims
            for index in range(len(claim.spec.devices.requests or ()))
        ],
        [
            DropConstraint(number, index)
            for number, claim in claims
            for index in range(len(claim.spec.devices.constraints))
        ],
        [
            DropSelector(place, number)
            for place, details in asks
            for number in range(len(details.selectors))
        ],
        [FreeClaim(*key) for key in around.holders],
        list(map(Tolerate, tolerations(around))),
        [
            AskCapacity(place, name)
            for place, details in asks
            for name in (sorted(details.capacity.requests) if details.capacity else ())
        ],
    ]


def members_of(situation: Situation, around: Surroundings) -> Members:
    """Return all that may be a member of a conflict."""
    return tuple(member for group in member_groups(situation, around) for member in group)


def tolerations(around: Surroundings) -> list[DeviceToleration]:
    """Return a toleration for each kind of taint; one for all if there are too many."""
    if len(around.taints) > TAINTS_MAX:
        return [EVERYTHING]
    return [
        DeviceToleration(key=key, operator="Equal", value=value, effect=effect)
        for key, value, effect in around.taints
    ]


class _Search:
    """Takes members away from one situation."""

    def __init__(self, trials: Trials, members: Members) -> None:
        self.members = members
        self._trials = trials
        self._kind = trials.outcome().kind

    def is_impossible(self, kept: Members) -> bool:
        """Return whether what is kept is known to be impossible."""
        return self._trials.is_possible(self._gone(kept)) is False

    def shrunk(self, groups: Groups) -> Members:
        """Return what is left when nothing more can be taken away for the same kind of reason."""
        kept = self.members
        for group in groups:
            kept = self._without(kept, tuple(reversed(group)), self._is_alike)
        return kept

    def finished(self, kept: Members) -> Conflict:
        """Return the conflict, without all members of which it is known that they can go."""
        while True:
            loose = next((m for m in kept if self.is_impossible(_less(kept, (m,)))), None)
            if loose is None:
                break
            kept = _less(kept, (loose,))
        is_minimal = self.is_impossible(kept) and all(
            self._trials.is_possible(self._gone(_less(kept, (member,)))) for member in kept
        )
        return Conflict(kept, is_minimal)

    def _without(self, kept: Members, group: Members, may_go: Callable[[Members], bool]) -> Members:
        """Return what is kept without as much of the group as may go."""
        if not group:
            return kept
        less = _less(kept, group)
        if may_go(less):
            return less
        if len(group) == 1:
            return kept
        middle = len(group) // 2
        kept = self._without(kept, group[:middle], may_go)
        return self._without(kept, group[middle:], may_go)

    def _is_alike(self, kept: Members) -> bool:
        """Return whether what is kept is impossible, and in the way that the whole is."""
        return self._trials.outcome(self._gone(kept)).kind is self._kind

    def _gone(self, kept: Members) -> list[Change]:
        rest = set(kept)
        return [member for member in self.members if member not in rest]


def _less(kept: Members, gone: Sequence[Change]) -> Members:
    taken = set(gone)
    return tuple(member for member in kept if member not in taken)
