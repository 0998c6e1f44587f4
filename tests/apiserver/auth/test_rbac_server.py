"""Authentication by certificates and tokens, and authorization by roles."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from moorage.apiserver.auth.role_reconciler import reconcile_bootstrap_policy
from moorage.apiserver.http.messages import Request, Response
from tests.apiserver.rbac_server import CLAIMS, RBAC, SLICES, World, within


def test_nobody_sees_health_and_version_and_nothing_else(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        for path in ("/healthz", "/livez", "/readyz", "/version"):
            assert (await world.ask("GET", path))[0] == 200
        for path in ("/api", "/metrics", "/openapi/v3", "/", SLICES, "/api/v1/secrets"):
            assert (await world.ask("GET", path))[0] == 403
        code, status = await world.ask("GET", "/apis/resource.k8s.io/v1/deviceclasses")
        assert code == 403
        assert status == {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": (
                'deviceclasses.resource.k8s.io is forbidden: User "system:anonymous" cannot list '
                'resource "deviceclasses" in API group "resource.k8s.io" at the cluster scope'
            ),
            "reason": "Forbidden",
            "details": {"group": "resource.k8s.io", "kind": "deviceclasses"},
            "code": 403,
        }
        assert (await world.ask("GET", "/version", "wrong"))[0] == 401

    within(tmp_path, scenario)


def binding(role: str, user: str) -> dict[str, Any]:
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "b"},
        "subjects": [{"kind": "User", "name": user, "apiGroup": "rbac.authorization.k8s.io"}],
        "roleRef": {"kind": "ClusterRole", "name": role, "apiGroup": "rbac.authorization.k8s.io"},
    }


def test_a_binding_gives_and_its_end_takes(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        bindings = f"{RBAC}/namespaces/default/rolebindings"
        assert (await world.ask("GET", CLAIMS, "ann"))[0] == 403
        assert (await world.ask("POST", bindings, "root", binding("admin", "ann")))[0] == 201
        assert (await world.ask("GET", CLAIMS, "ann"))[0] == 200
        code, status = await world.ask(
            "POST", bindings, "ann", {**binding("cluster-admin", "ann"), "metadata": {"name": "c"}}
        )
        assert code == 403
        assert "attempting to grant RBAC permissions not currently held" in status["message"]
        acting = {"impersonate_user": "ann"}
        assert (await world.ask("GET", CLAIMS, "root", **acting))[0] == 200
        assert (await world.ask("GET", SLICES, "root", **acting))[0] == 403
        assert (await world.ask("GET", CLAIMS, "ann", impersonate_user="root"))[0] == 403
        assert (await world.ask("DELETE", f"{bindings}/b", "root"))[0] == 200
        assert (await world.ask("GET", CLAIMS, "ann"))[0] == 403

    within(tmp_path, scenario)


def slice_of(node: str, name: str) -> dict[str, Any]:
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": name},
        "spec": {"driver": "gpu.example.com", "nodeName": node, "pool": pool},
    }


def test_a_node_writes_its_own_slices_only(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        assert (await world.ask("POST", SLICES, "node-a", slice_of("node-a", "a")))[0] == 201
        code, status = await world.ask("POST", SLICES, "node-a", slice_of("node-b", "b"))
        assert code == 403
        assert status["message"] == (
            'resourceslices.resource.k8s.io "b" is forbidden: can only create ResourceSlice with '
            "the same NodeName as the requesting node"
        )
        assert (await world.ask("POST", SLICES, "root", slice_of("node-b", "b")))[0] == 201
        assert (await world.ask("GET", f"{SLICES}/a", "node-a"))[0] == 200
        assert (await world.ask("GET", f"{SLICES}/b", "node-a"))[0] == 403
        assert (await world.ask("DELETE", f"{SLICES}/b", "node-a"))[0] == 403
        assert (await world.ask("GET", SLICES, "node-a"))[0] == 403
        for selector, code in (
            ("spec.nodeName=node-a", 200),
            ("spec.nodeName==node-a", 200),
            ("spec.nodeName!=node-a", 403),
            ("spec.nodeName=node-b", 403),
        ):
            path = f"{SLICES}?fieldSelector={selector}"
            assert (await world.ask("GET", path, "node-a"))[0] == code
        assert (await world.ask("DELETE", f"{SLICES}/a", "node-a"))[0] == 200

    within(tmp_path, scenario)


def test_the_parts_of_a_claims_status_are_guarded(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        claim = {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": {"name": "c"},
            "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "x"}}]}},
        }
        assert (await world.ask("POST", CLAIMS, "root", claim))[0] == 201
        rules = [
            {
                "verbs": ["update", "patch"],
                "apiGroups": ["resource.k8s.io"],
                "resources": ["resourceclaims/status"],
            }
        ]
        role = {"kind": "ClusterRole", "metadata": {"name": "status"}, "rules": rules}
        assert (await world.ask("POST", f"{RBAC}/clusterroles", "root", role))[0] == 201
        bindings = f"{RBAC}/namespaces/default/rolebindings"
        assert (await world.ask("POST", bindings, "root", binding("status", "ann")))[0] == 201
        result = {"request": "r", "driver": "d.example.com", "pool": "p", "device": "x"}
        patch = {"status": {"allocation": {"devices": {"results": [result]}}}}
        merge = {"content_type": "application/merge-patch+json"}
        code, status = await world.ask("PATCH", f"{CLAIMS}/c/status", "ann", patch, **merge)
        assert code == 422
        assert 'requires resource="resourceclaims/binding", verb="patch"' in status["message"]
        code, _ = await world.ask("PATCH", f"{CLAIMS}/c/status", "scheduler", patch, **merge)
        assert code == 200

    within(tmp_path, scenario)


def test_changes_are_followed_as_they_happen(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        running = asyncio.create_task(world.follower.run())
        bindings = f"{RBAC}/namespaces/default/rolebindings"
        root = {"authorization": "Bearer root", "content-type": "application/json"}
        body = msgspec.json.encode(binding("view", "ann"))
        await world.router.handle(Request("POST", bindings, {}, root, body))
        ann = {"authorization": "Bearer ann"}

        async def seen(code: int) -> None:
            async with asyncio.timeout(10):
                while True:
                    world.authorizer.changed.clear()
                    answer = await world.router.handle(Request("GET", CLAIMS, {}, ann))
                    if isinstance(answer, Response) and answer.status == code:
                        return
                    await world.authorizer.changed.wait()

        await seen(200)
        await world.router.handle(Request("DELETE", f"{bindings}/b", {}, root))
        await seen(403)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    within(tmp_path, scenario)


def test_roles_that_were_taken_apart_are_made_good_at_the_next_start(tmp_path: Path) -> None:
    path = f"{RBAC}/clusterroles/system:public-info-viewer"

    async def scenario(world: World) -> None:
        _, role = await world.ask("GET", path, "root")
        assert (await world.ask("PUT", path, "root", {**role, "rules": []}))[0] == 200
        assert (await world.ask("GET", "/version"))[0] == 403
        await reconcile_bootstrap_policy(world.service)
        await world.follower.load()
        assert (await world.ask("GET", "/version"))[0] == 200

    within(tmp_path, scenario)


def test_reviews_answer_from_roles(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        base = "/apis/authorization.k8s.io/v1"
        spec = {"resourceAttributes": {"verb": "list", "resource": "nodes"}}
        path = f"{base}/selfsubjectaccessreviews"
        code, answer = await world.ask("POST", path, "scheduler", {"spec": spec})
        assert (code, answer["status"]["allowed"]) == (201, True)
        assert "RBAC: allowed by ClusterRoleBinding" in answer["status"]["reason"]
        path = f"{base}/selfsubjectrulesreviews"
        code, answer = await world.ask("POST", path, "ann", {"spec": {"namespace": "default"}})
        assert code == 201
        assert answer["status"]["resourceRules"][0]["verbs"] == ["create"]
        assert (await world.ask("POST", path, "ann", {"spec": {}}))[0] == 400
        path = "/apis/authentication.k8s.io/v1/tokenreviews"
        code, answer = await world.ask("POST", path, "scheduler", {"spec": {"token": "ann"}})
        assert (code, answer["status"]["user"]["username"]) == (201, "ann")
        assert (await world.ask("POST", path, "ann", {"spec": {"token": "ann"}}))[0] == 403

    within(tmp_path, scenario)


@pytest.mark.parametrize("path", ["/api/v1/namespaces/default/configmaps"])
def test_a_user_who_is_known_still_needs_a_role(tmp_path: Path, path: str) -> None:
    async def scenario(world: World) -> None:
        assert (await world.ask("GET", "/api", "ann"))[0] == 200
        assert (await world.ask("GET", path, "ann"))[0] == 403

    within(tmp_path, scenario)
