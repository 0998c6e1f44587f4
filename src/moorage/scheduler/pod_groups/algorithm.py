"""The algorithm for groups: which placement each group of a tree gets, or why none.

A group is tried in each of its placements, and gets the best that has room for enough of its pods.
The groups of a composite group are tried one after the other within each of its placements, and
each on what the earlier ones leave. What does not succeed is undone at once.

    # status: how the attempt of a group ended, in Kubernetes' words
    # held: the reservations that are made for a group so far
"""

from __future__ import annotations

from collections.abc import Collection

from msgspec import Struct, field

from moorage.scheduler.cluster import Cluster
from moorage.scheduler.group_forest import GroupKey
from moorage.scheduler.plugins.registry import Profile
from moorage.scheduler.pod_groups.gang_search import STEPS_MAX, PodResult, find_nodes
from moorage.scheduler.pod_groups.gangs import CompositeGang, Gang, Unit, pods_of, unit_key
from moorage.scheduler.pod_groups.placements import (
    ALL_PERCENT,
    Placement,
    PlacementError,
    allocated_score,
    placements_of,
)
from moorage.scheduler.reservation import IdSource, Reservation, release
from moorage.scheduler.scheduling_cycle import Pending

UNSCHEDULABLE = "pod group is unschedulable"
NO_PLACEMENTS = "no feasible placements found"


class GroupStatus(Struct, eq=False):
    """How an attempt ended: its message is the error, if there is one, and the reasons.

    A composite group that fails shares its status with the groups below it that would have
    succeeded; a reason that is added for each of them appears several times, as in Kubernetes.
    """

    is_success: bool = False
    error: str = ""
    reasons: list[str] = field(default_factory=list)
    is_fault: bool = False  # it failed for a reason outside the groups

    @property
    def message(self) -> str:
        """The error and all reasons."""
        return ", ".join([self.error, *self.reasons] if self.error else self.reasons)

    @property
    def error_text(self) -> str:
        """The error, or else all reasons."""
        return self.error or self.message


class GroupResult(Struct, eq=False):
    """The result of a group, and of its pods that were tried."""

    unit: Unit
    status: GroupStatus
    pods: tuple[PodResult, ...] = ()
    has_placed: bool = False  # some pod of it got a node


Results = dict[GroupKey, GroupResult]
Held = list[Reservation]


