"""The laws of an answer, and what is counted about it.

1. Nothing raises.
2. The cause is one line of 1 to 160 characters, and not Kubernetes' message.
3. There is at least one fix or piece of advice, the best first, and advice changes nothing.
4. Every change that is offered, written as `--write-fix` writes it, is valid, and a new plan of
   what was written gives the pod a node.
5. No change makes a class match more devices.
6. Once the plan has come true, and just those have gone whom the advice to wait names, a new plan
   gives the pod a node.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from msgspec.structs import replace

from moorage.api.documents import CORE, expand_lists, read
from moorage.api.resource.v1 import ResourceClaim
from moorage.api.timestamp import Timestamp
from moorage.claims.pod_claims import controller_of
from moorage.cli.cluster_options import ClusterInput, read_cluster
from moorage.cli.explain import fix_text
from moorage.insight.answer.answer import answer, likeness
from moorage.insight.answer.changes.departures import uids_of
from moorage.insight.answer.changes.edits import REMOVED
from moorage.insight.answer.document import shown_explanations
from moorage.insight.answer.finding import Answer, Fix
from moorage.insight.answer.groups import grouped
from moorage.insight.answer.manifests import fixed_manifests
from moorage.insight.answer.output import answer_lines
from moorage.insight.explain.pods import Explanation, explain
from moorage.insight.messages import CAUSE_LENGTH_MAX, full_name
from moorage.insight.plan.placements import chosen_results
from moorage.insight.plan.planner import Plan, plan
from moorage.insight.plan.refused import refused_results, with_refused
from moorage.insight.snapshot.stand_ins import unused_in
from moorage.insight.whatif import DeletePods, apply
from moorage.scheduler.reservation import Reservation
from moorage.scheduler.scheduling_cycle import Pending
from moorage.validation.manifests import ManifestValidator
from moorage.validation.strategy import Context
from soak._fixes.worlds import Text, World

NOW: Final = Timestamp.parse("2026-01-01T00:00:00Z")
Answering = Callable[[Plan, Explanation, ClusterInput], Answer]
THEN: Final = "; then "  # between a change and the advice to wait
PODS_MAX: Final = 6  # pending pods of a world that are asked about
_KUBERNETES: Final = re.compile(
    r"^\d+/\d+ nodes|cannot allocate all claims|^0/|Unschedulable|nodes? are available"
)


class BrokenLawError(AssertionError):
    """An answer breaks a law."""

    def __init__(self, law: str, text: str) -> None:
        super().__init__(text)
        self.kind = law


class Trial:
    """Tries the answers about the pending pods of one world."""

    def __init__(self, world: World, counts: Counter[str]) -> None:
        self._world, self._counts = world, counts
        self._context = Context(gates=world.gates, now=NOW, extensions=True)

    def run(self, answering: Answering | None = None) -> None:
        """Ask about the pending pods, and try every change; raise the first broken law."""
        answering = answering or _answer
        given = self._read(*self._world.manifests)
        unused = unused_in(given.manifests, given.everything)
        planned = plan(given.everything, self._context, unused=unused)
        found = with_refused(planned, given.refused_objects)
        chosen = chosen_results(found.results, given.manifests)
        results = [*chosen, *refused_results(found), *found.stand_ins]
        alike = {likeness(found, e): e for e in results if isinstance(e, Pending)}
        self._counts["worlds with refused objects"] += bool(given.refused)
        if not alike:
            self._counts["worlds in which every pod gets a node"] += 1
        broken: list[BrokenLawError] = []
        for pending in list(alike.values())[:PODS_MAX]:
            explanation = explain(found, pending)
            said = answering(found, explanation, given)
            broken += self._broken(given, found, explanation, said)
        for error in broken:
            self._counts[error.kind] += 1
        if broken:
            raise broken[0]

    def _read(self, *manifests: Any) -> ClusterInput:
        return read_cluster(
            cluster=list(self._world.cluster),
            manifests=list(manifests),
            context=self._context,
            namespace=self._world.namespace,
        )

    def _broken(
        self, given: ClusterInput, found: Plan, explanation: Explanation, said: Answer
    ) -> Iterator[BrokenLawError]:
        counts, pending = self._counts, explanation.pending
        counts["pending pods"] += 1
        (shown,) = grouped([([pending], explanation, said)], found.before)
        list(answer_lines(shown, is_full=True))
        shown_explanations([], [shown], found.before, namespace=given.namespace)
        yield from map(_cause_error, _cause_faults(said, pending))
        kinds = {fix.kind for fix in said.fixes}
        counts["pods with a change"] += "change" in kinds
        counts["pods with advice only"] += kinds == {"advice"}
        if [fix.rank for fix in said.fixes] != sorted(fix.rank for fix in said.fixes):
            yield BrokenLawError("order of fixes", str([fix.text for fix in said.fixes]))
        if not said.fixes:
            yield BrokenLawError("no fix and no advice", said.cause)
        for fix in said.fixes:
            if fix.kind == "change":
                counts["changes offered"] += 1
                counts[f"changes: {fix.rank.name.lower()}"] += 1
                yield from self._change_faults(fix, given, found, pending)
            elif fix.waits_for and THEN not in fix.text:
                counts["advice to wait"] += 1
                if not self._fits_after(fix, given, found, pending):
                    yield BrokenLawError("waits in vain", f"{fix.text} → {fix.node}")

    def _fits_after(self, fix: Fix, given: ClusterInput, found: Plan, pending: Pending) -> bool:
        """Return whether the pod gets a node once those have gone whom a fix names."""
        after, pods = found.after, set(uids_of(fix.waits_for))
        unused = {each.claim for each in fix.waits_for if each.is_unused}
        gone = [each for each in after.claims if _key(each) in unused]
        there = {full_name(each) for each in after.pods if each.metadata.uid in pods}
        freed = [c for c in after.claims if {u.uid for u in c.status.reserved_for} & pods]
        kept = after.without([*gone, *freed]).with_objects(
            _without_users(each, pods) for each in freed if each not in gone
        )
        left = apply(kept, [DeletePods(tuple(sorted(there)))], self._context).snapshot
        name, unused_now = full_name(pending.pod), unused_in(given.manifests, left)
        again = plan(left, self._context, unused=unused_now)
        results = (each for each in (*again.results, *again.stand_ins))
        return any(full_name(each.pod) == name for each in results if isinstance(each, Reservation))

    def _change_faults(
        self, fix: Fix, given: ClusterInput, found: Plan, pending: Pending
    ) -> Iterator[BrokenLawError]:
        about = f"{fix.text} → {fix.node}"
        if any(_loosens_class(fix)):
            yield BrokenLawError("class loosened", about)
        fixed = fixed_manifests(fix, given.documents, found.before, given.context)
        text = fix_text(fixed)
        known = {refused[:3] for refused in given.refused_objects}
        errors = [e for key, e in _invalid(text, self._context, given) if key not in known]
        if errors:
            yield BrokenLawError("change refused", f"{about}: {'; '.join(errors)}\n{text}")
            return
        if self._is_left_without_node(text, pending):
            yield BrokenLawError("pod not placed", f"{about}\n{text}")

    def _is_left_without_node(self, text: str, pending: Pending) -> bool:
        """Return whether the pod gets no node if the text is applied in place of the manifests.

        A pod that is not there any more, because its workload has fewer, does not need one.
        """
        given = self._read(Text(text))
        unused = unused_in(given.manifests, given.everything)
        found = plan(given.everything, self._context, unused=unused)
        name, owner = full_name(pending.pod), controller_of(pending.pod.metadata)
        results = {full_name(each.pod): each for each in (*found.results, *found.stand_ins)}
        if name not in results and owner is not None:
            self._counts["changes to fewer pods"] += 1
            return not found.placed
        return not isinstance(results.get(name), Reservation)


def _key(value: Any) -> tuple[str, str]:
    return value.metadata.namespace, value.metadata.name


def _without_users(claim: ResourceClaim, uids: set[str]) -> ResourceClaim:
    """Return a claim that some do not use any more; without users it has no devices."""
    left = tuple(each for each in claim.status.reserved_for if each.uid not in uids)
    allocation = claim.status.allocation if left else None
    return replace(claim, status=replace(claim.status, reserved_for=left, allocation=allocation))


def _answer(found: Plan, explanation: Explanation, given: ClusterInput) -> Answer:
    return answer(found, explanation, given.context, given.refused_objects, given.dropped_fields)


def _invalid(
    text: str, context: Context, given: ClusterInput
) -> Iterator[tuple[tuple[str, str, str], str]]:
    """Yield what `moor validate` would refuse in the text."""
    judge = ManifestValidator(context, namespace=given.namespace)
    for space in given.cluster.namespaces:
        judge.record_namespace(space)
    documents = read(text.encode(), source="-", schema=CORE)
    verdicts = [judge.validate(item) for each in documents for item in expand_lists(each)]
    verdicts += [verdict for _, verdict in judge.remaining()]
    for verdict in verdicts:
        if verdict is not None and not verdict.is_accepted:
            key = (verdict.kind, verdict.namespace, verdict.name)
            yield key, f"{'/'.join(key)}: {'; '.join(f.message for f in verdict.findings)}"


def _cause_error(text: str) -> BrokenLawError:
    return BrokenLawError("cause", text)


def _cause_faults(said: Answer, pending: Pending) -> Iterator[str]:
    cause = said.cause
    if not cause.strip():
        yield "the cause is empty"
    if "\n" in cause or len(cause) > CAUSE_LENGTH_MAX:
        yield f"not one line: {cause!r}"
    if _KUBERNETES.search(cause) or cause == pending.message:
        yield f"Kubernetes' words: {cause}"
    if cause.endswith("…"):
        yield f"cut: {cause}"


def _loosens_class(fix: Fix) -> Iterable[bool]:
    for change in fix.changes:
        if change.kind == "DeviceClass":
            # An administrator may correct a selector, but not take one away.
            paths = [(e.path, e.value) for e in change.edits if e.path[1:2] == ("selectors",)]
            yield any(len(path) <= 3 or value is REMOVED for path, value in paths)
