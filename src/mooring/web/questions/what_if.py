"""What changes would do: pods that leave and come, devices that they get, and the fleet after."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from mooring.api.core.pod import Pod
from mooring.api.documents import CORE, KUBERNETES, read
from mooring.api.errors import ApiError
from mooring.api.tolerations import DeviceName
from mooring.hardware.errors import ProfileError
from mooring.insight.errors import TooManyPodsError, UnknownNameError
from mooring.insight.messages import counted
from mooring.insight.plan.planner import Plan
from mooring.insight.snapshot.builder import SnapshotBuilder
from mooring.insight.snapshot.snapshot import Snapshot
from mooring.insight.whatif import (
    AddObjects,
    ChangedCluster,
    ClusterChange,
    Difference,
    apply,
    compare,
)
from mooring.insight.whatif.change_words import ChangeWords
from mooring.insight.whatif.difference import PodChange
from mooring.insight.whatif.taint_words import TaintTextError
from mooring.scheduler.scheduling_cycle import Pending
from mooring.web.errors import BadQuestionError, UnusableError
from mooring.web.owner_rows import PodKey
from mooring.web.pending import Cause
from mooring.web.questions.explain import answer_for, pending_pod
from mooring.web.questions.fixed import fixed_snapshot
from mooring.web.questions.ghosts import ghosts
from mooring.web.questions.moment import ShownMoment, bounded_plan

CHANGES_MAX: Final = 50
LINES_MAX: Final = 500
ADD: Final = "add"


def what_if_answer(moment: ShownMoment, changes: Sequence[str]) -> dict[str, Any]:
    """Return what changes would do, each written as an option of `moor whatif`."""
    if not changes or len(changes) > CHANGES_MAX:
        raise BadQuestionError(f"changes: give 1 to {CHANGES_MAX} of them.")
    words = ChangeWords(moment.snapshot, moment.context)
    wanted = [change for text in changes for change in _changes(text, words, moment)]
    context = moment.context
    try:
        after = apply(moment.snapshot, wanted, context)
        return _answer(moment, apply(moment.snapshot, (), context), after)
    except (UnknownNameError, TooManyPodsError) as error:
        raise UnusableError(f"{error}") from None


def fix_answer(moment: ShownMoment, namespace: str, name: str, number: int) -> dict[str, Any]:
    """Return what a fix of a pending pod would do."""
    _, answer = answer_for(moment, pending_pod(moment, namespace, name))
    if not 1 <= number <= len(answer.fixes):
        raise BadQuestionError(f"number: the pod has {counted(len(answer.fixes), 'fix')}.")
    fix = answer.fixes[number - 1]
    if not fix.changes:
        raise UnusableError("This fix is advice: no change of objects can do it.")
    fixed = fixed_snapshot(moment.snapshot, moment.plan.before, fix.changes)
    after = apply(fixed, (), moment.context)
    try:
        return _answer(moment, apply(moment.snapshot, (), moment.context), after)
    except TooManyPodsError as error:
        raise UnusableError(f"{error}") from None


def _changes(text: str, words: ChangeWords, moment: ShownMoment) -> Iterator[ClusterChange]:
    word, _, value = text.strip().removeprefix("--").partition(" ")
    value = value.strip()
    if word == ADD:
        yield _added(value, words, moment)
        return
    if word not in words.words or not value:
        known = ", ".join([*words.words, ADD])
        raise BadQuestionError(f"{text[:80]!r} is no change; one begins with {known}.")
    try:
        yield from words.read(word, value)
    except (TaintTextError, ProfileError) as error:
        raise UnusableError(f"{word} {value[:80]}: {error}") from None


def _added(text: str, words: ChangeWords, moment: ShownMoment) -> AddObjects:
    builder = SnapshotBuilder(moment.context)
    schema = CORE if moment.context.extensions else KUBERNETES
    try:
        for document in read(text.encode(), source="manifest", schema=schema):
            builder.add_document(document)
    except ApiError as error:
        raise UnusableError(f"{error}") from None
    builder.finish()
    for message in (*builder.unreadable, *builder.refused):
        raise UnusableError(message)
    objects = builder.snapshot()
    words.known = words.known.with_objects(objects.objects())
    return AddObjects(objects)


def _answer(moment: ShownMoment, before: ChangedCluster, after: ChangedCluster) -> dict[str, Any]:
    plans: list[Plan] = []

    def make_plan(snapshot: Snapshot) -> Plan:
        plans.append(bounded_plan(snapshot, moment.context))
        return plans[-1]

    found = compare(before, after, moment.context, make_plan)
    old, new = plans
    scene = moment.copy_scene()
    scene.move_to(new.after)
    scene.explain({_key(each.pod): _cause(each) for each in new.pending})
    fleet = scene.fleet(moment.fleet.revision, moment.fleet.time)
    ghost, places = ghosts(moment.fleet, fleet)
    return {
        "text": list(_lines(found))[:LINES_MAX],
        "evicted": [{"pod": each.pod, "cause": each.why} for each in found.pods if each.why],
        "placed": list(_placed(found.pods, scene.rows.device_rows, places)),
        "pendingBefore": len(old.pending),
        "pendingAfter": len(new.pending),
        "after": {
            "set": ghost.set,
            "append": ghost.append,
            "strings": ghost.strings,
            **({} if ghost.groups is None else {"groups": ghost.groups}),
        },
    }


def _key(pod: Pod) -> PodKey:
    return pod.metadata.namespace, pod.metadata.name


def _cause(pending: Pending) -> Cause:
    return Cause(pending.message or pending.reason, pending.pod.metadata.uid)


def _placed(
    pods: Iterable[PodChange], rows: Mapping[DeviceName, int], places: Sequence[int]
) -> Iterator[dict[str, Any]]:
    """Yield the pods that get a node, with the rows of their devices."""
    for each in pods:
        if each.after is None or not each.after.node:
            continue
        namespace, _, name = each.pod.partition("/")
        found = (rows.get(_device(text), -1) for text in each.after.devices)
        yield {
            "namespace": namespace,
            "name": name,
            "node": each.after.node,
            "devices": [places[row] for row in found if row >= 0],
        }


def _device(text: str) -> DeviceName:
    driver, _, rest = text.partition("/")
    pool, _, name = rest.rpartition("/")
    return DeviceName(driver, pool, name)


# --- in words ---------------------------------------------------------------------------------


def _lines(found: Difference) -> Iterator[str]:
    for each in found.pods:
        before = "" if each.before is None else each.before.node or "no node"
        after = "" if each.after is None else each.after.node or "no node"
        change = " → ".join(filter(None, (before, after))) or each.kind.value
        why = each.why or each.again or ("" if each.after is None else each.after.message)
        yield f"{each.pod} {each.kind.value}: {change}{f' ({why})' if why else ''}"
    for device in found.devices:
        if device.is_changed:
            yield (
                f"{device.node} {device.driver}: free {device.free_before} → {device.free_after}, "
                f"of {device.total_before} → {device.total_after}"
            )
    for missing in found.missing:
        yield f"{missing.device} is in no slice any more, but stays allocated"
    for concern in found.concerns:
        yield f"warning: {concern}"
    worse = sum(each.is_worse for each in found.pods)
    yield f"{counted(worse, 'pod')} worse off, {len(found.pods) - worse} otherwise different"
