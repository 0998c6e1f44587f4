"""A snapshot holds each object once, by kind."""

from moorage.api.core import Node, Pod
from moorage.api.meta import ObjectMeta
from moorage.insight.snapshot.snapshot import Snapshot


def node(name: str, **labels: str) -> Node:
    return Node(metadata=ObjectMeta(name=name, labels=labels))


def pod(name: str, namespace: str = "default") -> Pod:
    return Pod(metadata=ObjectMeta(name=name, namespace=namespace))


def test_objects_are_sorted_by_kind_and_keep_their_order() -> None:
    snapshot = Snapshot.of([pod("b"), node("n"), pod("a")])
    assert [each.metadata.name for each in snapshot.objects()] == ["n", "b", "a"]


def test_the_later_of_two_with_one_name_counts() -> None:
    snapshot = Snapshot.of([node("n"), node("m")]).with_objects([node("n", zone="a")])
    assert [(each.metadata.name, each.metadata.labels) for each in snapshot.nodes] == [
        ("n", {"zone": "a"}),
        ("m", {}),
    ]


def test_the_same_name_in_another_namespace_is_another_object() -> None:
    assert len(Snapshot.of([pod("a"), pod("a", "other")]).pods) == 2


def test_objects_can_be_taken_away_by_name() -> None:
    assert Snapshot.of([pod("a"), pod("b")]).without([pod("a")]).pods == (pod("b"),)


def test_kinds_that_decide_nothing_are_left_out() -> None:
    assert list(Snapshot.of([object()]).objects()) == []
