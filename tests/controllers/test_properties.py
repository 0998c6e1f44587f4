"""Laws of the controllers of claims, with copies that are late and any order of work."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from moorage.api.core.pod import Pod
from moorage.api.resource.v1 import (
    POD_CLAIM_ANNOTATION,
    ResourceClaim,
    ResourceClaimTemplate,
)
from moorage.api.scheduling import PodGroup
from moorage.claims.reservations import is_pod_consumer, is_pod_done
from moorage.client.writes import Delete, Patch, Target
from moorage.controllers.controller import ObjectChange
from moorage.controllers.resource_claim_releases import ClaimReleaseController
from moorage.controllers.resource_claims import GroupClaimController, PodClaimController
from tests.claims.parts import BY_NAME
from tests.controllers.late import Late
from tests.controllers.model import RefusedError
from tests.controllers.scenes import ALL, group, named_claim, pod, result, template

NAMES = ("a", "b")
KINDS = (Pod, PodGroup, ResourceClaim, ResourceClaimTemplate)
OWN = {"name": "own", "resourceClaimTemplateName": "t"}
SHARED = {"name": "t", "resourceClaimTemplateName": "t"}  # with the group, in a group

names = st.sampled_from(NAMES)
steps = st.one_of(
    *[st.tuples(st.just("create"), names, st.booleans())] * 2,
    *[st.tuples(st.just("touch"), names)] * 3,
    st.tuples(st.just("delete"), names),
    st.tuples(st.just("finish"), names),
    st.tuples(st.just("bind"), names),
    st.tuples(st.just("allocate"), st.integers(0, 5), names),
    st.tuples(st.just("delete claim"), st.integers(0, 5)),
    st.tuples(st.sampled_from(["template", "group"]), st.booleans()),
    *[st.tuples(st.just("deliver"), st.sampled_from((Pod, *KINDS)))] * 5,
    *[st.tuples(st.just("work"), st.sampled_from((0, 0, 1, 2)))] * 5,
)


class World(Late):
    """A cluster with users, a scheduler and a kubelet that do as they are told."""

    def __init__(self) -> None:
        super().__init__(
            [PodClaimController(ALL), GroupClaimController(ALL), ClaimReleaseController(ALL)]
        )
        self.model.put(named_claim(), template())
        self.settle()

    def follow(self, change: ObjectChange) -> None:
        super().follow(change)
        if isinstance(change.new, ResourceClaim) and change.old is not None:
            self._check_reservations(change.old, change.new)

    def _check_reservations(self, old: ResourceClaim, new: ResourceClaim) -> None:
        """Nobody may take a claim away from a pod that lives."""
        kept = {each.uid for each in new.status.reserved_for}
        for consumer in old.status.reserved_for:
            if is_pod_consumer(consumer) and consumer.uid not in kept:
                found = self.model.get(Pod, "ns", consumer.name)
                lives = found is not None and found.metadata.uid == consumer.uid
                assert not lives or is_pod_done(found), f"{consumer.name} lost {new.metadata.name}"

    def do(self, verb: str, *given: Any) -> None:
        with suppress(RefusedError):  # It is there already, or not there.
            getattr(self, f"_{verb.replace(' ', '_')}")(*given)

    def _create(self, name: str, in_group: bool) -> None:
        entries = [BY_NAME, SHARED, OWN]
        self.model.put(pod(name, claims=entries, group="g" if in_group else None))

    def _touch(self, name: str) -> None:
        labels = {"touched": str(self.model.revision)}
        self.model.write(Patch(Target(Pod, "ns", name), {"metadata": {"labels": labels}}))

    def _delete(self, name: str) -> None:
        self.model.write(Delete(Target(Pod, "ns", name), grace_s=0))

    def _finish(self, name: str) -> None:
        target = Target(Pod, "ns", name)
        self.model.write(Patch(target, {"status": {"phase": "Succeeded"}}, "status"))

    def _bind(self, name: str) -> None:
        self.model.write(Patch(Target(Pod, "ns", name), {"spec": {"nodeName": "n"}}))

    def _allocate(self, number: int, name: str) -> None:
        """Allocate a claim for a pod that lives."""
        claims = sorted(self.model.objects.list(ResourceClaim), key=lambda c: c.metadata.name)
        found = self.model.get(Pod, "ns", name)
        if found is None or is_pod_done(found) or number >= len(claims):
            return
        claim = claims[number]
        reserved = [each.uid for each in claim.status.reserved_for]
        if claim.metadata.deletion_timestamp or found.metadata.uid in reserved:
            return
        target = Target.of(claim)
        finalizers = ["resource.kubernetes.io/delete-protection"]
        self.model.write(Patch(target, {"metadata": {"finalizers": finalizers}}))
        consumer = {"resource": "pods", "name": name, "uid": found.metadata.uid}
        before = [
            {"apiGroup": e.api_group, "resource": e.resource, "name": e.name, "uid": e.uid}
            for e in claim.status.reserved_for
        ]
        status = {
            "allocation": {"devices": {"results": [result()]}},
            "reservedFor": [*before, consumer],
        }
        self.model.write(Patch(target, {"status": status}, "status"))

    def _delete_claim(self, number: int) -> None:
        claims = sorted(self.model.objects.list(ResourceClaim), key=lambda c: c.metadata.name)
        if number < len(claims):
            self.model.write(Delete(Target.of(claims[number])))

    def _template(self, there: bool) -> None:
        if there:
            self.model.put(template())
        else:
            self.model.write(Delete(Target(ResourceClaimTemplate, "ns", "t")))

    def _group(self, there: bool) -> None:
        if there:
            self.model.put(group(claims=[SHARED]))
        else:
            self.model.write(Delete(Target(PodGroup, "ns", "g")))

    def _deliver(self, struct: type[Any]) -> None:
        self.deliver(struct)

    def _work(self, number: int) -> None:
        self.work(number)

    def collect(self) -> None:
        """Delete claims whose owners are gone, as the garbage collector does."""
        uids = {each.metadata.uid for each in self.model.objects.list(Pod)}
        uids |= {each.metadata.uid for each in self.model.objects.list(PodGroup)}
        for claim in list(self.model.objects.list(ResourceClaim)):
            owners = claim.metadata.owner_references
            if owners and not any(owner.uid in uids for owner in owners):
                self.model.write(Delete(Target.of(claim)))
        self.settle()

    def is_at_rest(self) -> bool:
        before = self.model.revision
        for running in self.running:
            for struct in running.controller.kinds:
                for value in list(self.model.objects.list(struct)):
                    running.changed(ObjectChange(value, value))
        self.settle()
        return self.model.revision == before


@settings(max_examples=100)
@given(st.lists(steps, min_size=30, max_size=60))
def test_controllers_come_to_rest_and_leak_nothing(history: list[tuple[Any, ...]]) -> None:
    world = World()
    for step in history:
        world.do(*step)
    world.settle()
    world.collect()
    assert world.is_at_rest()

    made = [
        (owner.uid, claim.metadata.annotations[POD_CLAIM_ANNOTATION])
        for claim in world.model.objects.list(ResourceClaim)
        for owner in claim.metadata.owner_references
    ]
    assert len(made) == len(set(made)), "one claim for each entry"

    has_template = world.model.get(ResourceClaimTemplate, "ns", "t") is not None
    for each in world.model.objects.list(Pod):
        if has_template and not is_pod_done(each) and each.spec.scheduling_group is None:
            named = {s.name for s in each.status.resource_claim_statuses or ()}
            assert named == {"own", "t"}, "every entry has its claim"

    users: list[Any] = [*world.model.objects.list(Pod), *world.model.objects.list(PodGroup)]
    for user in users:
        world.model.write(Delete(Target.of(user), grace_s=0))
    world.settle()
    world.collect()
    for claim in world.model.objects.list(ResourceClaim):
        assert claim.metadata.owner_references == ()
        assert (claim.status.allocation, claim.status.reserved_for) == (None, ())
    assert world.is_at_rest()
