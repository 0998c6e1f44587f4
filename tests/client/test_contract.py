"""What a client can do with a real server, the same over HTTP, over TLS and in the process."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from moorage.api.codec import decode_tree
from moorage.api.core import Binding, ConfigMap, Namespace, Node, Pod
from moorage.api.core.namespace import ObjectReference
from moorage.api.meta import ObjectMeta
from moorage.api.resource.v1 import DeviceClass, ResourceClaim
from moorage.client.api_client import ApiClient
from moorage.client.contract import Added, Removed, list_all
from moorage.client.errors import (
    AlreadyExistsError,
    BadRequestError,
    ConflictError,
    InvalidError,
    NotFoundError,
)
from moorage.client.writes import Apply, Create, Delete, Patch, Target, Update
from tests.apiserver.client import claim, pod
from tests.client.servers import config_map, every_way


@every_way
async def test_objects_are_made_changed_and_deleted(client: ApiClient) -> None:
    made = await client.write(Create(config_map("one", a="1")))
    assert await client.get(ConfigMap, "default", "one") == made
    updated = await client.write(Update(replace(made, data={"a": "2"})))
    assert (updated.data, updated.metadata.uid) == ({"a": "2"}, made.metadata.uid)
    patched = await client.write(Patch(Target.of(made), {"data": {"b": "3"}}))
    assert patched.data == {"a": "2", "b": "3"}
    body = {"data": {"c": "4"}}
    applied = await client.write(Apply(Target(ConfigMap, "default", "one"), body, manager="me"))
    assert applied.data == {"a": "2", "b": "3", "c": "4"}
    assert {entry.manager for entry in applied.metadata.managed_fields} >= {"me"}
    await client.write(Delete(Target.of(made)))
    assert await client.get(ConfigMap, "default", "one") is None


@every_way
async def test_refusals_are_told_apart(client: ApiClient) -> None:
    made = await client.write(Create(config_map("one")))
    with pytest.raises(AlreadyExistsError) as exists:
        await client.write(Create(config_map("one")))
    assert (exists.value.code, exists.value.reason) == (409, "AlreadyExists")
    await client.write(Update(replace(made, data={"a": "1"})))
    with pytest.raises(ConflictError) as conflict:
        await client.write(Update(replace(made, data={"a": "2"})))
    assert not isinstance(conflict.value, AlreadyExistsError)
    with pytest.raises(NotFoundError):
        await client.write(Delete(Target(ConfigMap, "default", "two")))
    with pytest.raises(InvalidError) as invalid:
        await client.write(Create(config_map("Not A Name")))
    assert invalid.value.causes[0].field == "metadata.name"
    with pytest.raises(ConflictError):
        await client.write(Delete(Target(ConfigMap, "default", "one", uid="another")))
    with pytest.raises(ConflictError):
        await client.write(Patch(Target(ConfigMap, "default", "one", uid="another"), {"data": {}}))
    with pytest.raises(BadRequestError):
        await client.get(ConfigMap, "default", "..")


@every_way
async def test_names_cannot_leave_their_place(client: ApiClient) -> None:
    for name in ("a?watch=1", "a b", "ä"):
        assert await client.get(ConfigMap, "default", name) is None
    for name in ("a/../b", "../../../kube-system/secrets/x", "%2e%2e", "..", "."):
        with pytest.raises(BadRequestError, match="invalid name"):
            await client.get(ConfigMap, "default", name)
        with pytest.raises(BadRequestError, match="invalid name"):
            await client.get(ConfigMap, name, "a")
    with pytest.raises(BadRequestError, match="must not contain"):
        await client.get(ConfigMap, "default", "a\r\nX: y")


@every_way
async def test_long_lists_come_in_pages(client: ApiClient) -> None:
    for number in range(7):
        await client.write(Create(config_map(f"m{number}")))
    first = await client.list(ConfigMap, "default", limit=3)
    assert (len(first.values), bool(first.continue_token)) == (3, True)
    second = await client.list(ConfigMap, "default", limit=3, rest=first.continue_token)
    assert second.revision == first.revision
    everything = await list_all(client, ConfigMap, "default", limit=2)
    assert [m.metadata.name for m in everything.values] == [f"m{n}" for n in range(7)]


@every_way
async def test_lists_are_of_a_namespace_and_a_selection(client: ApiClient) -> None:
    await client.write(Create(Namespace(metadata=ObjectMeta(name="team"))))
    await client.write(Create(config_map("one")))
    labelled = ObjectMeta(name="two", namespace="team", labels={"tier": "fast"})
    await client.write(Create(ConfigMap(metadata=labelled)))
    in_team = await client.list(ConfigMap, "team")
    assert [m.metadata.name for m in in_team.values] == ["two"]
    assert len((await client.list(ConfigMap)).values) >= 2
    fast = await client.list(ConfigMap, labels="tier in (fast, faster)")
    assert [m.metadata.name for m in fast.values] == ["two"]
    named = await client.list(ConfigMap, fields="metadata.name=one")
    assert [m.metadata.name for m in named.values] == ["one"]


@every_way
async def test_a_watch_tells_what_happens(client: ApiClient) -> None:
    before = (await client.list(ConfigMap)).revision
    made = await client.write(Create(config_map("one")))
    changed = await client.write(Patch(Target.of(made), {"data": {"a": "1"}}))
    await client.write(Delete(Target.of(made)))
    events = []
    async for event in client.watch(ConfigMap, "default", after=before):
        events.append(event)
        if len(events) == 3:
            break
    assert events[:2] == [Added(made), Added(changed)]
    assert isinstance(events[2], Removed)


@every_way
async def test_a_watch_has_a_selection(client: ApiClient) -> None:
    before = (await client.list(ConfigMap)).revision
    await client.write(Create(config_map("one")))
    two = await client.write(Create(config_map("two")))
    watch = client.watch(ConfigMap, after=before, fields="metadata.name=two")
    assert await anext(watch) == Added(two)


@every_way
async def test_kinds_of_resource_k8s_io(client: ApiClient) -> None:
    value = decode_tree(claim("one", namespace="default"), ResourceClaim).value
    made = await client.write(Create(value))
    assert made.metadata.uid
    assert (await client.list(DeviceClass)).values == ()
    body = {"status": {"reservedFor": [{"resource": "pods", "name": "p", "uid": "u"}]}}
    with pytest.raises(InvalidError):  # it is not allocated
        await client.write(Patch(Target.of(made), body, subresource="status"))


@every_way
async def test_a_pod_is_bound(client: ApiClient) -> None:
    await client.write(Create(Node(metadata=ObjectMeta(name="node-a"))))
    made = await client.write(Create(decode_tree(pod("p", namespace="default"), Pod).value))
    metadata = ObjectMeta(namespace="default", name="p", uid=made.metadata.uid)
    target = ObjectReference(kind="Node", name="node-a")
    assert await client.write(Create(Binding(metadata=metadata, target=target))) is None
    bound = await client.get(Pod, "default", "p")
    assert bound is not None
    assert bound.spec.node_name == "node-a"
    with pytest.raises(ConflictError):
        await client.write(Create(Binding(metadata=metadata, target=target)))


@every_way
async def test_status_is_written_apart(client: ApiClient) -> None:
    made = await client.write(Create(decode_tree(pod("p", namespace="default"), Pod).value))
    patch = {"status": {"phase": "Running"}, "metadata": {"labels": {"a": "b"}}}
    running = await client.write(Patch(Target.of(made), patch, subresource="status"))
    assert running.status.phase == "Running"
    assert running.metadata.resource_version != made.metadata.resource_version
