"""Tokens of service accounts: asked for, bound, and good for asking."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from moorage.api import protobuf
from tests.apiserver.rbac_server import World, within

ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
TOKEN = f"{ACCOUNTS}/robot/token"
PODS = "/api/v1/namespaces/default/pods"
WHOAMI = "/apis/authentication.k8s.io/v1/selfsubjectreviews"


async def set_up(world: World) -> None:
    code, _ = await world.ask("POST", ACCOUNTS, "root", {"metadata": {"name": "robot"}})
    assert code == 201


async def whoami(world: World, token: str) -> tuple[int, Any]:
    return await world.ask("POST", WHOAMI, token, {})


def test_a_token_is_given_and_good(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        await set_up(world)
        code, made = await world.ask("POST", TOKEN, "root", {"spec": {"expirationSeconds": 600}})
        assert code == 201
        assert (made["kind"], made["metadata"]["name"]) == ("TokenRequest", "robot")
        assert made["spec"]["audiences"] == ["https://x"]
        assert made["status"]["expirationTimestamp"] == "2026-01-01T00:10:00Z"
        _, review = await whoami(world, made["status"]["token"])
        assert review["status"]["userInfo"]["username"] == "system:serviceaccount:default:robot"

    within(tmp_path, scenario)


def test_a_token_for_others_is_not_good_here(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        await set_up(world)
        _, made = await world.ask("POST", TOKEN, "root", {"spec": {"audiences": ["elsewhere"]}})
        assert made["spec"]["audiences"] == ["elsewhere"]
        assert (await whoami(world, made["status"]["token"]))[0] == 401

    within(tmp_path, scenario)


def test_a_token_lives_no_longer_than_its_pod(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        await set_up(world)
        spec = {"serviceAccountName": "robot", "containers": [{"name": "c", "image": "i"}]}
        code, _ = await world.ask("POST", PODS, "root", {"metadata": {"name": "p"}, "spec": spec})
        assert code == 201
        bound = {"kind": "Pod", "apiVersion": "v1", "name": "p"}
        _, made = await world.ask("POST", TOKEN, "root", {"spec": {"boundObjectRef": bound}})
        token = made["status"]["token"]
        _, review = await whoami(world, token)
        extra = review["status"]["userInfo"]["extra"]
        assert extra["authentication.kubernetes.io/pod-name"] == ["p"]
        await world.ask("DELETE", f"{PODS}/p", "root")
        assert (await whoami(world, token))[0] == 401

    within(tmp_path, scenario)


def test_protobuf_is_read_and_written(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        await set_up(world)
        tree = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        code, body = await world.ask(
            "POST",
            TOKEN,
            "root",
            protobuf.encode(tree),
            content_type=protobuf.CONTENT_TYPE,
            accept=protobuf.CONTENT_TYPE,
        )
        assert code == 201
        token = protobuf.decode(body).tree["status"]["token"]
        assert (await whoami(world, token))[0] == 201

    within(tmp_path, scenario)


def test_what_is_wrong_is_told(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        await set_up(world)
        cases: list[tuple[str, Any, int, str]] = [
            (f"{ACCOUNTS}/nobody/token", {}, 404, 'serviceaccounts "nobody" not found'),
            (TOKEN, {"spec": {"expirationSeconds": 5}}, 422, "less than 10 minutes"),
            (TOKEN, {"spec": {"audiences": "a"}}, 400, "TokenRequest cannot be read"),
            (TOKEN, {"kind": "Pod"}, 400, "must be a TokenRequest"),
            (TOKEN, {"metadata": {"uid": "other"}}, 409, "does not match the UID"),
            (TOKEN, bound_to("Deployment", "apps/v1"), 400, "cannot bind token to object of type"),
            (TOKEN, bound_to("Pod", "v1"), 404, 'pods "x" not found'),
        ]
        for path, body, code, text in cases:
            answer = await world.ask("POST", path, "root", body)
            assert (answer[0], text in answer[1]["message"]) == (code, True), answer

    within(tmp_path, scenario)


def bound_to(kind: str, version: str) -> Any:
    return {"spec": {"boundObjectRef": {"kind": kind, "apiVersion": version, "name": "x"}}}


def test_who_may_not_ask_gets_none(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        await set_up(world)
        assert (await world.ask("POST", TOKEN, "ann", {}))[0] == 403
        code, _ = await world.ask("POST", TOKEN, "node-a", {})
        assert code == 403
        assert (await world.ask("GET", TOKEN, "root"))[0] == 405

    within(tmp_path, scenario)
