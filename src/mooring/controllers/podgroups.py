"""Groups of pods stay until the last of their pods has ended.

The server gives every group a finalizer; it is taken off a group that is to be deleted once no pod
names the group any more, pods that are over aside.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import ClassVar

from msgspec.structs import replace

from mooring.api.core import Pod
from mooring.api.scheduling import PROTECTION_FINALIZER, PodGroup
from mooring.api.timestamp import Timestamp
from mooring.claims.owners import group_name
from mooring.client.objects import Key, Objects, key_of
from mooring.client.writes import Update
from mooring.controllers.controller import Answers, Change, Controller, Step
from mooring.controllers.podstates import is_over

GROUP = "active-group"  # the index of pods that are not over by their group


class PodGroupProtection(Controller):
    """Lets groups go when their pods have gone."""

    name: ClassVar[str] = "podgroup-protection-controller"
    kinds = (PodGroup, Pod)

    def prepare(self, objects: Objects) -> None:
        """Keep pods by their group."""
        objects.index(Pod, GROUP, _group_keys)

    def keys(self, objects: Objects, change: Change) -> Iterable[Key]:  # noqa: ARG002
        """Give the groups that may go: those to be deleted, and those that lost a pod."""
        value = change.value
        if isinstance(value, PodGroup):
            if change.new is not None and value.metadata.deletion_timestamp is not None:
                yield key_of(value)
            return
        ended = change.new if change.new is not None and is_over(change.new) else None
        for pod in (ended, change.gone):
            name = None if pod is None else group_name(pod)
            if pod is not None and name is not None:
                yield pod.metadata.namespace, name

    def plan(self, objects: Objects, key: Key, now: Timestamp, answers: Answers) -> Iterable[Step]:  # noqa: ARG002
        """Take the finalizer off a group without pods that is to be deleted."""
        group = objects.find(PodGroup, *key)
        if group is None or group.metadata.deletion_timestamp is None:
            return
        if PROTECTION_FINALIZER not in group.metadata.finalizers:
            return
        if not objects.by(Pod, GROUP, "/".join(key)):
            # The role of this controller has update, and not patch.
            others = tuple(f for f in group.metadata.finalizers if f != PROTECTION_FINALIZER)
            yield Update(replace(group, metadata=replace(group.metadata, finalizers=others)))


def _group_keys(pod: Pod) -> Iterator[str]:
    name = group_name(pod)
    if name is not None and not is_over(pod):
        yield f"{pod.metadata.namespace}/{name}"
