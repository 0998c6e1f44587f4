"""Requests are counted with Kubernetes' labels, and with no more of them than are served."""

from __future__ import annotations

import re

from tests.apiserver.client import CLASSES, CONFIG_MAPS, MERGE_PATCH, Client, device_class

REQUESTS = "apiserver_request_total"
LONG_RUNNING = "apiserver_longrunning_requests"


def counted(client: Client, name: str) -> dict[str, int]:
    """Return the counts of a metric by the values of their labels, without empty ones."""
    found: dict[str, int] = {}
    for line in client.get("/metrics").body.decode().splitlines():
        if match := re.fullmatch(rf"{name}\{{(.*)\}} (\d+)", line):
            values = re.findall(r'="([^"]*)"', match[1])
            found[" ".join(filter(None, values))] = int(match[2])
    return found


def test_verbs_and_scopes_are_kubernetes(client: Client) -> None:
    client.post(CLASSES, device_class())
    client.get(f"{CLASSES}/gpu")
    client.get(f"{CLASSES}/absent")
    client.get(CONFIG_MAPS)
    client.patch(f"{CLASSES}/gpu", {"metadata": {"labels": {"a": "b"}}}, MERGE_PATCH)
    applied = device_class("applied")
    client.patch(f"{CLASSES}/applied?fieldManager=m", applied, "application/apply-patch+yaml")
    client.delete(f"{CLASSES}/gpu?dryRun=All")
    client.delete(f"{CLASSES}/gpu?dryRun=Some")
    client.delete(CLASSES)
    client.get("/version")
    what = "resource.k8s.io v1 deviceclasses"
    found = counted(client, REQUESTS)
    assert found == {
        f"POST {what} resource apiserver 201": 1,
        f"GET {what} resource apiserver 200": 1,
        f"GET {what} resource apiserver 404": 1,
        "LIST v1 configmaps namespace apiserver 200": 1,
        f"PATCH {what} resource apiserver 200": 1,
        f"APPLY {what} resource apiserver 201": 1,
        f"DELETE All {what} resource apiserver 200": 1,
        f"DELETE invalid {what} resource apiserver 422": 1,
        f"DELETECOLLECTION {what} cluster apiserver 200": 1,
        "GET apiserver 200": 1,
    }


def test_what_is_not_served_is_not_named(client: Client) -> None:
    for number in range(3):
        client.get(f"/apis/resource.k8s.io/v1/nonsense{number}")
        client.get(f"{CLASSES}/gpu/nonsense{number}")
        client.get(f"/apis/nonsense{number}.example.com/v1/things")
        client.get(f"/nonsense{number}")
    found = counted(client, REQUESTS)
    assert not any("nonsense" in labels for labels in found)
    assert sum(found.values()) == 12


def test_watches_are_counted_as_long_as_they_last(client: Client) -> None:
    watch = client.watch(f"{CLASSES}?watch=true")
    labels = "WATCH resource.k8s.io v1 deviceclasses cluster apiserver"
    assert counted(client, LONG_RUNNING) == {labels: 1}
    watch.close()
    client.until(lambda: counted(client, LONG_RUNNING) == {} or None)
    assert counted(client, REQUESTS)[f"{labels} 200"] == 1
