"""What a fix means beside the node that a pod gets: what is given up, and what siblings become.

The pods of a workload share its template, and mostly the templates of their claims. So a fix that
was looked for because of one of them is for all.

    # sibling: another pod that uses an object which the fix changes
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from moorage.api.core.pod import Pod
from moorage.controllers.pod_control import is_active
from moorage.insight.answer.changes.edits import ObjectChange
from moorage.insight.answer.changes.sources import POD_COUNTS, Sources
from moorage.insight.answer.finding import Case, Fix, FixRank
from moorage.insight.messages import full_name, listed
from moorage.insight.plan.planner import Plan
from moorage.insight.snapshot.snapshot import key_of

SHOWN_MAX: Final = 5
# How controllers bring a changed template to pods that run, by their strategy or without one.
_ROLL_OUT: Final = "replaced by a pod with the change"
_KEPT: Final = "kept as it is until somebody deletes it"
_FATES: Final = {
    "Deployment": {"": _ROLL_OUT, "Recreate": "deleted with all others, before new ones come"},
    "DaemonSet": {"": _ROLL_OUT, "OnDelete": _KEPT},
    "StatefulSet": {"": _ROLL_OUT, "OnDelete": _KEPT},
}


# --- what is given up ---------------------------------------------------------------------------


def given_up(case: Case, fix: Fix) -> str:
    """Return what pods have less of by a fix, and which pods; "" if nothing is given up."""
    if fix.rank is FixRank.GIVE_UP:
        return "" if "giv" in fix.text else "this gives up something that was asked for"
    if fix.rank is not FixRank.LESS and not (fix.rank is FixRank.FREE and fix.changes):
        return ""
    fields = [field for change in fix.changes if (field := _lowered(change))]
    if fields:
        return "runs fewer pods at a time" if "parallelism" in fields else "runs fewer replicas"
    return f"asks for less{_scope(case, case.rehearsal.users(fix.changes))}"


def _lowered(change: ObjectChange) -> str | None:
    """Return the field that says how many pods there are, if that is what changes."""
    field = POD_COUNTS.get(change.kind)
    return field if any(edit.path == ("spec", field) for edit in change.edits) else None


def _scope(case: Case, pods: Sequence[Pod]) -> str:
    """Return for which pods that is, if they are several."""
    if len(pods) < 2:
        return ""
    count = "both" if len(pods) == 2 else f"all {len(pods)}"
    found = (case.sources.of_pod(pod) for pod in pods)
    values = {key_of(each.value): each.value for each in found if each is not None}
    match [*values.values()]:
        case [workload] if workload.kind != "Pod":
            return f", for {count} pods of {workload.kind} {workload.metadata.name}"
    return f", for {count} pods that use it"


# --- siblings -----------------------------------------------------------------------------------


def sibling_notes(plan: Plan, fix: Fix, pods: Iterable[Pod]) -> list[str]:
    """Return what becomes of the siblings of pods by a fix; nothing where there are none."""
    sources, own = Sources(plan.before), {full_name(pod) for pod in pods}
    fates: dict[str, list[str]] = {}
    for pod in plan.before.pods:
        if not is_active(pod) or full_name(pod) in own:
            continue
        for fate in _fates(pod, sources, fix):
            where = f" (runs on {pod.spec.node_name})" if pod.spec.node_name else ""
            fates.setdefault(fate, []).append(f"{pod.metadata.name}{where}")
            break
    return [f"{listed(names, shown_max=SHOWN_MAX)}: {fate}" for fate, names in fates.items()]


def _fates(pod: Pod, sources: Sources, fix: Fix) -> Iterator[str]:
    """Yield what becomes of a pod, for each changed object that it uses; the first counts most."""
    source, namespace = sources.of_pod(pod), pod.metadata.namespace
    changes = {change.key: change for change in fix.changes if change.new is None}
    change = None if source is None else changes.get(key_of(source.value))
    if source is not None and change is not None and source.value.kind != "Pod":
        yield _of_workload(pod, source.value, change)
    for entry in pod.spec.resource_claims:
        template = entry.resource_claim_template_name
        if ("ResourceClaimTemplate", namespace, template) in changes:
            name = f"ResourceClaimTemplate {template}"
            yield (
                f"keeps its claim and its devices; only pods that come later get what {name} says"
                if pod.spec.node_name
                else f"gets a claim as the changed {name} says, too"
            )
        if ("ResourceClaim", namespace, entry.resource_claim_name) in changes:
            yield f"shares the changed ResourceClaim {entry.resource_claim_name}"


def _of_workload(pod: Pod, workload: Any, change: ObjectChange) -> str:
    title = f"{workload.kind} {workload.metadata.name}"
    if _lowered(change):
        is_last = workload.kind == "StatefulSet"
        first = "the highest numbers go first" if is_last else "pods without a node go first"
        return f"stays as it is, as {title} has fewer pods: {first}"
    if not pod.spec.node_name:
        return f"is made of the changed template of {title}, too"
    strategy = getattr(workload.spec, "strategy", None) or getattr(
        workload.spec, "update_strategy", None
    )
    fates = _FATES.get(workload.kind, {"": _KEPT})
    fate = fates.get(getattr(strategy, "type", ""), fates[""])
    return f"is {fate}, as {title} has another template"
