"""The server in memory, and controllers run on it to a fixed point."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from msgspec.structs import replace

from moorage.api.core.pod import Pod, PodSpec
from moorage.api.meta import ObjectMeta
from moorage.api.resource.v1 import ResourceClaim
from moorage.api.timestamp import Timestamp
from moorage.client.indexer import Indexer, ObjectKey
from moorage.client.writes import Apply, Create, Delete, Patch, RequeueAfter, Target, Update
from moorage.controllers.controller import Answers, Controller, Lookup, ReconcileFailed, Step
from tests.controllers.model import Model, RefusedError
from tests.controllers.settling import Settling, settle

NOW = Timestamp.parse("2026-01-01T00:00:00Z")


def claim(name: str = "c", **metadata: object) -> ResourceClaim:
    return ResourceClaim(metadata=ObjectMeta(name=name, namespace="ns", **metadata))  # type: ignore[arg-type]


def stored(model: Model, name: str = "c") -> ResourceClaim:
    found = model.get(ResourceClaim, "ns", name)
    assert isinstance(found, ResourceClaim)
    return found


# --- the server ---------------------------------------------------------------------------------


def test_names_are_made_by_counting() -> None:
    model = Model(NOW)
    first = model.write(Create(claim("", generate_name="p-")))
    second = model.write(Create(claim("", generate_name="p-")))
    assert first.metadata.name != second.metadata.name
    assert len(first.metadata.name) == len("p-") + 5
    assert first.metadata.uid != second.metadata.uid


def test_update_meets_only_the_version_it_was_made_from() -> None:
    model = Model(NOW)
    old = model.write(Create(claim()))
    model.write(Update(replace(old, metadata=replace(old.metadata, labels={"a": "b"}))))
    with pytest.raises(RefusedError) as error:
        model.write(Update(old))
    assert error.value.refused.is_conflict


def test_finalizers_keep_an_object_until_they_are_gone() -> None:
    model = Model(NOW)
    model.put(claim(finalizers=("f",)))
    model.write(Delete(Target.of(stored(model))))
    assert stored(model).metadata.deletion_timestamp == NOW
    value = stored(model)
    model.write(Update(replace(value, metadata=replace(value.metadata, finalizers=()))))
    assert model.get(ResourceClaim, "ns", "c") is None


def test_scheduled_pod_stays_for_its_grace() -> None:
    model = Model(NOW)
    spec = PodSpec(node_name="n")
    model.put(Pod(metadata=ObjectMeta(name="p", namespace="ns"), spec=spec))
    model.write(Delete(Target(Pod, "ns", "p")))
    assert model.get(Pod, "ns", "p").metadata.deletion_timestamp == NOW
    model.write(Delete(Target(Pod, "ns", "p"), grace_s=0))
    assert model.get(Pod, "ns", "p") is None


def test_delete_of_another_uid_is_refused() -> None:
    model = Model(NOW)
    model.put(claim())
    with pytest.raises(RefusedError):
        model.write(Delete(Target(ResourceClaim, "ns", "c", "other")))


def test_status_is_written_apart() -> None:
    model = Model(NOW)
    model.put(Pod(metadata=ObjectMeta(name="p", namespace="ns")))
    target = Target(Pod, "ns", "p")
    model.write(
        Patch(target, {"status": {"phase": "Running"}, "spec": {"nodeName": "n"}}, "status")
    )
    pod = model.get(Pod, "ns", "p")
    assert (pod.status.phase, pod.spec.node_name) == ("Running", "")


def test_applied_lists_merge_by_what_names_their_items() -> None:
    model = Model(NOW)
    model.put(Pod(metadata=ObjectMeta(name="p", namespace="ns")))
    target = Target(Pod, "ns", "p")
    for name in ("a", "b"):
        entry = {"name": name, "resourceClaimName": f"claim-{name}"}
        body = {"status": {"resourceClaimStatuses": [entry]}}
        model.write(Apply(target, body, "test", "status"))
    found = model.get(Pod, "ns", "p").status.resource_claim_statuses
    assert [each.name for each in found] == ["a", "b"]


# --- controllers ----------------------------------------------------------------------------------


class Labels(Controller):
    """Labels each claim, in two updates of one plan, after ten seconds."""

    name = "labels"
    kinds = (ResourceClaim,)

    def reconcile(
        self, objects: Indexer, key: ObjectKey, now: Timestamp, answers: Answers
    ) -> Iterable[Step]:
        found = objects.get(ResourceClaim, *key)
        if found is None or found.metadata.labels.get("number") == "2":
            return
        waited = (now.instant - NOW.instant).total_seconds()
        if waited < 10:
            yield RequeueAfter(key, 10 - waited)
            return
        for number in ("1", "2"):
            metadata = replace(found.metadata, labels={"number": number})
            yield Update(replace(found, metadata=metadata))


def test_time_passes_only_when_told() -> None:
    world = Settling(Model(NOW), [Labels()])
    world.model.put(claim())
    world.settle()
    assert stored(world.model).metadata.labels == {}
    world.advance(9)
    assert stored(world.model).metadata.labels == {}
    world.advance(1)
    assert stored(world.model).metadata.labels == {"number": "2"}


class Curious(Controller):
    """Needs an answer of the server before it fails."""

    name = "curious"
    kinds = (ResourceClaim,)

    def __init__(self) -> None:
        self.planned = 0

    def reconcile(
        self, objects: Indexer, key: ObjectKey, now: Timestamp, answers: Answers
    ) -> Iterable[Step]:
        ask = Lookup(ResourceClaim, *key)
        if ask not in answers:
            return [ask]
        assert answers[ask] == objects.get(ResourceClaim, *key)
        self.planned += 1
        return [ReconcileFailed("not yet", attempts_max=3)]


def test_failures_come_again_later_and_later_until_enough() -> None:
    controller = Curious()
    world = Settling(Model(NOW), [controller])
    world.model.put(claim())
    world.settle()
    assert controller.planned == 1
    world.advance(1)
    assert controller.planned == 2
    world.advance(1000)
    assert controller.planned == 3


class Restless(Controller):
    """Changes what it has changed."""

    name = "restless"
    kinds = (ResourceClaim,)

    def reconcile(
        self, objects: Indexer, key: ObjectKey, now: Timestamp, answers: Answers
    ) -> Iterable[Step]:
        found = objects.get(ResourceClaim, *key)
        assert found is not None
        count = int(found.metadata.labels.get("count", "0"))
        metadata = replace(found.metadata, labels={"count": str(count + 1)})
        return [Update(replace(found, metadata=metadata))]


def test_controller_without_rest_is_an_error() -> None:
    world = Settling(Model(NOW), [Restless()], plans_max=50)
    world.model.put(claim())
    with pytest.raises(AssertionError, match="no rest"):
        world.settle()


def test_settle_begins_with_what_is_there() -> None:
    objects = Indexer()
    objects.put(claim())
    controller = Curious()
    settle([controller], objects, NOW)
    assert controller.planned == 1
