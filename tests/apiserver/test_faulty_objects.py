"""Stored objects that do not fit their kind: they grant nothing, and others are served."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from moorage.api.catalogue import SERVED
from moorage.api.codec import decode_tree
from moorage.api.core import Pod
from moorage.apiserver.http.messages import Request, Response
from moorage.apiserver.namespace_controller import NamespaceController
from moorage.apiserver.tables import table_of
from moorage.apiserver.verbs.selectors import Selection
from moorage.apiserver.verbs.watch import WatchOptions, open_watch
from moorage.kit.bulkhead import Fault
from tests.apiserver.rbac_server import NOW, RBAC, World, within

PODS = "/api/v1/namespaces/{}/pods"
PROTOBUF = "application/vnd.kubernetes.protobuf"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "spec": {"containers": [{"name": "c", "image": "i"}]},
}


def role(**rules: Any) -> dict[str, Any]:
    kind = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole"}
    return {**kind, "metadata": {"name": "reader"}, "rules": [rules]}


def binding() -> dict[str, Any]:
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "reader"}
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "reader"},
        "roleRef": reference,
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "ann"}],
    }


async def overwrite(world: World, group: str, plural: str, where: str, tree: Any) -> None:
    """Write to the store what no server writes."""
    resource, store = world.service.resources.of(group, plural), world.service.registry.store
    namespace, _, name = where.rpartition("/")
    key = resource.key(namespace, name)
    value = json.dumps(tree, separators=(",", ":")).encode()
    found = await store.get(key)
    if found is None:
        await store.create(key, value)
    else:
        await store.update(key, value, expected=found.revision)


def bad_pod(name: str, namespace: str) -> dict[str, Any]:
    metadata = {"name": name, "namespace": namespace, "uid": f"uid-{name}"}
    return {**POD, "metadata": metadata, "spec": {"containers": ["x"]}}


async def with_pods(world: World) -> None:
    """Have a good pod and a bad one in `bad`, and a good one in `good`."""
    for name in ("bad", "good"):
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        await world.ask("POST", "/api/v1/namespaces", "root", namespace)
        tree = {**POD, "metadata": {"name": "fine"}}
        status, answer = await world.ask("POST", PODS.format(name), "root", tree)
        assert status == 201, answer
    await overwrite(world, "", "pods", "bad/broken", bad_pod("broken", "bad"))


@pytest.mark.parametrize("broken", [role(verbs="get"), role(verbs=["get"]) | {"rules": "x"}])
def test_a_role_that_cannot_be_read_grants_nothing_and_others_do(
    tmp_path: Path, broken: Any, faults: list[Fault]
) -> None:
    async def scenario(world: World) -> None:
        rules = {"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}
        await world.ask("POST", f"{RBAC}/clusterroles", "root", role(**rules))
        await world.ask("POST", f"{RBAC}/clusterrolebindings", "root", binding())
        path = PODS.format("default")
        assert (await world.ask("GET", path, "ann"))[0] == 200
        await overwrite(world, "rbac.authorization.k8s.io", "clusterroles", "reader", broken)
        await world.follower.load()
        assert (await world.ask("GET", path, "ann"))[0] == 403
        assert (await world.ask("GET", path, "scheduler"))[0] == 200
        assert (await world.ask("GET", path, "root"))[0] == 200

    within(tmp_path, scenario)
    assert {each.place for each in faults} == {"following clusterroles"}


def test_the_error_names_the_key_and_other_objects_are_served(
    tmp_path: Path, faults: list[Fault]
) -> None:
    async def scenario(world: World) -> None:
        await with_pods(world)
        status, answer = await world.ask("GET", f"{PODS.format('bad')}/broken", "root")
        assert status == 500
        assert "/registry/core/pods/bad/broken: the stored object cannot be decoded" in str(answer)
        for path in (PODS.format("bad"), PODS.format("good"), "/api/v1/pods"):
            status, answer = await world.ask("GET", path, "root", accept=TABLE)
            assert status == 200
            names = [row["object"]["metadata"]["name"] for row in answer["rows"]]
            assert set(names) == {"fine"}
        status, answer = await world.ask("GET", "/api/v1/pods?fieldSelector=spec.nodeName=", "root")
        assert [each["metadata"]["name"] for each in answer["items"]] == ["fine", "fine"]
        status, _ = await world.ask("DELETE", f"{PODS.format('bad')}/fine", "root")
        assert status == 200

    within(tmp_path, scenario)
    assert {each.subject for each in faults} >= {"pods /registry/core/pods/bad/broken"}


def test_a_watch_goes_on_without_versions_that_cannot_be_read(
    tmp_path: Path, faults: list[Fault]
) -> None:
    async def scenario(world: World) -> None:
        await with_pods(world)
        registry, resource = world.service.registry, world.service.resources.of("", "pods")
        batches = await open_watch(registry, resource, "", Selection(), WatchOptions())
        initial = [(each.type, each.value.metadata.namespace) for each in await anext(batches)]
        assert initial == [("ADDED", "bad"), ("ADDED", "good")]
        # It is there: its node would end it if it were told otherwise.
        await overwrite(world, "", "pods", "bad/fine", bad_pod("fine", "bad"))
        await overwrite(world, "", "pods", "bad/more", bad_pod("more", "bad"))
        tree = {**POD, "metadata": {"name": "next"}}
        await world.ask("POST", PODS.format("good"), "root", tree)
        (event,) = await anext(batches)
        assert (event.type, event.value.metadata.name) == ("ADDED", "next")
        await batches.aclose()  # type: ignore[attr-defined]

    within(tmp_path, scenario)
    assert faults


def test_a_list_with_a_selector_says_what_it_leaves_out(
    tmp_path: Path, faults: list[Fault]
) -> None:
    async def scenario(world: World) -> None:
        await with_pods(world)
        headers = {"authorization": "Bearer root"}
        query = {"labelSelector": "!app"}
        answer = await world.router.handle(Request("GET", PODS.format("bad"), query, headers))
        assert isinstance(answer, Response)
        (warning,) = [text for name, text in answer.headers if name == "Warning"]
        assert "/registry/core/pods/bad/broken is left out" in warning

    within(tmp_path, scenario)
    assert faults


def test_an_object_that_cannot_be_read_is_deleted_by_whoever_may_do_that(
    tmp_path: Path, faults: list[Fault]
) -> None:
    options = {"ignoreStoreReadErrorWithClusterBreakingPotential": True}

    async def scenario(world: World) -> None:
        await with_pods(world)
        rules = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "delete"]}
        await world.ask("POST", f"{RBAC}/clusterroles", "root", role(**rules))
        await world.ask("POST", f"{RBAC}/clusterrolebindings", "root", binding())
        registry, resource = world.service.registry, world.service.resources.of("", "pods")
        batches = await open_watch(registry, resource, "", Selection(), WatchOptions())
        await anext(batches)
        broken = f"{PODS.format('bad')}/broken"
        assert (await world.ask("DELETE", broken, "root"))[0] == 500
        status, answer = await world.ask("DELETE", broken, "ann", options)
        why = 'not permitted to do "unsafe-delete-ignore-read-errors", reason: '
        assert (status, why in answer["message"]) == (403, True)
        status, answer = await world.ask("DELETE", f"{PODS.format('bad')}/fine", "root", options)
        assert (status, "decodable from storage" in answer["message"]) == (409, True)
        assert (await world.ask("DELETE", f"{broken}?dryRun=All", "root", options))[0] == 200
        status, answer = await world.ask("DELETE", broken, "root", options)
        assert (status, answer["metadata"]["name"]) == (200, "broken")
        assert (await world.ask("GET", broken, "root"))[0] == 404
        (event,) = await anext(batches)
        metadata = event.value.metadata
        assert (event.type, metadata.namespace, metadata.name) == ("DELETED", "bad", "broken")
        await batches.aclose()  # type: ignore[attr-defined]

    within(tmp_path, scenario)
    assert faults


def test_whoever_deletes_all_is_told_what_remains(tmp_path: Path, faults: list[Fault]) -> None:
    async def scenario(world: World) -> None:
        await with_pods(world)
        headers = {"authorization": "Bearer root"}
        answer = await world.router.handle(Request("DELETE", PODS.format("bad"), {}, headers))
        assert isinstance(answer, Response)
        assert [each["metadata"]["name"] for each in json.loads(answer.body)["items"]] == ["fine"]
        (warning,) = [text for name, text in answer.headers if name == "Warning"]
        assert "/registry/core/pods/bad/broken is left out" in warning

    within(tmp_path, scenario)
    assert faults


def test_schedulers_miss_no_claim_that_cannot_be_read(tmp_path: Path, faults: list[Fault]) -> None:
    path = "/apis/resource.k8s.io/v1/resourceclaims"

    async def scenario(world: World) -> None:
        where = {"name": "c", "namespace": "default", "uid": "u"}
        tree = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": where}
        await overwrite(world, "resource.k8s.io", "resourceclaims", "default/c", tree | {"spec": 1})
        key = "/registry/resource.k8s.io/resourceclaims/default/c"
        why = f"{key}: the stored object cannot be decoded"
        for accept, expected in ((TABLE, 200), (PROTOBUF, 500)):
            status, answer = await world.ask("GET", path, "root", accept=accept)
            assert (status, key in str(answer)) == (expected, expected == 500)
        status, answer = await world.ask("GET", path, "root")
        assert [each["spec"] for each in answer["items"]] == [1]
        registry = world.service.registry
        claims = world.service.resources.of("resource.k8s.io", "resourceclaims")
        options = WatchOptions(wants_initial=True)
        batches = await open_watch(registry, claims, "", Selection(), options)
        ((event,),) = [batch async for batch in batches]
        assert event.type == "ERROR"
        assert event.status is not None
        assert why in event.status.message

    within(tmp_path, scenario)
    assert faults


def test_a_namespace_with_an_unreadable_object_says_what_remains(
    tmp_path: Path, faults: list[Fault]
) -> None:
    async def scenario(world: World) -> None:
        await with_pods(world)
        controller = NamespaceController(world.service)
        remains = await controller._empty("bad")
        assert not remains.is_empty
        assert "/registry/core/pods/bad/broken" in remains.failures[0]
        assert (await controller._empty("good")).resources == {}

    within(tmp_path, scenario)
    assert faults


def test_a_row_that_cannot_be_printed_has_its_name(faults: list[Fault]) -> None:
    kind = next(each for each in SERVED if each.name == "Pod")
    trees = [
        {"metadata": {"name": name}, "status": {"containerStatuses": [{"state": state}]}}
        for name, state in (("a", {"waiting": {"reason": "Wait"}}), ("b", {"waiting": "x"}))
    ]
    values = [decode_tree(tree, Pod).value for tree in trees]
    rows = table_of(kind, values, NOW).rows
    assert [row.cells[0] for row in rows] == ["a", "b"]
    assert rows[0].cells[2] == "Wait"
    assert len(rows[0].cells) == len(rows[1].cells)
    assert {each.subject for each in faults} <= {"Pod b"}
