"""Quotas: rejections, usage, and bounds under concurrency."""

from __future__ import annotations

import asyncio
import itertools
import json
import random
from typing import Any

import pytest

from moorage.apiserver.admission import quota_charges, quota_controller
from moorage.apiserver.auth.authorizer import AlwaysAllow
from moorage.apiserver.http.messages import Request, Response
from moorage.apiserver.server import make_application, make_server_context, with_admission
from tests.apiserver.client import (
    CLAIMS,
    CLASSES,
    CONFIG_MAPS,
    JSON_PATCH,
    MERGE_PATCH,
    NAMESPACES,
    PODS,
    Client,
    claim,
    config_map,
    device_class,
    pod,
)

QUOTAS = "/api/v1/namespaces/default/resourcequotas"
COUNT = "count/resourceclaims.resource.k8s.io"
DEVICES = "gpu.deviceclass.resource.k8s.io/devices"


def quota(name: str = "q", **spec: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": name}, "spec": spec}


def used(client: Client, name: str = "q") -> dict[str, str]:
    return dict(client.get(f"{QUOTAS}/{name}").json["status"].get("used", {}))


def set_up(client: Client, hard: dict[str, str], name: str = "q", **spec: Any) -> None:
    assert client.post(QUOTAS, quota(name, hard=hard, **spec)).status == 201
    client.until(lambda: used(client, name))


def becomes(client: Client, wanted: dict[str, str], name: str = "q") -> None:
    client.until(lambda: used(client, name) == wanted)


def asking(**resources: str) -> dict[str, Any]:
    body = pod(resources.pop("name", "p"))
    names = {name.replace("_", "-"): amount for name, amount in resources.items()}
    body["spec"]["containers"][0]["resources"] = {"requests": names}
    return body


# --- counting -------------------------------------------------------------------------------------


def test_a_new_quota_counts_what_is_there(client: Client) -> None:
    client.post(CLAIMS, claim("one"))
    set_up(client, {COUNT: "2", DEVICES: "5", "services": "1", "count/widgets.example.com": "1"})
    status = client.get(f"{QUOTAS}/q").json["status"]
    assert status["used"] == {COUNT: "1", DEVICES: "1", "services": "0"}
    assert status["hard"] == client.get(f"{QUOTAS}/q").json["spec"]["hard"]


def test_what_is_created_counts_at_once(client: Client) -> None:
    set_up(client, {COUNT: "2"})
    client.post(CLAIMS, claim("one"))
    assert used(client) == {COUNT: "1"}


def test_what_is_deleted_counts_no_more(client: Client) -> None:
    set_up(client, {COUNT: "2"})
    client.post(CLAIMS, claim("one"))
    client.delete(f"{CLAIMS}/one")
    becomes(client, {COUNT: "0"})


def test_a_pod_that_has_ended_counts_as_an_object_only(client: Client) -> None:
    set_up(client, {"pods": "2", "count/pods": "2", "requests.cpu": "2"})
    client.post(PODS, asking(cpu="500m"))
    assert used(client) == {"pods": "1", "count/pods": "1", "requests.cpu": "500m"}
    patch = {"status": {"phase": "Succeeded"}}
    client.patch(f"{PODS}/p/status", patch, MERGE_PATCH)
    becomes(client, {"pods": "0", "count/pods": "1", "requests.cpu": "0"})


def test_other_bounds_count_anew(client: Client) -> None:
    client.post(CLAIMS, claim("one"))
    set_up(client, {COUNT: "2"})
    change = [{"op": "add", "path": "/spec/hard/configmaps", "value": "3"}]
    client.patch(f"{QUOTAS}/q", change, JSON_PATCH)
    becomes(client, {COUNT: "1", "configmaps": "0"})
    client.post(CONFIG_MAPS, config_map())
    assert used(client) == {COUNT: "1", "configmaps": "1"}


def test_many_objects_are_counted_page_by_page(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quota_controller, "PAGE_SIZE", 2)
    for number in range(5):
        client.post(CLAIMS, claim(f"c{number}"))
    set_up(client, {COUNT: "9"})
    assert used(client) == {COUNT: "5"}


# --- refusing -------------------------------------------------------------------------------------


def test_more_than_there_is_room_for_is_refused(client: Client) -> None:
    set_up(client, {COUNT: "1", DEVICES: "5"})
    assert client.post(CLAIMS, claim("one")).status == 201
    reply = client.post(CLAIMS, claim("two"))
    assert (reply.status, reply.reason) == (403, "Forbidden")
    assert reply.message == (
        f'resourceclaims.resource.k8s.io "two" is forbidden: exceeded quota: q, requested: {COUNT}'
        f"=1, used: {COUNT}=1, limited: {COUNT}=1"
    )
    assert reply.json["details"] == {
        "name": "two",
        "group": "resource.k8s.io",
        "kind": "resourceclaims",
    }
    assert used(client) == {COUNT: "1", DEVICES: "1"}


def test_a_dry_run_is_checked_and_not_counted(client: Client) -> None:
    set_up(client, {COUNT: "1"})
    assert client.post(f"{CLAIMS}?dryRun=All", claim("one")).status == 201
    assert used(client) == {COUNT: "0"}
    client.post(CLAIMS, claim("one"))
    assert client.post(f"{CLAIMS}?dryRun=All", claim("two")).status == 403


def test_what_fails_after_it_was_charged_is_given_back(client: Client) -> None:
    set_up(client, {COUNT: "3"})
    client.post(CLAIMS, claim("one"))
    assert client.post(CLAIMS, claim("one")).status == 409
    becomes(client, {COUNT: "1"})


def test_containers_must_say_what_is_bounded(client: Client) -> None:
    set_up(client, {"requests.cpu": "1", "limits.memory": "1Gi"})
    body = pod()
    body["spec"]["containers"].append({"name": "d", "image": "i"})
    assert client.post(PODS, body).message == (
        'pods "p" is forbidden: failed quota: q: must specify limits.memory for: c,d; requests.cpu '
        "for: c,d"
    )


def test_a_quota_that_nobody_has_counted_refuses(client: Client) -> None:
    set_up(client, {COUNT: "3"})
    broken = client.get(f"{QUOTAS}/q").json
    broken["status"] = {"hard": {COUNT: "3"}}
    assert client.put(f"{QUOTAS}/q/status", broken).status == 200
    names = (f"c{number}" for number in itertools.count())
    replies = (client.post(CLAIMS, claim(name)) for name in names)
    reply = client.until(lambda: r if (r := next(replies)).status != 201 else None)
    assert f"status unknown for quota: q, resources: {COUNT}" in reply.message


def test_all_quotas_must_have_room(client: Client) -> None:
    set_up(client, {COUNT: "5"}, "wide")
    set_up(client, {COUNT: "1"}, "narrow")
    client.post(CLAIMS, claim("one"))
    assert "exceeded quota: narrow" in client.post(CLAIMS, claim("two")).message
    assert used(client, "wide") == used(client, "narrow") == {COUNT: "1"}


def test_other_namespaces_are_not_bounded(client: Client) -> None:
    set_up(client, {"configmaps": "0"})
    client.post(NAMESPACES, {"metadata": {"name": "other"}})
    assert client.post(CONFIG_MAPS, config_map()).status == 403
    assert client.post(CONFIG_MAPS.replace("default", "other"), config_map()).status == 201


# --- scopes ---------------------------------------------------------------------------------------


def test_scopes_choose_pods(client: Client) -> None:
    priorities = "/apis/scheduling.k8s.io/v1/priorityclasses"
    client.post(priorities, {"metadata": {"name": "high"}, "value": 10})
    chosen = {"matchExpressions": [{"scopeName": "PriorityClass", "operator": "In"}]}
    chosen["matchExpressions"][0]["values"] = ["high"]  # type: ignore[assignment]
    set_up(client, {"pods": "1"}, "high", scopeSelector=chosen)
    set_up(client, {"pods": "2"}, "plain", scopes=["BestEffort", "NotTerminating"])
    body = pod("a")
    body["spec"]["priorityClassName"] = "high"
    assert client.post(PODS, body).status == 201
    body["metadata"]["name"] = "b"
    assert "exceeded quota: high" in client.post(PODS, body).message
    assert client.post(PODS, pod("c")).status == 201
    assert used(client, "plain") == {"pods": "2"}
    assert client.post(PODS, asking(name="d", cpu="1")).status == 201


def test_a_pod_that_goes_to_another_scope_is_charged_there(client: Client) -> None:
    set_up(client, {"pods": "1"}, "ending", scopes=["Terminating"])
    for name in ("a", "b"):
        client.post(PODS, pod(name))
    deadline = {"spec": {"activeDeadlineSeconds": 100}}
    assert client.patch(f"{PODS}/a", deadline, MERGE_PATCH).status == 200
    assert used(client, "ending") == {"pods": "1"}
    reply = client.patch(f"{PODS}/b", deadline, MERGE_PATCH)
    assert "exceeded quota: ending, requested: pods=1, used: pods=1" in reply.message


# --- devices and extended resources ---------------------------------------------------------------


def test_devices_count_as_extended_resources_too(client: Client) -> None:
    body = device_class()
    body["spec"]["extendedResourceName"] = "example.com/gpu"
    client.post(CLASSES, body)
    explicit = "requests.example.com/gpu"
    implicit = "requests.deviceclass.resource.kubernetes.io/gpu"
    set_up(client, {explicit: "5", implicit: "4", DEVICES: "4"})
    plugin = {"example.com/gpu": "1"}
    plain = pod("plugin")
    plain["spec"]["containers"][0]["resources"] = {"requests": plugin, "limits": plugin}
    assert client.post(PODS, plain).status == 201
    assert used(client) == {explicit: "1", implicit: "0", DEVICES: "0"}
    for name, resource in (("a", "example.com/gpu"), ("b", implicit.removeprefix("requests."))):
        wanted = {resource: "1"}
        by_device = pod(name)
        by_device["spec"]["containers"][0]["resources"] = {"requests": wanted, "limits": wanted}
        owner = client.post(PODS, by_device).json["metadata"]
        assert client.post(CLAIMS, special(owner)).status == 201
    assert used(client) == {explicit: "3", implicit: "2", DEVICES: "2"}
    two = claim("two")
    two["spec"]["devices"]["requests"][0]["exactly"]["count"] = 2
    assert client.post(CLAIMS, two).status == 201
    assert used(client) == {explicit: "5", implicit: "4", DEVICES: "4"}
    refused = client.post(CLAIMS, claim("more"))
    assert refused.message == (
        'resourceclaims.resource.k8s.io "more" is forbidden: exceeded quota: q, requested: '
        f"{DEVICES}=1,{implicit}=1,{explicit}=1, used: {DEVICES}=4,{implicit}=4,{explicit}=5, "
        f"limited: {DEVICES}=4,{implicit}=4,{explicit}=5"
    )
    client.run(recount(client))
    assert used(client) == {explicit: "5", implicit: "4", DEVICES: "4"}


def special(owner: dict[str, Any]) -> dict[str, Any]:
    reference = {"apiVersion": "v1", "kind": "Pod", "name": owner["name"], "uid": owner["uid"]}
    annotations = {"resource.kubernetes.io/extended-resource-claim": "true"}
    return claim(
        f"{owner['name']}-special",
        annotations=annotations,
        ownerReferences=[{**reference, "controller": True}],
    )


async def recount(client: Client) -> None:
    assert client.service.admission is not None
    await client.service.admission.recount("default")


# --- under load -----------------------------------------------------------------------------------


@pytest.mark.parametrize("bound", [1, 7, 40])
def test_bounds_hold_however_many_ask_at_once(client: Client, bound: int) -> None:
    set_up(client, {COUNT: str(bound)})
    router = client.app.router
    headers = {"content-type": "application/json"}

    async def create(number: int) -> int:
        body = json.dumps(claim(f"c{number}")).encode()
        answer = await router.handle(Request("POST", CLAIMS, {}, headers, body))
        assert isinstance(answer, Response)
        if number % 10 == 0:
            await recount(client)
        return answer.status

    async def all_at_once() -> list[int]:
        return await asyncio.gather(*(create(number) for number in range(60)))

    codes = client.run(all_at_once())
    assert codes.count(201) == bound
    assert codes.count(403) == 60 - bound
    assert len(client.get(CLAIMS).json["items"]) == bound
    assert used(client) == {COUNT: str(bound)}


def test_bounds_hold_while_objects_come_and_go(client: Client) -> None:
    bound = 5
    set_up(client, {COUNT: str(bound)})
    router, chance = client.app.router, random.Random(7)
    headers = {"content-type": "application/json"}
    most = 0

    async def come_and_go(number: int) -> None:
        nonlocal most
        for _ in range(12):
            body = json.dumps(claim(f"c{number}")).encode()
            await router.handle(Request("POST", CLAIMS, {}, headers, body))
            resource = client.service.resources.of("resource.k8s.io", "resourceclaims")
            page = await client.store.list(resource.prefix)
            most = max(most, len(page.entries))
            if chance.random() < 0.7:
                await router.handle(Request("DELETE", f"{CLAIMS}/c{number}", {}, headers))

    async def all_at_once() -> None:
        await asyncio.gather(*(come_and_go(number) for number in range(12)))

    client.run(all_at_once())
    assert most <= bound
    client.until(lambda: used(client) == {COUNT: str(len(client.get(CLAIMS).json["items"]))})


def test_bounds_hold_when_another_server_charges_too(client: Client) -> None:
    set_up(client, {COUNT: "3"})
    set_up(client, {COUNT: "4", DEVICES: "9"}, "wide")
    other = with_admission(make_server_context(client.store, now=lambda: client.now))
    assert other.admission is not None
    client.run(other.admission.prepare())  # It follows nothing: all it knows gets old.
    router = make_application(other, AlwaysAllow()).router
    headers = {"content-type": "application/json"}
    codes = []
    for number in range(5):
        body = claim(f"c{number}")
        if number % 2:
            codes.append(client.post(CLAIMS, body).status)
        else:
            data = json.dumps(body).encode()
            answer = client.run(router.handle(Request("POST", CLAIMS, {}, headers, data)))
            codes.append(answer.status)
    assert codes == [201, 201, 201, 403, 403]
    becomes(client, {COUNT: "3"})
    becomes(client, {COUNT: "3", DEVICES: "3"}, "wide")


def test_a_writer_that_gives_up_leaves_no_trace(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quota_charges, "LINGER_S", 0.1)
    set_up(client, {COUNT: "10"})
    router = client.app.router
    headers = {"content-type": "application/json"}

    async def given_up() -> None:
        tasks = []
        for number in range(20):
            body = json.dumps(claim(f"c{number}")).encode()
            asked = router.handle(Request("POST", CLAIMS, {}, headers, body))
            tasks.append(asyncio.create_task(asked))
        for steps, task in enumerate(tasks):
            for _ in range(steps):
                await asyncio.sleep(0)
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    client.run(given_up())
    names = (f"d{number}" for number in itertools.count())

    def is_full() -> bool:
        client.post(CLAIMS, claim(next(names)))
        return len(client.get(CLAIMS).json["items"]) == 10

    client.until(is_full)
    assert client.post(CLAIMS, claim("more")).status == 403
    becomes(client, {COUNT: "10"})
