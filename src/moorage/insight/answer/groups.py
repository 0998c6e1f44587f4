"""Pods that wait for the same reason, told together.

    pods of one workload with the same cause           97 pods of deployment train
    other pods with the same cause and the same fixes  3 pods

The fixes of a group are those of its first pod. Where pods have nothing in common but their
mistake, a fix of the group makes the change for each of them.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Final, NamedTuple

from msgspec.structs import replace

from moorage.api.core.pod import Pod
from moorage.claims.pod_claims import controller_of
from moorage.insight.answer.changes.edits import merged
from moorage.insight.answer.changes.sources import Sources
from moorage.insight.answer.finding import Answer
from moorage.insight.explain.pods import Explanation
from moorage.insight.explain.report import name_of
from moorage.insight.messages import counted
from moorage.insight.snapshot.snapshot import Snapshot
from moorage.insight.snapshot.stand_ins import stands_for
from moorage.scheduler.scheduling_cycle import Pending

_KINDS: Final = {"PodGroup": "pod group", "ReplicationController": "replication controller"}


class Workload(NamedTuple):
    """An object that creates pods."""

    kind: str
    namespace: str
    name: str


class AnsweredPods(NamedTuple):
    """Pods that wait for the same reason, and the answer for the first of them."""

    pods: list[Pending]
    explanation: Explanation
    answer: Answer
    workload: Workload | None = None  # that all of them belong to

    def title(self, namespace: str = "") -> str:
        """Return the pods as a title; the namespace of a workload is named if it is another."""
        if len(self.pods) == 1:
            return name_of(self.pods[0])
        count = counted(len(self.pods), "pod")
        if self.workload is None:
            return count
        kind, space, name = self.workload
        where = f" in namespace {space}" if space != namespace else ""
        return f"{count} of {_KINDS.get(kind, kind.lower())} {name}{where}"

    def subject(self, namespace: str) -> str:
        """Return the pods, or the first of them, as an argument of commands: `pod/train`."""
        first = self.pods[0].pod
        if (instead := stands_for(first)) is not None:
            kind, _, name = instead.partition("/")
        elif self.workload is not None and len(self.pods) > 1:
            kind, name = self.workload.kind.lower(), self.workload.name
        else:
            kind, name = "pod", first.metadata.name
        space = first.metadata.namespace
        return f"{kind}/{name}" if space == namespace else f"{kind}/{space}/{name}"


def grouped(
    answers: Iterable[tuple[list[Pending], Explanation, Answer]], snapshot: Snapshot
) -> list[AnsweredPods]:
    """Return the answers, with pods together that wait for the same reason."""
    sources = Sources(snapshot)
    of_workloads: dict[Hashable, AnsweredPods] = {}
    for number, (pods, explanation, answer) in enumerate(answers):
        workload = workload_of(pods[0].pod, sources)
        key: Hashable = number if workload is None else (workload, answer.cause)
        known = of_workloads.get(key)
        if known is None:
            of_workloads[key] = AnsweredPods(list(pods), explanation, answer, workload)
        else:
            known.pods.extend(pods)
    found: dict[Hashable, AnsweredPods] = {}
    for number, each in enumerate(of_workloads.values()):
        key = number if stands_for(each.pods[0].pod) else _likeness(each.answer)
        found[key] = _joined(found[key], each) if key in found else each
    return list(found.values())


def _likeness(answer: Answer) -> Hashable:
    return answer.cause, tuple((fix.text, fix.rank, fix.kind) for fix in answer.fixes)


def _joined(first: AnsweredPods, more: AnsweredPods) -> AnsweredPods:
    """Return pods of two workloads, or of none, with fixes that change both."""
    fixes = tuple(
        replace(fix, changes=merged((*fix.changes, *other.changes)))
        for fix, other in zip(first.answer.fixes, more.answer.fixes, strict=True)
    )
    answer = replace(first.answer, fixes=fixes)
    return AnsweredPods([*first.pods, *more.pods], first.explanation, answer)


def workload_of(pod: Pod, sources: Sources) -> Workload | None:
    """Return the object that users wrote to have the pod; None if that is the pod itself."""
    owner = controller_of(pod.metadata)
    if owner is None:
        return None
    source = sources.of_pod(pod)
    if source is None or source.value.kind == "Pod":
        return Workload(owner.kind, pod.metadata.namespace, owner.name)
    return Workload(source.value.kind, pod.metadata.namespace, source.value.metadata.name)
