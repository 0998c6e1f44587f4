"""Workloads of which some pods have a node and others find none: fewer pods at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from moorage.claims.pod_claims import controller_of, group_name
from moorage.insight.answer.changes.edits import Edit, change_of
from moorage.insight.answer.changes.sources import POD_COUNTS, nodes_of_siblings
from moorage.insight.answer.finding import Case, FixRank, Proposal
from moorage.insight.messages import counted


class Siblings(NamedTuple):
    """The workload of a pending pod, and how many of its pods have a node."""

    workload: Any
    field: str  # that says how many pods there are
    wanted: int
    placed: int

    @property
    def name(self) -> str:
        """The workload as messages name it."""
        return f"{self.workload.kind} {self.workload.metadata.name}"


def siblings_of(case: Case) -> Siblings | None:
    """Return the workload of the pod, if it is one whose pods are counted."""
    source = case.sources.of_pod(case.pod)
    field = None if source is None else POD_COUNTS.get(source.value.kind)
    if source is None or field is None:
        return None
    placed = len(nodes_of_siblings(case.pod, case.snapshot, case.cluster))
    wanted = getattr(source.value.spec, field)
    return Siblings(source.value, field, 1 if wanted is None else wanted, placed)


def fewer_pods(case: Case, *, hint: str = "") -> Iterator[Proposal]:
    """Yield the workload with as many pods as have a node."""
    found = siblings_of(case)
    if found is None or not 0 < found.placed < found.wanted:
        return
    change = change_of(found.workload, Edit(("spec", found.field), found.placed))
    if found.field == "parallelism":
        text = f"run {counted(found.placed, 'pod')} of {found.name} at a time: parallelism "
        text += f"{found.placed} instead of {found.wanted}"
    else:
        text = f"run {counted(found.placed, 'replica')} of {found.name} instead of {found.wanted}"
    yield Proposal(f"{text}{hint}", FixRank.LESS, (change,))


def of_workload(case: Case, cause: str) -> str:
    """Return a cause with the number of pods of the workload that have a node.

    A scheduler does not know workloads, so it is not said of pods that one has seen.
    """
    own = siblings_of(case) if case.is_new else None
    if own is None or not 0 < own.placed < own.wanted:
        return cause
    return f"{own.placed} of {own.wanted} pods of {own.name} fit; {cause}"


def sibling_names(case: Case) -> set[str]:
    """Return the names of the pods that the same controller created, or of the same group."""
    owner, group = controller_of(case.pod.metadata), group_name(case.pod)
    return {
        each.metadata.name
        for each in case.snapshot.pods
        if each.metadata.namespace == case.namespace
        and (
            (group is not None and group_name(each) == group)
            or (
                owner is not None
                and (other := controller_of(each.metadata)) is not None
                and other.uid == owner.uid
            )
        )
    }
