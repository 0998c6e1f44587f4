"""The garbage collector deletes objects without an owner, and keeps all others."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from moorage.api.apps import ReplicaSet
from moorage.api.core import ConfigMap, Pod
from moorage.api.meta import OwnerReference
from moorage.client.writes import Delete, Target
from moorage.controllers.controller import Lookup, ObjectChange
from moorage.controllers.controller_ref_manager import reference_to
from moorage.controllers.garbage_collector import GarbageCollector, plan
from moorage.controllers.replicasets import ReplicaSetController
from tests.controllers.things import NOW, World, replica_set, thing

HELD = "example.com/held"


def owned(name: str, *owners: Any, blocks: bool = True, finalizers: tuple[str, ...] = ()) -> Any:
    references = tuple(
        replace(reference_to(each), controller=None, block_owner_deletion=blocks) for each in owners
    )
    value = thing("v1", "ConfigMap", name)
    metadata = replace(value.metadata, owner_references=references, finalizers=finalizers)
    return replace(value, metadata=metadata)


def names(world: World) -> set[str]:
    return {each.metadata.name for each in world.all(ConfigMap)}


def chain(world: World, *, finalizers: tuple[str, ...] = ()) -> None:
    """Put a, which owns b, which owns c."""
    world.put(thing("v1", "ConfigMap", "a"))
    world.put(owned("b", world.get(ConfigMap, "a"), finalizers=finalizers))
    world.put(owned("c", world.get(ConfigMap, "b")))


def test_in_the_background_dependents_follow_their_owner() -> None:
    world = World(GarbageCollector())
    chain(world)
    world.delete(world.get(ConfigMap, "a"))
    assert names(world) == set()


def test_in_the_foreground_an_owner_waits_for_its_dependents() -> None:
    world = World(GarbageCollector())
    chain(world, finalizers=(HELD,))
    world.delete(world.get(ConfigMap, "a"), "Foreground")
    assert names(world) == {"a", "b"}
    b = world.get(ConfigMap, "b")
    assert b.metadata.deletion_timestamp is not None
    world.change_metadata(b, finalizers=())
    assert names(world) == set()


def test_dependents_that_do_not_block_are_not_waited_for() -> None:
    world = World(GarbageCollector())
    world.put(thing("v1", "ConfigMap", "a"))
    world.put(owned("b", world.get(ConfigMap, "a"), blocks=False, finalizers=(HELD,)))
    world.delete(world.get(ConfigMap, "a"), "Foreground")
    assert names(world) == {"b"}
    assert world.get(ConfigMap, "b").metadata.deletion_timestamp is not None


def test_orphans_stay_without_their_owner() -> None:
    world = World(GarbageCollector())
    chain(world)
    world.delete(world.get(ConfigMap, "a"), "Orphan")
    assert names(world) == {"b", "c"}
    assert world.get(ConfigMap, "b").metadata.owner_references == ()


def test_one_living_owner_is_enough_and_the_lost_one_is_forgotten() -> None:
    world = World(GarbageCollector())
    world.put(thing("v1", "ConfigMap", "a"), thing("v1", "ConfigMap", "b"))
    a, b = world.get(ConfigMap, "a"), world.get(ConfigMap, "b")
    world.put(owned("c", a, b))
    world.delete(a)
    assert [r.name for r in world.get(ConfigMap, "c").metadata.owner_references] == ["b"]
    world.delete(b)
    assert names(world) == set()


def test_an_owner_made_anew_under_its_name_is_another() -> None:
    world = World(GarbageCollector())
    world.put(thing("v1", "ConfigMap", "a"))
    old = world.get(ConfigMap, "a")
    world.model.objects.remove(ConfigMap, "default", "a")
    world.put(thing("v1", "ConfigMap", "a"))
    world.put(owned("b", old))
    assert names(world) == {"a"}


def test_an_owner_of_an_unknown_kind_is_not_judged() -> None:
    world = World(GarbageCollector())
    value = thing("v1", "ConfigMap", "a")
    stranger = OwnerReference(api_version="example.com/v1", kind="Stranger", name="s", uid="u")
    world.put(replace(value, metadata=replace(value.metadata, owner_references=(stranger,))))
    assert names(world) == {"a"}


def test_objects_of_the_cluster_cannot_have_owners_in_namespaces() -> None:
    world = World(GarbageCollector())
    value = thing("v1", "Node", "n")
    pod = OwnerReference(api_version="v1", kind="Pod", name="p", uid="u")
    world.put(replace(value, metadata=replace(value.metadata, owner_references=(pod,))))
    assert world.get(type(value), "n", "") is not None


def test_a_copy_without_the_owner_deletes_nothing_while_the_server_has_it() -> None:
    world = World(GarbageCollector())
    owner = thing("v1", "ConfigMap", "a", metadata={"uid": "living"})
    world.model.put(owned("b", owner))
    b = world.get(ConfigMap, "b")
    ask = Lookup(ConfigMap, "default", "a")
    assert list(plan(world.model.objects, b.metadata.uid, {})) == [ask]
    assert list(plan(world.model.objects, b.metadata.uid, {ask: owner})) == []
    (step,) = plan(world.model.objects, b.metadata.uid, {ask: None})
    assert isinstance(step, Delete)
    assert (step.revision, step.target.uid) == (b.metadata.resource_version, b.metadata.uid)


def test_an_owner_that_was_seen_to_go_is_not_asked_for() -> None:
    world = World(GarbageCollector())
    owner = thing("v1", "ConfigMap", "a", metadata={"uid": "lost"})
    world.model.put(owned("b", owner))
    b, objects = world.get(ConfigMap, "b"), world.model.objects
    collector = GarbageCollector()
    assert list(collector.keys(objects, ObjectChange(owner, None))) == [("", "lost")]
    (step,) = collector.reconcile(objects, ("", "lost"), NOW, {})
    assert step == Delete(Target.of(b), b.metadata.resource_version, propagation="Background")
    list(collector.keys(objects, ObjectChange(None, owner)))  # as after a backup was restored
    (ask,) = collector.reconcile(objects, ("", "lost"), NOW, {})
    assert ask == Lookup(ConfigMap, "default", "a")


def test_circles_are_deleted_in_the_foreground() -> None:
    world = World(GarbageCollector())
    world.put(thing("v1", "ConfigMap", "a"))
    world.put(owned("b", world.get(ConfigMap, "a")))
    a = world.get(ConfigMap, "a")
    circle = replace(reference_to(world.get(ConfigMap, "b")), controller=None)
    world.change_metadata(a, owner_references=(circle,))
    world.delete(a, "Foreground")
    assert names(world) == set()


def test_the_pods_of_a_deleted_set_go_and_are_not_made_again() -> None:
    world = World(ReplicaSetController(), GarbageCollector())
    world.put(replica_set(replicas=3))
    world.delete(replica_set(), "Foreground")
    assert world.all(ReplicaSet) == world.all(Pod) == []


Edges = st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7), st.booleans()), max_size=16)
Deletions = st.lists(
    st.tuples(st.integers(0, 7), st.sampled_from(["Background", "Foreground", "Orphan"])),
    max_size=6,
)


@settings(max_examples=200)
@given(Edges, Deletions)
def test_in_any_forest_all_without_living_owner_go_and_all_others_stay(
    edges: list[tuple[int, int, bool]], deletions: list[tuple[int, str]]
) -> None:
    world = World(GarbageCollector())
    _grow(world, edges)
    reached = {each.metadata.name for each in world.all(ConfigMap)}
    for number, policy in deletions:
        value = world.get(ConfigMap, f"m{number}")
        if value is None:
            continue
        before = {each.metadata.uid: each for each in world.all(ConfigMap)}
        world.delete(value, policy)
        left = {each.metadata.uid for each in world.all(ConfigMap)}
        assert value.metadata.uid not in left
        for each in before.values():
            if each.metadata.uid in left or each.metadata.uid == value.metadata.uid:
                continue
            owners = {reference.uid for reference in each.metadata.owner_references}
            assert owners, "what has no owner is never collected"
            assert not owners & left, "what has a living owner stays"
        for each in world.all(ConfigMap):
            owners = {reference.uid for reference in each.metadata.owner_references}
            assert not owners or owners & left, "no orphan is left"
    assert reached >= {each.metadata.name for each in world.all(ConfigMap)}


def _grow(world: World, edges: list[tuple[int, int, bool]]) -> None:
    """Put eight objects; each edge makes the smaller number the owner of the larger."""
    for number in range(8):
        owners = sorted({low for low, high, _ in edges if high == number and low < number})
        blocks = any(flag for _, high, flag in edges if high == number)
        living = [world.get(ConfigMap, f"m{low}") for low in owners]
        world.put(owned(f"m{number}", *living, blocks=blocks))


def test_an_owner_that_many_have_lost_is_asked_for_once() -> None:
    world = World(GarbageCollector())
    owner = thing("v1", "ConfigMap", "a", metadata={"uid": "lost"})
    world.model.put(*(owned(f"b{number}", owner) for number in range(5)))
    steps = list(GarbageCollector().reconcile(world.model.objects, ("", "lost"), NOW, {}))
    assert steps == [Lookup(ConfigMap, "default", "a")]


def test_a_status_concerns_nobody() -> None:
    pod = owned("b", thing("v1", "ConfigMap", "a"))
    later = replace(pod, data={"x": "y"})
    assert list(GarbageCollector().keys(World().model.objects, ObjectChange(pod, later))) == []