class GroupAlgorithm:
    """Tries the groups of a tree."""

    def __init__(self, cluster: Cluster, ids: IdSource, *, steps_max: int = STEPS_MAX) -> None:
        self._cluster = cluster
        self._ids = ids
        self._steps_max = steps_max
        self._made: dict[int, Reservation] = {}  # all that are not released, by identity

    def run(self, root: Unit) -> tuple[Results, Held]:
        """Return the result of every group that was tried, and what is reserved for them."""
        results: Results = {}
        try:
            result, held = self._place(root, None, results)
        except BaseException:  # nothing is left behind, whatever happens
            self.undo(list(self._made.values()))
            raise
        results[unit_key(root)] = result
        if result.status.is_success and not result.has_placed:
            result.status = GroupStatus(error=UNSCHEDULABLE)
        if not result.status.is_success:
            self.undo(held)
        return results, held

    def undo(self, held: Held) -> None:
        """Release reservations, the last first."""
        while held:
            reservation = held.pop()
            self._made.pop(id(reservation), None)
            release(self._cluster, reservation)

    # --- placements -----------------------------------------------------------------------------

    def _place(
        self, unit: Unit, nodes: Collection[str] | None, results: Results
    ) -> tuple[GroupResult, Held]:
        """Return the result of a group in the best of its placements."""
        if not (self._cluster.features.group_placements and self._profile(unit).has_placements):
            return self._try(unit, nodes, results)
        try:
            placements = placements_of(self._cluster, unit, nodes)
        except PlacementError as error:
            return GroupResult(unit, GroupStatus(error=str(error), is_fault=True)), []
        if not placements:
            return GroupResult(unit, GroupStatus(reasons=[NO_PLACEMENTS])), []
        if len(placements) > 1:
            return self._place_best(unit, placements, results)
        result, held = self._try(unit, placements[0].nodes, results)
        if not result.status.is_success and not result.status.is_fault:
            result.status = _not_available(placements, result)
        return result, held

    def _place_best(
        self, unit: Unit, placements: list[Placement], results: Results
    ) -> tuple[GroupResult, Held]:
        """Try every placement, and then the best once more; report the first if none has room."""
        first: tuple[GroupResult, Results] | None = None
        scores: list[tuple[int, int, Placement]] = []  # pods placed, capacity in use
        for placement in placements:
            below: Results = {}
            result, held = self._try(unit, placement.nodes, below)
            if result.status.is_fault:
                return result, held
            if result.status.is_success:
                count = len(unit.nodes) + len(held)
                resources = self._profile(unit).placement_scores.resources
                score = allocated_score(self._cluster, placement, resources)
                scores.append((count, score, placement))
            self.undo(held)
            first = first or (result, below)
        assert first is not None
        if not scores:
            result, below = first
            results.update(below)
            result.status = _not_available(placements, result)
            return result, []
        most = max(count for count, _, _ in scores) or 1
        weights = self._profile(unit).placement_scores
        *_, best = max(
            scores,
            key=lambda each: (
                weights.pods_weight * (each[0] * ALL_PERCENT // most) + weights.fit_weight * each[1]
            ),
        )
        return self._try(unit, best.nodes, results)

    def _profile(self, unit: Unit) -> Profile:
        """Return the profile of a group's pods, which all name the same scheduler."""
        pod = next(iter(pods_of(unit)), None)
        profiles = self._cluster.profiles
        return next(iter(profiles.values())) if pod is None else self._cluster.profile_for(pod)

    # --- one placement --------------------------------------------------------------------------

    def _try(
        self, unit: Unit, nodes: Collection[str] | None, results: Results
    ) -> tuple[GroupResult, Held]:
        if isinstance(unit, Gang):
            return self._try_gang(unit, nodes)
        return self._try_composite(unit, nodes, results)

    def _try_gang(self, gang: Gang, nodes: Collection[str] | None) -> tuple[GroupResult, Held]:
        if len(gang.pods) + gang.scheduled < gang.minimum:
            reason = too_few(gang, gang.scheduled, len(gang.pods))
            return GroupResult(gang, GroupStatus(error=UNSCHEDULABLE, reasons=[reason])), []
        pods, is_placed = find_nodes(
            self._cluster, gang, self._ids, nodes=nodes, steps_max=self._steps_max
        )
        placed = [each for each in pods if isinstance(each, Reservation)]
        if is_placed and (placed or not any(map(_is_fault, pods))):
            self._made.update((id(each), each) for each in placed)
            return GroupResult(gang, GroupStatus(is_success=True), pods, bool(placed)), placed
        status = _fault_of(pods)
        if status is None:
            tried = gang.scheduled + len(placed)
            status = GroupStatus(reasons=[too_few(gang, tried, len(gang.pods) - len(pods))])
        return GroupResult(gang, status, pods), []

    def _try_composite(
        self, unit: CompositeGang, nodes: Collection[str] | None, results: Results
    ) -> tuple[GroupResult, Held]:
        placed, left, held = 0, len(unit.children), Held()
        has_placed = False
        for child in unit.children:
            if placed + left < unit.minimum:
                break
            result, more = self._place(child, nodes, results)
            results[unit_key(child)] = result
            held += more
            if result.status.is_fault:
                text = "composite pod group evaluation failed due to child error: "
                self.undo(held)
                status = GroupStatus(error=text + result.status.error_text, is_fault=True)
                return GroupResult(unit, status), held
            left -= 1
            placed += result.status.is_success
            has_placed = has_placed or result.has_placed
        if placed + left < unit.minimum:
            self.undo(held)
            return GroupResult(unit, GroupStatus(reasons=[too_few(unit, placed, left)])), held
        return GroupResult(unit, GroupStatus(is_success=True), has_placed=has_placed), held


def too_few(unit: Unit, placed: int, left: int) -> str:
    """Return why a group cannot have enough."""
    counts = f"{placed} scheduled, {left} remaining"
    return f"minCount ({unit.minimum}) cannot be satisfied: {counts}"


def _not_available(placements: list[Placement], result: GroupResult) -> GroupStatus:
    count = f"0/{len(placements)} placements are available"
    text = f"{count}, first placement status: {result.status.error_text}"
    return GroupStatus(error=UNSCHEDULABLE, reasons=[text])


def _is_fault(result: PodResult) -> bool:
    return isinstance(result, Pending) and result.is_fault


def _fault_of(pods: tuple[PodResult, ...]) -> GroupStatus | None:
    for each in pods:
        if isinstance(each, Pending) and each.is_fault:
            text = f"failed to schedule other pod from a pod group: {each.message}"
            return GroupStatus(error=text, is_fault=True)
    return None
