"""Where a plan puts pods is where the live scheduler puts them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from moorage.api.apps import ReplicaSet, StatefulSet
from moorage.api.codec import decode_tree
from moorage.api.core import Pod, ReplicationController, Service
from moorage.api.gates import Gates
from moorage.api.timestamp import Timestamp
from moorage.insight.plan.planner import plan
from moorage.insight.snapshot.snapshot import Snapshot
from moorage.validation.strategy import Context
from tests.scheduler.live.fakeserver import FakeServer
from tests.scheduler.live.harness import Rig
from tests.scheduler.makers import HOST, ZONE, node, pod

CONTEXT = Context(gates=Gates.parse(), now=Timestamp.parse("2026-01-01T00:00:00Z"))
WEB = {"app": "web"}
# By what is free alone, every pod would go to the large one.
NODES = [
    node("large", labels={HOST: "large", ZONE: "east"}, allocatable={"cpu": "64", "pods": "110"}),
    node("small-1", labels={HOST: "small-1", ZONE: "east"}),
    node("small-2", labels={HOST: "small-2", ZONE: "west"}),
]


def spreader(struct: type[Any], selector: dict[str, Any] | None, name: str = "web") -> Any:
    tree = {"metadata": {"name": name, "namespace": "default"}, "spec": {"selector": selector}}
    return decode_tree(tree, struct).value


def webs(owner: Any = None, api_version: str = "") -> list[Pod]:
    references = []
    if owner is not None:
        version = api_version or owner.api_version
        name = owner.metadata.name
        reference = {"apiVersion": version, "kind": owner.kind, "name": name, "uid": "u"}
        references = [{**reference, "controller": True}]
    metadata = {"ownerReferences": references}
    return [
        pod(f"web-{number}", labels=WEB, requests={"cpu": "100m"}, metadata=metadata)
        for number in range(6)
    ]


def live(*objects: Any) -> list[str]:
    server = FakeServer()
    server.put(*objects)
    rig = Rig(server)
    rig.run()
    return [rig.node_of(each.metadata.name) for each in objects if isinstance(each, Pod)]


def planned(*objects: Any) -> list[str]:
    results = plan(Snapshot.of(objects), CONTEXT).results
    return [getattr(each, "node", "") for each in results]


REPLICA_SET = spreader(ReplicaSet, {"matchLabels": WEB})
STATEFUL_SET = spreader(StatefulSet, {"matchLabels": WEB})
CONTROLLER = spreader(ReplicationController, WEB)
SERVICE = spreader(Service, WEB)


@pytest.mark.parametrize(
    "objects",
    [
        [REPLICA_SET, *webs(REPLICA_SET)],
        [STATEFUL_SET, *webs(STATEFUL_SET)],
        [CONTROLLER, *webs(CONTROLLER)],
        [SERVICE, *webs()],
        [SERVICE, REPLICA_SET, *webs(REPLICA_SET)],
    ],
    ids=["ReplicaSet", "StatefulSet", "ReplicationController", "Service", "both"],
)
def test_pods_that_belong_together_are_spread_by_default(objects: Sequence[Any]) -> None:
    found = live(*NODES, *objects)
    assert sorted(set(found)) == ["large", "small-1", "small-2"]
    assert planned(*NODES, *objects) == found


@pytest.mark.parametrize(
    "objects",
    [
        webs(),
        webs(REPLICA_SET),  # which is not there
        [REPLICA_SET, *webs(REPLICA_SET, "example.com/v1")],  # another kind of the same name
        [spreader(Service, {"app": "db"}), *webs()],
        [spreader(Service, None), *webs()],
        [spreader(Service, {}), *webs()],
    ],
    ids=["nobody's", "gone", "of another group", "another's", "without selector", "empty"],
)
def test_pods_of_nobody_go_to_where_there_is_most_room(objects: Sequence[Any]) -> None:
    found = live(*NODES, *objects)
    assert set(found) == {"large"}
    assert planned(*NODES, *objects) == found


def test_a_service_counts_from_when_it_comes_until_it_goes() -> None:
    server = FakeServer()
    server.put(*NODES)
    rig = Rig(server)
    first, second, third = (webs()[start : start + 2] for start in (0, 2, 4))
    server.put(*first)
    rig.run()
    server.put(SERVICE, *second)
    rig.run()
    server.drop(SERVICE)
    rig.run()
    server.put(*third)
    rig.run()
    nodes = [rig.node_of(f"web-{number}") for number in range(6)]
    assert nodes[:2] == nodes[4:] == ["large", "large"]
    assert "large" not in nodes[2:4]
