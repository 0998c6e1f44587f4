"""The search for the nodes of one gang, within one placement.

Kubernetes tries the pods of a gang one after the other, each on what the earlier ones leave, and
gives up when too few are left. It never revises an earlier pod's node; Moorage does, within a
number of steps, so that a gang that fits gets its nodes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from moorage.scheduler.cluster import Cluster
from moorage.scheduler.diagnosis import fit_message
from moorage.scheduler.pod_groups.gangs import Gang
from moorage.scheduler.reservation import IdSource, Reservation, release, reserve
from moorage.scheduler.scheduling_cycle import Attempt, Pending, Placed, attempt

STEPS_MAX = 1000

PodResult = Reservation | Pending


def find_nodes(
    cluster: Cluster,
    gang: Gang,
    ids: IdSource,
    *,
    nodes: Collection[str] | None = None,
    steps_max: int = STEPS_MAX,
) -> tuple[tuple[PodResult, ...], bool]:
    """Return the results of the pods that were tried, and whether enough have a node.

    If not enough have, none keeps its node; the results still say which of them had one.
    """
    results = _one_after_the_other(cluster, gang, ids, nodes)
    placed = [each for each in results if isinstance(each, Reservation)]
    if len(placed) >= gang.needed:
        return results, True
    _release(cluster, placed)
    if placed and len(gang.pods) >= gang.needed:
        found = _Search(cluster, gang, ids, nodes, steps_max).run()
        if found is not None:
            return found, True
    return results, False


def _one_after_the_other(
    cluster: Cluster, gang: Gang, ids: IdSource, nodes: Collection[str] | None
) -> tuple[PodResult, ...]:
    """Place each pod on the resources that earlier ones leave, while enough can get a node."""
    results: list[PodResult] = []
    placed: list[Reservation] = []
    try:
        for number, pod in enumerate(gang.pods):
            if len(placed) + len(gang.pods) - number < gang.needed:
                break
            ready = attempt(cluster, pod, nodes)
            outcome = ready if isinstance(ready, Pending) else ready.best(alone=False)
            if isinstance(outcome, Placed):
                placed.append(reserve(cluster, outcome, ids))
                results.append(placed[-1])
            else:
                results.append(_without_node(outcome))
    except BaseException:  # nothing is left behind, whatever happens
        _release(cluster, placed)
        raise
    return tuple(results)


def _release(cluster: Cluster, placed: Sequence[Reservation]) -> None:
    for reservation in reversed(placed):
        release(cluster, reservation)


def _without_node(outcome: Attempt | Pending) -> Pending:
    """Return a pod that gets no node, with the message for members of a group."""
    if not isinstance(outcome, Pending):
        return outcome.rejected(alone=False)
    is_message = bool(outcome.message) and not outcome.is_fault
    message = fit_message(outcome.diagnosis) if is_message else outcome.message
    return replace(outcome, message=message)


class _Try(Struct):
    """One pod of the gang in the search: the nodes that are left to try, and its result."""

    attempt: Attempt | Pending
    nodes: Iterator[str]
    result: PodResult | None = None  # None: not decided, or taken back


class _Search:
    """Backtracks over earlier pods' nodes until enough pods have one.

    Each pod tries its nodes, the best first, and at last to go without; so does the next on what
    is left. A pod with nothing left to try sends the search back to the one before it.
    """

    def __init__(
        self,
        cluster: Cluster,
        gang: Gang,
        ids: IdSource,
        nodes: Collection[str] | None,
        steps_max: int,
    ) -> None:
        self._cluster = cluster
        self._gang = gang
        self._ids = ids
        self._nodes = nodes
        self._steps_left = steps_max
        self._tries: list[_Try] = []

    def run(self) -> tuple[PodResult, ...] | None:
        """Return the result of each pod once enough have a node; None if that is not found."""
        try:
            return self._run()
        except BaseException:
            results = [each.result for each in self._tries]
            _release(self._cluster, [each for each in results if isinstance(each, Reservation)])
            raise

    def _run(self) -> tuple[PodResult, ...] | None:
        self._begin()
        while self._tries:
            if not self._advance(self._tries[-1]):
                self._tries.pop()
            elif len(self._tries) == len(self._gang.pods):
                return tuple(each.result for each in self._tries if each.result is not None)
            else:
                self._begin()
        return None

    def _begin(self) -> None:
        ready = attempt(self._cluster, self._gang.pods[len(self._tries)], self._nodes)
        nodes = () if isinstance(ready, Pending) else ready.choices()
        self._tries.append(_Try(ready, iter(nodes)))

    def _advance(self, this: _Try) -> bool:
        """Release the pod's node and devices, and try the next; False if there is none."""
        if isinstance(this.result, Pending):
            return False
        if this.result is not None:
            release(self._cluster, this.result)
            this.result = None
        if not isinstance(this.attempt, Pending):
            for node in this.nodes:
                if self._steps_left <= 0:
                    return False
                self._steps_left -= 1
                placed = this.attempt.on(node)
                if placed is not None:
                    this.result = reserve(self._cluster, placed, self._ids)
                    return True
        if self._steps_left <= 0 or self._most_placed() < self._gang.needed:
            return False
        this.result = _without_node(this.attempt)
        return True

    def _most_placed(self) -> int:
        """Return how many pods can get a node if the last one tried gets none."""
        placed = sum(isinstance(each.result, Reservation) for each in self._tries)
        return placed + len(self._gang.pods) - len(self._tries)
