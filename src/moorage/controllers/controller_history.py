"""Revisions: former templates of a stateful set or daemon set, stored as ControllerRevisions.

The data of a revision is a patch that restores its template, so that `kubectl rollout undo` can
apply it. A template that is used again gets its old revision, with a new number.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from moorage.api.apps import ControllerRevision, DaemonSet, StatefulSet
from moorage.api.codec import decode_tree, to_tree
from moorage.api.core.pod import PodTemplateSpec
from moorage.api.errors import DecodeError
from moorage.api.meta import ObjectMeta
from moorage.client.indexer import Indexer
from moorage.client.writes import Create, Delete, Target, Update
from moorage.controllers.controller import Step
from moorage.controllers.controller_ref_manager import controlled, reference_to
from moorage.controllers.pod_control import hashed_name, template_hash

REVISION_HASH: Final = "controller-revision-hash"  # the label of pods, and of revisions
HISTORY_LIMIT: Final = 10  # old revisions to keep by default

Owner = StatefulSet | DaemonSet


class History(NamedTuple):
    """The revisions of an owner, oldest first, and the one of its current template."""

    revisions: list[ControllerRevision]
    update: ControllerRevision
    steps: list[Step]  # that create or renumber the update revision

    def find(self, name: str) -> ControllerRevision | None:
        """Return the revision with this name."""
        if name == self.update.metadata.name:
            return self.update
        return next((each for each in self.revisions if each.metadata.name == name), None)


def history_of(objects: Indexer, owner: Owner) -> History:
    """Return the history of an owner, with a revision of its current template."""
    revisions = sorted(controlled(objects, ControllerRevision, owner), key=_number)
    data = data_of(owner.spec.template)
    number = revisions[-1].revision + 1 if revisions else 1
    same = [each for each in revisions if each.data == data]
    if same and same[-1] is revisions[-1]:
        return History(revisions, same[-1], [])
    if same:
        renumbered = replace(same[-1], revision=number)
        kept = [each for each in revisions if each is not same[-1]]
        return History([*kept, renumbered], renumbered, [Update(renumbered)])
    made = _revision(objects, owner, data, number)
    return History([*revisions, made], made, [Create(made)])


def _number(revision: ControllerRevision) -> tuple[int, str]:
    return revision.revision, revision.metadata.name


def data_of(template: PodTemplateSpec) -> dict[str, Any]:
    """Return the patch that restores a template."""
    return {"spec": {"template": {**to_tree(template), "$patch": "replace"}}}


def template_of(revision: ControllerRevision, fallback: PodTemplateSpec) -> PodTemplateSpec:
    """Return the template of a revision, or the fallback if its data is not a template."""
    match revision.data:
        case {"spec": {"template": {**tree}}}:
            tree.pop("$patch", None)
            try:
                return decode_tree(tree, PodTemplateSpec).value
            except DecodeError:
                return fallback
    return fallback


def _revision(
    objects: Indexer, owner: Owner, data: dict[str, Any], number: int
) -> ControllerRevision:
    """Return a new revision, whose name has a hash that no other revision of the owner has."""
    collisions = owner.status.collision_count
    while True:
        mark = template_hash(owner.spec.template, collisions)
        name = hashed_name(owner.metadata.name, mark)
        taken = objects.get(ControllerRevision, owner.metadata.namespace, name)
        if taken is None or taken.data == data:
            break
        collisions = (collisions or 0) + 1
    metadata = ObjectMeta(
        name=name,
        namespace=owner.metadata.namespace,
        labels={**owner.spec.template.metadata.labels, REVISION_HASH: mark},
        annotations=dict(owner.metadata.annotations),
        owner_references=(reference_to(owner),),
    )
    return ControllerRevision(metadata=metadata, data=data, revision=number)


def surplus(owner: Owner, history: History, live: Iterable[str]) -> Iterator[Step]:
    """Yield deletions of the oldest unused revisions beyond the history limit."""
    said = owner.spec.revision_history_limit
    limit = HISTORY_LIMIT if said is None else said
    in_use = {history.update.metadata.name, *live}
    old = [each for each in history.revisions if each.metadata.name not in in_use]
    if limit >= 0:
        yield from (Delete(Target.of(each)) for each in old[: max(0, len(old) - limit)])
