"""What nodes say: the nearest first, and nobody is diagnosed before being asked for."""

from __future__ import annotations

import json
from typing import Any

from moorage.api.documents import read
from moorage.api.gates import Gates
from moorage.api.timestamp import Timestamp
from moorage.insight.explain.pods import explain
from moorage.insight.explain.trials import EFFORT, Effort
from moorage.insight.explain.verdicts import DIAGNOSES_MAX, look_at_nodes
from moorage.insight.plan.planner import Plan, plan
from moorage.insight.snapshot.builder import SnapshotBuilder
from moorage.validation.strategy import Context

DRIVER = "gpu.example.com"
NODES = DIAGNOSES_MAX + 2


def planned(devices: dict[str, int], wanted: int, cpu: dict[str, str] | None = None) -> Plan:
    """Return the plan of a pod that wants devices where nodes have so many."""
    context = Context(gates=Gates.parse(), now=Timestamp.parse("2026-01-01T00:00:00Z"))
    builder = SnapshotBuilder(context, is_cluster=True)
    trees = [*_class_and_pod(wanted), *(t for n in devices.items() for t in _node(*n, cpu or {}))]
    for document in read("\n---\n".join(map(json.dumps, trees)).encode(), source="trees"):
        builder.add_document(document)
    builder.finish()
    assert not builder.refused
    return plan(builder.snapshot(), context)


def _class_and_pod(wanted: int) -> list[dict[str, Any]]:
    selector = {"cel": {"expression": f'device.driver == "{DRIVER}"'}}
    exactly = {"deviceClassName": DRIVER, "count": wanted}
    spec = {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}}
    container = {"name": "main", "image": "i", "resources": {"requests": {"cpu": "4"}}}
    claims = [{"name": "gpu", "resourceClaimName": "gpus"}] if wanted else []
    resource = {"apiVersion": "resource.k8s.io/v1"}
    return [
        {
            **resource,
            "kind": "DeviceClass",
            "metadata": {"name": DRIVER},
            "spec": {"selectors": [selector]},
        },
        {
            **resource,
            "kind": "ResourceClaim",
            "metadata": {"name": "gpus", "namespace": "default"},
            "spec": spec if wanted else {"devices": {}},
        },
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "p", "namespace": "default"},
            "spec": {"containers": [container], "resourceClaims": claims},
        },
    ]


def _node(name: str, devices: int, cpu: dict[str, str]) -> list[dict[str, Any]]:
    room = {"cpu": cpu.get(name, "8"), "memory": "8Gi", "pods": "110"}
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name},
        "status": {"capacity": room, "allocatable": room},
    }
    pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
    slice_ = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": f"{name}-{DRIVER}"},
        "spec": {
            "driver": DRIVER,
            "nodeName": name,
            "pool": pool,
            "devices": [{"name": f"gpu-{number}"} for number in range(devices)],
        },
    }
    return [node, slice_] if devices else [node]


def first_nodes(made: Plan) -> list[str]:
    (pending,) = made.pending
    return [verdict.nodes[0] for verdict in explain(made, pending).verdicts]


def test_a_node_without_such_devices_comes_last_whatever_its_name() -> None:
    made = planned({"a": 0, "b": 0, "c": 2, "d": 3, "e": 0}, wanted=4)
    assert first_nodes(made) == ["d", "c", "a"]


def test_nodes_that_lack_the_least_of_an_amount_come_first() -> None:
    made = planned({"a": 0, "b": 0, "c": 0}, wanted=0, cpu={"a": "1", "b": "3", "c": "2"})
    (pending,) = made.pending
    (verdict,) = explain(made, pending).verdicts
    assert verdict.nodes == ("b", "c", "a")
    assert verdict.facts == ("cpu: 4 asked for, 3 of 3 free",)


def test_the_nearest_kinds_are_diagnosed() -> None:
    made = planned({f"n{number:02}": number for number in range(1, NODES + 1)}, wanted=NODES + 1)
    (pending,) = made.pending
    found = explain(made, pending)
    assert found.verdicts[0].nodes == (f"n{NODES:02}",)
    assert [v.nodes[0] for v in found.verdicts if v.diagnosis is None] == ["n02", "n01"]
    assert found.undiagnosed == 2


def test_conflict_and_fixes_are_found_when_somebody_asks_for_them() -> None:
    made = planned({"a": 1, "b": 2, "c": 3}, wanted=4)
    (pending,) = made.pending
    asked = 0

    def effort() -> Effort:
        nonlocal asked
        asked += 1
        return EFFORT

    stopped_by, (nearest, *_) = look_at_nodes(made.cluster, pending.pod, effort)
    assert (stopped_by, nearest.nodes) == ("", ("c",))
    assert asked == 1 + 3  # for grouping the nodes, and for counting on each kind
    diagnosis = nearest.diagnosis
    assert diagnosis is not None
    assert [funnel.of_class for funnel in diagnosis.funnels] == [3]
    assert asked == 4
    assert diagnosis.fixes
    assert (asked, diagnosis.trials > 1) == (5, True)
