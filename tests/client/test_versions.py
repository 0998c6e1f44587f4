"""Servers that are older or newer than we are."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from moorage.api.codec import decode_tree
from moorage.api.core import Pod
from moorage.api.resource.v1 import DeviceClass, ResourceClaim
from moorage.client.api_client import ApiClient
from moorage.client.contract import Added
from moorage.client.errors import NotFoundError, UnreadableError
from moorage.client.in_process import Application, InProcessTransport
from moorage.client.writes import Apply, Create, Target, Update
from tests.apiserver.client import claim
from tests.client.servers import Breaking, embedded


def without(application: Application, *prefixes: str) -> Application:
    """Return a server that does not have what is below some paths."""

    async def answer(scope: Any, receive: Any, send: Any) -> None:
        if not f"{scope['path']}/".startswith(prefixes):
            await application(scope, receive, send)
            return
        await send({"type": "http.response.start", "status": 404, "headers": []})
        await send({"type": "http.response.body", "body": b"404 page not found"})

    return answer


@pytest.mark.parametrize(
    ("missing", "used"),
    [
        ((), "v1"),
        (("v1",), "v1beta2"),
        (("v1", "v1beta2"), "v1beta1"),
    ],
)
def test_the_newest_version_that_is_served_is_used(
    tmp_path: Path, missing: tuple[str, ...], used: str
) -> None:
    async def run() -> None:
        async with embedded(tmp_path) as server:
            paths = [f"/apis/resource.k8s.io/{version}/" for version in missing]
            wire = Breaking(InProcessTransport(without(server.application, *paths)))
            client = ApiClient(wire)
            value = decode_tree(claim("one", namespace="default"), ResourceClaim).value
            made = await client.write(Create(value))
            assert made.spec.devices.requests[0].exactly.device_class_name == "gpu"
            assert (made.api_version, type(made)) == ("resource.k8s.io/v1", ResourceClaim)
            page = await client.list(ResourceClaim)
            assert page.values == (made,)
            watch = client.watch(ResourceClaim, after="1")
            assert await anext(watch) == Added(made)
            await watch.aclose()
            assert await client.write(Update(made)) == made
            labels = {"metadata": {"labels": {"a": "b"}}}
            applied = await client.write(Apply(Target.of(made), labels, manager="me"))
            assert applied.metadata.labels == {"a": "b"}
            asked = {request.path for request in wire.asked if "resourceclaims" in request.path}
            assert all(f"/{used}/" in path for path in asked)

    asyncio.run(run())


def test_versions_are_asked_for_once(tmp_path: Path) -> None:
    async def run() -> None:
        async with embedded(tmp_path) as server:
            wire = Breaking(InProcessTransport(server.application))
            client = ApiClient(wire)
            await asyncio.gather(*(client.list(ResourceClaim) for _ in range(5)))
            await client.list(DeviceClass)
            asked = [request.path for request in wire.asked if request.path.count("/") == 3]
            assert len(asked) == len(set(asked))

    asyncio.run(run())


def test_a_kind_that_no_version_has(tmp_path: Path) -> None:
    async def run() -> None:
        async with embedded(tmp_path) as server:
            gone = without(server.application, "/apis/resource.k8s.io")
            with pytest.raises(NotFoundError):
                await ApiClient(InProcessTransport(gone)).list(ResourceClaim)

    asyncio.run(run())


def answering(tree: Any) -> ApiClient:
    async def answer(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": msgspec.json.encode(tree)})

    return ApiClient(InProcessTransport(answer))


def test_fields_that_we_do_not_know_are_no_error() -> None:
    pod = {"metadata": {"name": "p"}, "spec": {"newField": {"a": 1}}, "anotherField": 1}
    found = asyncio.run(answering(pod).get(Pod, "default", "p"))
    assert found is not None
    assert (found.extra, found.spec.extra) == ({"anotherField": 1}, {"newField": {"a": 1}})


def test_items_of_lists_need_not_say_what_they_are() -> None:
    tree = {"metadata": {"resourceVersion": "7"}, "items": [{"metadata": {"name": "p"}}]}
    page = asyncio.run(answering(tree).list(Pod))
    assert (page.revision, page.continue_token) == ("7", "")
    assert (page.values[0].kind, page.values[0].metadata.name) == ("Pod", "p")


@pytest.mark.parametrize("tree", [[], {"items": 5}, {"items": [5]}, {"metadata": 5}])
def test_lists_that_are_none(tree: Any) -> None:
    with pytest.raises(UnreadableError):
        asyncio.run(answering(tree).list(Pod))
