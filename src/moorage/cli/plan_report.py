"""The CI report of `moor plan`: pods without a node, with cause and fix as in `moor explain`.

A pod is reported at the line of the object that the user wrote: the pod, its Deployment, its claim,
or the workload of an operator. Pods of one workload with the same cause are one finding.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from moorage import __version__
from moorage.api.core.pod import Pod
from moorage.api.documents import Document
from moorage.cli.cluster_options import ClusterInput
from moorage.cli.explain import explained
from moorage.cli.reports import Workspace
from moorage.insight.answer.changes.sources import Sources
from moorage.insight.answer.groups import AnsweredPods, grouped, workload_of
from moorage.insight.messages import full_name
from moorage.insight.plan.document import decisive
from moorage.insight.plan.planner import Plan, Result
from moorage.insight.plan.unknown import is_undecided
from moorage.insight.reports import (
    CheckedObject,
    FindingLevel,
    FindingReport,
    ReportFinding,
    ReportPlace,
)
from moorage.insight.reports.rules import INVALID, NO_NODE, PLAN_RULES
from moorage.insight.snapshot.stand_ins import stands_for
from moorage.insight.snapshot.written_objects import ObjectKey, RefusedObject
from moorage.scheduler.scheduling_cycle import Pending

_STAND_INS = {"claim": "ResourceClaim", "template": "ResourceClaimTemplate"}


def plan_report(given: ClusterInput, plan: Plan, chosen: Iterable[Result]) -> FindingReport:
    """Return the report for a CI system about the chosen results of a plan."""
    pods = list(chosen)
    results = [*pods, *plan.stand_ins]
    failing = {full_name(each.pod) for each in decisive(pods, plan.stand_ins)}
    places = _Places(given, plan)
    pending = [each for each in results if isinstance(each, Pending)]
    found: dict[str, ReportFinding] = {}
    for answered in grouped(explained(plan, given, pending), plan.before):
        for each in answered.pods:
            name, place = full_name(each.pod), places.of_pod(each.pod)
            level = FindingLevel.ERROR if name in failing else FindingLevel.WARNING
            found[name] = _finding(answered, place, given.namespace, level)
    objects = [places.workspace.unreadable(message) for message in given.unreadable]
    objects += (_refused(each, places) for each in given.refused_objects)
    for result in results:
        about = found.get(full_name(result.pod))
        findings = () if about is None else (about,)
        name = stands_for(result.pod) or f"Pod {full_name(result.pod)}"
        objects.append(CheckedObject(name, places.of_pod(result.pod), findings))
    errors = frozenset((FindingLevel.ERROR,))
    return FindingReport("plan", __version__, PLAN_RULES, tuple(objects), errors)


def _finding(
    answered: AnsweredPods, place: ReportPlace, namespace: str, level: FindingLevel
) -> ReportFinding:
    is_shared = answered.workload is not None and len(answered.pods) > 1
    who = f"is one of {answered.title(namespace)} without a node" if is_shared else "gets no node"
    if stands_for(answered.pods[0].pod):
        who = "no pod uses it, and one that does would get no node"
    if is_undecided(answered.pods[0]):
        who = "is not known to get a node"
    fixes = answered.answer.fixes
    return ReportFinding(
        rule=NO_NODE,
        level=level,
        place=place,
        message=f"{who}: {answered.answer.cause}",
        fix=f"fix: {fixes[0].text}" if fixes else "",
    )


def _refused(refused: RefusedObject, places: _Places) -> CheckedObject:
    key = (refused.kind, refused.namespace, refused.name)
    place = places.of_object(key)
    findings = (
        ReportFinding(INVALID, FindingLevel.ERROR, place, reason) for reason in refused.reasons
    )
    name = "/".join(filter(None, key[1:]))
    return CheckedObject(f"{refused.kind} {name}".strip(), place, tuple(findings))


class _Places:
    """Where the objects of the manifests were written."""

    def __init__(self, given: ClusterInput, plan: Plan) -> None:
        self.workspace = Workspace.find()
        self._sources = Sources(plan.before)
        self._documents: dict[ObjectKey, Document] = {}
        for written in given.documents:
            for key in (*([written.key] if written.key else ()), *written.made):
                self._documents.setdefault(key, written.document)

    def of_object(self, key: ObjectKey) -> ReportPlace:
        """Return the place of an object, or no place if no manifest contains it."""
        document = self._documents.get(key)
        if document is None:
            return ReportPlace()
        return self.workspace.place(document.source, document.line, 1)

    def of_pod(self, pod: Pod) -> ReportPlace:
        """Return the place of a pod, or of the object that it comes from."""
        places = map(self.of_object, self._keys(pod))
        return next((place for place in places if place != ReportPlace()), ReportPlace())

    def _keys(self, pod: Pod) -> Iterator[ObjectKey]:
        namespace = pod.metadata.namespace
        kind, _, name = (stands_for(pod) or "").partition("/")
        if kind in _STAND_INS:
            yield _STAND_INS[kind], namespace, name
        yield "Pod", namespace, pod.metadata.name
        workload = workload_of(pod, self._sources)
        if workload is not None:
            yield workload
        for owner in pod.metadata.owner_references:
            yield owner.kind, namespace, owner.name
