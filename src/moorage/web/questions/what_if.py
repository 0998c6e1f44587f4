"""What changes would do: pods that move, their devices, and the fleet afterwards."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from moorage.api.core.pod import Pod
from moorage.api.documents import read
from moorage.api.errors import ApiError
from moorage.api.tolerations import DeviceName
from moorage.hardware.errors import ProfileError
from moorage.insight.errors import (
    ChangeTextError,
    TooManyPodsError,
    UnknownNameError,
    UnreadError,
)
from moorage.insight.messages import counted
from moorage.insight.snapshot.builder import SnapshotBuilder
from moorage.insight.snapshot.snapshot import Snapshot
from moorage.insight.whatif import (
    AddObjects,
    ChangedCluster,
    ClusterChange,
    Difference,
    apply,
    compare,
)
from moorage.insight.whatif.change_words import Additions, ChangeWords
from moorage.insight.whatif.difference import PodChange
from moorage.scheduler.scheduling_cycle import Pending
from moorage.web.errors import BadQuestionError, UnusableError
from moorage.web.fleet import Fleet
from moorage.web.owner_rows import PodKey
from moorage.web.pending import Cause
from moorage.web.questions.explain import answered
from moorage.web.questions.fixed import fixed_snapshot
from moorage.web.questions.ghosts import ghosts
from moorage.web.questions.moment import ShownMoment

CHANGES_MAX: Final = 50
# What all changes together add: a few large fleets of today. What Python needs for it is more.
ADDED_MAX: Final = Additions(devices=20_000, objects=5_000, size=24 * 1024 * 1024)
LINES_MAX: Final = 500
ADD, REPLACE_SLICES = "add", "replace-slices"  # a manifest follows


def what_if_answer(moment: ShownMoment, changes: Sequence[str]) -> dict[str, Any]:
    """Return what changes would do; they are written like the options of `moor whatif`."""
    if not changes or len(changes) > CHANGES_MAX:
        raise BadQuestionError(f"changes: give 1 to {CHANGES_MAX} of them.")
    context = moment.context
    words = ChangeWords(moment.snapshot, context, most=ADDED_MAX)
    wanted = [change for text in changes for change in _changes(text, words, moment)]
    try:
        return _answer(moment, apply(moment.snapshot, wanted, context))
    except (UnknownNameError, UnreadError, TooManyPodsError) as error:
        raise UnusableError(f"{error}") from None


def fix_answer(moment: ShownMoment, namespace: str, name: str, number: int) -> dict[str, Any]:
    """Return what a fix of a pending pod would do."""
    with moment.alone() as alone:
        plan, _, answer = answered(moment, alone, namespace, name)
    if not 1 <= number <= len(answer.fixes):
        raise BadQuestionError(f"number: the pod has {counted(len(answer.fixes), 'fix')}.")
    fix = answer.fixes[number - 1]
    if not fix.changes:
        raise UnusableError("This fix is advice: no change of objects can do it.")
    fixed = fixed_snapshot(moment.snapshot, plan.before, fix.changes)
    after = apply(fixed, (), moment.context)
    try:
        return _answer(moment, after)
    except TooManyPodsError as error:
        raise UnusableError(f"{error}") from None


def _changes(text: str, words: ChangeWords, moment: ShownMoment) -> Iterator[ClusterChange]:
    word, value = (*text.strip().removeprefix("--").split(None, 1), "", "")[:2]
    if word in (ADD, REPLACE_SLICES):
        objects = _manifest(value, moment)
        try:
            words.count(Additions.of(objects.objects()))
            words.know(objects.objects())
            yield AddObjects(objects) if word == ADD else words.replace_slices(objects.slices)
        except ChangeTextError as error:
            raise UnusableError(f"{word}: {error}") from None
        return
    known_words = [each.replace("_", "-") for each in words.words]
    if word in known_words and not value:
        raise BadQuestionError(f"{word!r}: name what to change.")
    if word not in known_words:
        known = ", ".join([*known_words, ADD, REPLACE_SLICES])
        raise BadQuestionError(f"{text[:80]!r} is not a change; changes begin with {known}.")
    try:
        yield from words.read(word.replace("-", "_"), value)
    except (ChangeTextError, ProfileError) as error:
        raise UnusableError(f"{word} {value[:80]}: {error}") from None


def _manifest(text: str, moment: ShownMoment) -> Snapshot:
    builder = SnapshotBuilder(moment.context)
    try:
        for document in read(text.encode(), source="manifest", schema=moment.context.yaml_schema):
            builder.add_document(document)
    except ApiError as error:
        raise UnusableError(f"{error}") from None
    builder.finish()
    for message in (*builder.unreadable, *builder.refused):
        raise UnusableError(message)
    return builder.snapshot()


def _answer(moment: ShownMoment, after: ChangedCluster) -> dict[str, Any]:
    before, old = moment.placed
    new = moment.placed_in(after.snapshot)
    plans = {id(before.snapshot): old, id(after.snapshot): new}
    found = compare(
        before,
        after,
        moment.context,
        lambda snapshot: plans[id(snapshot)],
        with_devices=False,
    )
    scene = moment.copy_scene()
    scene.move_to(new.after)
    scene.explain({_key(each.pod): _cause(each) for each in new.pending})
    fleet = scene.fleet(moment.fleet.revision, moment.fleet.time)
    ghost, places = ghosts(moment.fleet, fleet)
    return {
        "text": [*_pod_lines(found), *_device_lines(moment.fleet, fleet), _summary(found)][
            -LINES_MAX:
        ],
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


def _pod_lines(found: Difference) -> Iterator[str]:
    for each in found.pods:
        before = "" if each.before is None else each.before.node or "no node"
        after = "" if each.after is None else each.after.node or "no node"
        change = " → ".join(filter(None, (before, after))) or each.kind.value
        why = each.why or each.again or ("" if each.after is None else each.after.message)
        yield f"{each.pod} {each.kind.value}: {change}{f' ({why})' if why else ''}"
    for concern in found.concerns:
        yield f"warning: {concern}"


def _device_lines(before: Fleet, after: Fleet) -> Iterator[str]:
    """Yield how many devices of each driver are free, if that changes."""
    old, new = _free(before), _free(after)
    for driver in sorted({*old, *new}):
        was, is_ = old.get(driver, (0, 0)), new.get(driver, (0, 0))
        if was != is_:
            yield f"{driver}: free {was[0]:,} → {is_[0]:,}, of {was[1]:,} → {is_[1]:,}"


def _free(fleet: Fleet) -> dict[str, tuple[int, int]]:
    devices = fleet.tables["devices"]
    found: dict[str, tuple[int, int]] = {}
    for driver, state in zip(devices["driver"], devices["state"], strict=True):
        free, total = found.get(name := fleet.strings[driver], (0, 0))
        found[name] = (free + (state == 0), total + 1)
    return found


def _summary(found: Difference) -> str:
    worse = sum(each.is_worse for each in found.pods)
    return f"{counted(worse, 'pod')} worse off, {len(found.pods) - worse} otherwise different"
