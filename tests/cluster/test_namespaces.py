"""Deleted namespaces at a server that leaves them to a controller, as Kubernetes' does."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from moorage.api.core import ConfigMap, Namespace, Pod, Secret
from moorage.api.core.namespace import RemainingContent
from moorage.api.gates import Gates
from moorage.api.meta import ObjectMeta
from moorage.client.contract import Request, Response
from moorage.client.errors import ClientError, NotFoundError
from moorage.client.namespace_deleter import discover, empty_namespace
from moorage.client.writes import Create, Delete, Patch, Target
from moorage.cluster.embedded import EmbeddedCluster, embedded
from moorage.cluster.leader_process import empties_namespaces
from moorage.cluster.programs import ProgramContext
from moorage.kit.clock import LoopClock, run_simulated
from moorage.store.memory import open_memory

NAME = "team"


@asynccontextmanager
async def cluster_in(folder: Path, *, by_controller: bool = True) -> AsyncIterator[EmbeddedCluster]:
    clock = LoopClock()
    around = ProgramContext(Gates.parse(), clock, random.Random(0).random)
    async with (
        open_memory(clock=lambda: clock.now().timestamp()) as store,
        embedded(folder, around, store=store, server_ends_namespaces=not by_controller) as cluster,
    ):
        await cluster.admin.write(Create(Namespace(metadata=ObjectMeta(name=NAME))))
        await asyncio.sleep(1)
        yield cluster


def play(folder: Path, act: Callable[[EmbeddedCluster], Awaitable[None]], **options: Any) -> None:
    async def run() -> None:
        async with cluster_in(folder, **options) as cluster:
            await act(cluster)

    run_simulated(run())


async def make(cluster: EmbeddedCluster, struct: type[Any], name: str, **more: Any) -> None:
    metadata = ObjectMeta(name=name, namespace=NAME, **more)
    await cluster.admin.write(Create(struct(metadata=metadata)))


async def delete(cluster: EmbeddedCluster) -> None:
    await cluster.admin.write(Delete(Target(Namespace, "", NAME)))


async def make_pod(cluster: EmbeddedCluster) -> None:
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "web", "namespace": NAME},
        "spec": {"containers": [{"name": "c", "image": "i"}], "nodeName": "elsewhere"},
    }
    path = f"/api/v1/namespaces/{NAME}/pods"
    await cluster.admin.send(Request("POST", path, body=json.dumps(pod).encode()))


async def conditions(cluster: EmbeddedCluster) -> dict[str, tuple[str, str, str]]:
    found = await cluster.admin.get(Namespace, "", NAME)
    assert found is not None
    assert found.status.phase == "Terminating"
    return {each.type: (each.status, each.reason, each.message) for each in found.status.conditions}


def test_a_deleted_namespace_goes_with_all_that_is_in_it(tmp_path: Path) -> None:
    async def act(cluster: EmbeddedCluster) -> None:
        await make(cluster, ConfigMap, "settings")
        await make(cluster, Secret, "key")
        await delete(cluster)
        await asyncio.sleep(4)
        assert await cluster.admin.get(ConfigMap, NAME, "settings") is not None
        await asyncio.sleep(3)
        assert await cluster.admin.get(Namespace, "", NAME) is None
        assert not (await cluster.admin.list(ConfigMap, NAME)).values
        assert not (await cluster.admin.list(Secret, NAME)).values

    play(tmp_path, act)


def test_finalizers_keep_a_namespace_and_are_told(tmp_path: Path) -> None:
    async def act(cluster: EmbeddedCluster) -> None:
        await make(cluster, ConfigMap, "held", finalizers=("example.com/hold",))
        await delete(cluster)
        await asyncio.sleep(10)
        told = await conditions(cluster)
        assert told["NamespaceContentRemaining"] == (
            "True",
            "SomeResourcesRemain",
            "Some resources are remaining: configmaps. has 1 resource instances",
        )
        assert told["NamespaceFinalizersRemaining"][2] == (
            "Some content in the namespace has finalizers remaining: "
            "example.com/hold in 1 resource instances"
        )
        assert told["NamespaceDeletionContentFailure"][:2] == ("False", "ContentDeleted")
        body = {"metadata": {"finalizers": None}}
        await cluster.admin.write(Patch(Target(ConfigMap, NAME, "held"), body))
        await asyncio.sleep(10)
        assert await cluster.admin.get(Namespace, "", NAME) is None

    play(tmp_path, act)


def test_what_pods_use_stays_until_they_have_ended(tmp_path: Path) -> None:
    async def act(cluster: EmbeddedCluster) -> None:
        await make_pod(cluster)
        await make(cluster, ConfigMap, "settings")
        await delete(cluster)
        await asyncio.sleep(10)
        assert await cluster.admin.get(ConfigMap, NAME, "settings") is not None
        pod = await cluster.admin.get(Pod, NAME, "web")
        assert pod is not None
        assert pod.metadata.deletion_timestamp is not None
        await cluster.admin.write(Delete(Target(Pod, NAME, "web"), grace_s=0))
        await asyncio.sleep(1)  # the last pod is gone: nobody waits for the next look
        assert await cluster.admin.get(Namespace, "", NAME) is None

    play(tmp_path, act)


def test_a_finalizer_of_somebody_else_is_left_to_them(tmp_path: Path) -> None:
    async def act(cluster: EmbeddedCluster) -> None:
        namespace = await cluster.admin.get(Namespace, "", NAME)
        assert namespace is not None
        body = {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": NAME},
            "spec": {"finalizers": ["kubernetes", "example.com/own"]},
        }
        path = f"/api/v1/namespaces/{NAME}/finalize"
        await cluster.admin.send(Request("PUT", path, body=json.dumps(body).encode()))
        await delete(cluster)
        await asyncio.sleep(10)
        namespace = await cluster.admin.get(Namespace, "", NAME)
        assert namespace is not None
        assert namespace.spec.finalizers == ("example.com/own",)

    play(tmp_path, act)


def test_a_server_that_does_it_itself_has_no_controller_for_it(tmp_path: Path) -> None:
    async def act(cluster: EmbeddedCluster) -> None:
        assert await empties_namespaces(cluster.admin)
        loops = cluster.controlling.loops.running
        assert "namespace-controller" not in [each.controller.name for each in loops]
        await delete(cluster)
        await asyncio.sleep(2)
        assert await cluster.admin.get(Namespace, "", NAME) is None

    play(tmp_path, act, by_controller=False)


# --- what a server may answer -------------------------------------------------------------------


def error(code: int, message: str) -> ClientError:
    struct = NotFoundError if code == 404 else ClientError
    return struct(message, code=code)


class Scripted:
    """A server of a few resources, some of which it cannot list or delete."""

    def __init__(self, **answers: Any) -> None:
        self.answers = answers
        self.deleted: list[str] = []

    async def send(self, request: Request) -> Response:
        if request.method == "DELETE":
            self.deleted.append(request.path)
        found = self.answers.get(f"{request.method} {request.path}")
        if found is None and request.method == "GET":
            found = {"items": []}
        if isinstance(found, list):
            found = found.pop(0)
        if isinstance(found, ClientError):
            raise found
        return Response(200, json.dumps(found or {}).encode())


def resource(name: str, *verbs: str, namespaced: bool = True) -> dict[str, Any]:
    return {"name": name, "namespaced": namespaced, "verbs": list(verbs)}


def group(name: str, *versions: str) -> dict[str, Any]:
    return {
        "name": name,
        "versions": [{"version": each} for each in versions],
        "preferredVersion": {"version": versions[-1]},
    }


ALL = ("delete", "deletecollection", "list")
CORE = {
    "resources": [
        resource("pods", *ALL),
        resource("pods/status", "get"),
        resource("nodes", *ALL, namespaced=False),
        resource("bindings", "create"),
    ]
}


def scripted(groups: list[dict[str, Any]], **answers: Any) -> Scripted:
    known = {"GET /api/v1": CORE, "GET /apis": {"groups": groups}, **answers}
    return Scripted(**known)


def empty(server: Scripted, grace_s: int = 0) -> RemainingContent:
    return asyncio.run(empty_namespace(server, "ns", grace_s=grace_s))


def test_resources_are_found_in_the_version_that_their_group_prefers() -> None:
    server = scripted(
        [group("example.com", "v1", "v2")],
        **{
            "GET /apis/example.com/v1": {"resources": [resource("old", *ALL), resource("x", *ALL)]},
            "GET /apis/example.com/v2": {"resources": [resource("x", *ALL)]},
        },
    )
    found = asyncio.run(discover(server))
    assert sorted(each.path("ns") for each in found.resources) == [
        "/api/v1/namespaces/ns/pods",
        "/apis/example.com/v1/namespaces/ns/old",
        "/apis/example.com/v2/namespaces/ns/x",
    ]
    assert empty(server).is_empty
    assert server.deleted[0] == "/api/v1/namespaces/ns/pods"


def test_a_group_that_does_not_answer_is_noted_and_the_others_are_emptied() -> None:
    server = scripted(
        [group("broken.example.com", "v1"), group("example.com", "v1")],
        **{
            "GET /apis/broken.example.com/v1": error(503, "the server is ill"),
            "GET /apis/example.com/v1": {"resources": [resource("x", *ALL)]},
        },
    )
    remains = empty(server)
    assert remains.undiscovered == ("broken.example.com/v1: the server is ill",)
    assert not remains.is_empty
    assert "/apis/example.com/v1/namespaces/ns/x" in server.deleted


@pytest.mark.parametrize("verbs", [("delete", "list"), ALL])
def test_objects_go_one_by_one_where_they_cannot_go_together(verbs: tuple[str, ...]) -> None:
    path = "/apis/example.com/v1/namespaces/ns/x"
    two = {"items": [{"metadata": {"name": "a"}}, {"metadata": {"name": "b c"}}]}
    server = scripted(
        [group("example.com", "v1")],
        **{
            "GET /apis/example.com/v1": {"resources": [resource("x", *verbs)]},
            f"GET {path}": [two, {"items": None}],
            f"DELETE {path}": error(405, "the server does not allow this method"),
            f"DELETE {path}/a": error(404, "not found"),
        },
    )
    assert empty(server).is_empty
    assert server.deleted[-2:] == [f"{path}/a", f"{path}/b%20c"]


def test_lists_are_read_to_their_end() -> None:
    path = "/apis/example.com/v1/namespaces/ns/x"
    held = {"metadata": {"name": "a", "finalizers": ["f"]}}
    pages = [{"items": [held] * 2, "metadata": {"continue": "more"}}, {"items": [held]}]
    server = scripted(
        [group("example.com", "v1")],
        **{
            "GET /apis/example.com/v1": {"resources": [resource("x", *ALL)]},
            f"GET {path}": pages,
        },
    )
    remains = empty(server)
    assert remains.resources == {"x.example.com": 3}
    assert remains.finalizers == {"f": 3}
    assert remains.failures == ()


def test_what_stays_without_a_reason_is_a_failure_but_pods_may_take_their_time() -> None:
    pods = "/api/v1/namespaces/ns/pods"
    left = {"items": [{"metadata": {"name": "web"}}]}
    late = "unexpected items still remain in namespace: ns for gvr: /v1, Resource=pods"
    assert empty(scripted([], **{f"GET {pods}": left})).failures == (late,)
    remains = empty(scripted([], **{f"GET {pods}": left}), grace_s=30)
    assert (remains.failures, remains.resources) == ((), {"pods.": 1})


@pytest.mark.parametrize("answer", [error(403, "you may not"), "no list"])
def test_what_cannot_be_deleted_is_told(answer: Any) -> None:
    pods = "/api/v1/namespaces/ns/pods"
    method = "DELETE" if isinstance(answer, ClientError) else "GET"
    (failure,) = empty(scripted([], **{f"{method} {pods}": answer})).failures
    assert failure in ("you may not",) or failure.startswith("the server's response cannot be")
