"""What the agent of a node, and drivers with its credentials, need and may; and what they may not.

A play in the order of a node's life: each line is asked as the node `node-a`, or as `root` to set
the scene, and has the status that is answered.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.apiserver.rbac_server import CLAIMS, SLICES, World, within

NODES, PODS = "/api/v1/nodes", "/api/v1/namespaces/default/pods"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
EVENTS = "/api/v1/namespaces/default/events"
NEW_EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
OWN, OTHER = "fieldSelector=spec.nodeName=node-a", "fieldSelector=spec.nodeName=node-b"


class Step(NamedTuple):
    """Something that is asked, and how it is answered."""

    code: int
    method: str
    path: str
    body: Any = None
    who: str = "node-a"
    type: str = "application/json"


def made(kind: str, name: str, version: str = "v1", **more: Any) -> dict[str, Any]:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name}, **more}


def node(name: str, **labels: str) -> dict[str, Any]:
    return {**made("Node", name), "metadata": {"name": name, "labels": labels}}


def pod(name: str, on: str) -> dict[str, Any]:
    spec = {
        "nodeName": on,
        "containers": [{"name": "c", "image": "i", "resources": {"claims": [{"name": "gpu"}]}}],
        "resourceClaims": [{"name": "gpu", "resourceClaimName": f"claim-{name}"}],
    }
    return made("Pod", name, spec=spec)


def claim(name: str) -> dict[str, Any]:
    requests = [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]
    return made(
        "ResourceClaim", name, "resource.k8s.io/v1", spec={"devices": {"requests": requests}}
    )


def slice_of(name: str, on: str, generation: int = 1) -> dict[str, Any]:
    pool = {"name": on, "generation": generation, "resourceSliceCount": 1}
    spec = {"driver": "gpu.example.com", "nodeName": on, "pool": pool}
    return made("ResourceSlice", name, "resource.k8s.io/v1", spec=spec)


def lease(name: str) -> dict[str, Any]:
    return made("Lease", name, "coordination.k8s.io/v1", spec={"holderIdentity": name})


def event(name: str) -> dict[str, Any]:
    about = {"kind": "Pod", "namespace": "default", "name": "mine"}
    return made("Event", name, involvedObject=about, reason="Started", type="Normal")


def new_event(name: str) -> dict[str, Any]:
    more = {
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "reportingController": "moorage.dev/node",
        "reportingInstance": "node-a",
        "action": "Starting",
        "reason": "Started",
        "type": "Normal",
        "regarding": {"kind": "Pod", "namespace": "default", "name": "mine"},
    }
    return made("Event", name, "events.k8s.io/v1", **more)


RUNNING = {"status": {"phase": "Running"}}
READY = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}

SCENE = [
    Step(201, "POST", CLAIMS, claim("claim-mine"), "root"),
    Step(201, "POST", CLAIMS, claim("claim-theirs"), "root"),
    Step(201, "POST", NODES, node("node-b"), "root"),
    Step(201, "POST", PODS, pod("mine", "node-a"), "root"),
    Step(201, "POST", PODS, pod("theirs", "node-b"), "root"),
    Step(201, "POST", SLICES, slice_of("theirs", "node-b"), "root"),
]

LIFE = [
    # Itself, and its lease.
    Step(404, "GET", f"{NODES}/node-a"),
    Step(201, "POST", NODES, node("node-a", **{"kubernetes.io/hostname": "node-a"})),
    Step(200, "PATCH", f"{NODES}/node-a", {"metadata": {"annotations": {"a": "b"}}}, type=MERGE),
    Step(200, "PATCH", f"{NODES}/node-a/status", READY, type=STRATEGIC),
    Step(200, "GET", f"{NODES}?fieldSelector=metadata.name=node-a"),
    Step(404, "GET", f"{LEASES}/node-a"),
    Step(201, "POST", LEASES, lease("node-a")),
    Step(422, "PUT", f"{LEASES}/node-a", lease("node-a")),  # It may, but not without a version.
    Step(200, "PATCH", f"{LEASES}/node-a", {"spec": {"holderIdentity": "node-a"}}, type=MERGE),
    # Its pods and their claims.
    Step(200, "GET", f"/api/v1/pods?{OWN}"),
    Step(200, "GET", f"{PODS}/mine"),
    Step(200, "PATCH", f"{PODS}/mine/status", RUNNING, type=STRATEGIC),
    Step(200, "GET", f"{CLAIMS}/claim-mine"),
    Step(201, "POST", EVENTS, event("e")),
    Step(200, "PATCH", f"{EVENTS}/e", {"count": 2}, type=MERGE),
    Step(201, "POST", NEW_EVENTS, new_event("n")),
    Step(200, "PATCH", f"{NEW_EVENTS}/n", {"metadata": {"labels": {"x": "y"}}}, type=MERGE),
    # Its slices.
    Step(201, "POST", SLICES, slice_of("a", "node-a")),
    Step(201, "POST", SLICES, slice_of("b", "node-a")),
    Step(200, "GET", f"{SLICES}?{OWN}"),
    Step(200, "GET", f"{SLICES}/a"),
    Step(200, "PATCH", f"{SLICES}/a", {"metadata": {"labels": {"x": "y"}}}, type=MERGE),
    Step(200, "DELETE", f"{SLICES}/a"),
    Step(200, "DELETE", f"{SLICES}?{OWN}"),
    Step(404, "GET", f"{SLICES}/b", who="root"),
    Step(200, "GET", f"{SLICES}/theirs", who="root"),
    # The end of a pod; what it gave goes with it.
    Step(200, "DELETE", f"{PODS}/mine?gracePeriodSeconds=0"),
    Step(404, "GET", f"{PODS}/mine", who="root"),
    Step(403, "GET", f"{CLAIMS}/claim-mine"),
]

NEVER = [
    Step(403, "GET", NODES),
    Step(403, "GET", f"{NODES}/node-b"),
    Step(403, "POST", NODES, node("node-c")),
    Step(403, "PATCH", f"{NODES}/node-b/status", READY, type=STRATEGIC),
    Step(403, "DELETE", f"{NODES}/node-a"),
    Step(403, "POST", LEASES, lease("node-b")),
    Step(403, "GET", f"{LEASES}/node-b"),
    Step(403, "GET", "/api/v1/pods"),
    Step(403, "GET", f"/api/v1/pods?{OTHER}"),
    Step(403, "GET", f"{PODS}/theirs"),
    Step(403, "POST", PODS, pod("another", "node-a")),
    Step(403, "PATCH", f"{PODS}/theirs/status", RUNNING, type=STRATEGIC),
    Step(403, "DELETE", f"{PODS}/theirs?gracePeriodSeconds=0"),
    Step(403, "GET", f"{PODS}/mine/log"),
    Step(403, "POST", f"{PODS}/mine/exec?command=sh"),
    Step(403, "GET", CLAIMS),
    Step(403, "GET", f"{CLAIMS}/claim-theirs"),
    Step(403, "PATCH", f"{CLAIMS}/claim-mine/status", {"status": {}}, type=MERGE),
    Step(403, "GET", SLICES),
    Step(403, "DELETE", f"{SLICES}?{OTHER}"),
    Step(403, "DELETE", f"{SLICES}/theirs"),
    Step(403, "POST", SLICES, slice_of("c", "node-b")),
    Step(403, "GET", "/api/v1/namespaces/default/secrets"),
]


async def play(world: World, steps: list[Step]) -> list[tuple[Step, int, Any]]:
    """Return the steps that are answered otherwise."""
    wrong = []
    for step in steps:
        code, answer = await world.ask(
            step.method, step.path, step.who, step.body, content_type=step.type
        )
        if code != step.code:
            wrong.append((step, code, answer))
    return wrong


def test_a_node_may_all_that_its_agent_and_drivers_do(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        assert await play(world, SCENE) == []
        assert await play(world, LIFE) == []

    within(tmp_path, scenario)


def test_a_node_may_nothing_else(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        assert await play(world, SCENE) == []
        assert await play(world, NEVER) == []

    within(tmp_path, scenario)


@pytest.mark.parametrize("media", ["application/json-patch+json", MERGE])
def test_a_patch_that_fails_shows_nothing_to_whoever_may_not_read(
    tmp_path: Path, media: str
) -> None:
    """The result of a patch holds the whole object, and a node may patch the status of pods."""
    body: Any = {"apiVersion": "-"}
    if media != MERGE:
        body = [{"op": "add", "path": "/apiVersion", "value": "-"}]

    async def scenario(world: World) -> None:
        assert await play(world, SCENE) == []
        path = f"{PODS}/theirs/status"
        code, told = await world.ask("PATCH", path, "node-a", body, content_type=media)
        assert code == 422
        assert "node-b" not in str(told)
        _, told = await world.ask("PATCH", path, "root", body, content_type=media)
        assert "node-b" in str(told)

    within(tmp_path, scenario)
