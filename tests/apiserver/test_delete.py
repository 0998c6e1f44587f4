"""Delete and deletecollection: finalizers, grace, policies, preconditions, namespaces."""

from __future__ import annotations

from typing import Any

import pytest

from tests.apiserver.client import (
    CLASSES,
    CONFIG_MAPS,
    MERGE_PATCH,
    NAMESPACES,
    PODS,
    Client,
    config_map,
    device_class,
    pod,
)

RULES = "/apis/resource.k8s.io/v1/devicetaintrules"


def test_a_class_is_returned_and_gone(client: Client) -> None:
    client.post(CLASSES, device_class())
    reply = client.delete(f"{CLASSES}/gpu")
    assert (reply.status, reply.json["kind"]) == (200, "DeviceClass")
    assert "deletionTimestamp" not in reply.json["metadata"]
    assert client.get(f"{CLASSES}/gpu").status == 404
    assert client.delete(f"{CLASSES}/gpu").status == 404


def test_of_a_config_map_there_is_only_a_status(client: Client) -> None:
    made = client.post(CONFIG_MAPS, config_map()).json
    reply = client.delete(f"{CONFIG_MAPS}/m").json
    assert (reply["kind"], reply["status"]) == ("Status", "Success")
    assert reply["details"] == {"name": "m", "kind": "configmaps", "uid": made["metadata"]["uid"]}


def test_finalizers_hold_an_object(client: Client) -> None:
    client.post(CLASSES, device_class(finalizers=["example.com/hold"]))
    client.later(5)
    marked = client.delete(f"{CLASSES}/gpu").json["metadata"]
    assert marked["deletionTimestamp"] == "2026-11-15T12:00:05Z"
    assert marked["deletionGracePeriodSeconds"] == 0
    assert client.get(f"{CLASSES}/gpu").status == 200
    freed = client.patch(f"{CLASSES}/gpu", {"metadata": {"finalizers": None}}, MERGE_PATCH)
    assert freed.status == 200
    assert client.get(f"{CLASSES}/gpu").status == 404


def test_deleting_twice_changes_nothing(client: Client) -> None:
    client.post(CLASSES, device_class(finalizers=["example.com/hold"]))
    first = client.delete(f"{CLASSES}/gpu").json
    client.later(60)
    assert client.delete(f"{CLASSES}/gpu").json == first


def test_policies_leave_a_mark_for_the_garbage_collector(client: Client) -> None:
    for policy, finalizer in (("Foreground", "foregroundDeletion"), ("Orphan", "orphan")):
        client.post(CLASSES, device_class(policy.lower()))
        reply = client.delete(
            f"{CLASSES}/{policy.lower()}", {"kind": "DeleteOptions", "propagationPolicy": policy}
        )
        assert reply.json["metadata"]["finalizers"] == [finalizer]
    assert client.delete(f"{CLASSES}/orphan?propagationPolicy=Background").status == 200
    assert client.get(f"{CLASSES}/orphan").status == 404
    assert client.delete(f"{CLASSES}/foreground?propagationPolicy=Never").status == 422


def test_preconditions(client: Client) -> None:
    made = client.post(CLASSES, device_class()).json["metadata"]
    wrong = client.delete(f"{CLASSES}/gpu", {"preconditions": {"uid": "other"}})
    assert (wrong.status, wrong.reason) == (409, "Conflict")
    old = client.delete(f"{CLASSES}/gpu", {"preconditions": {"resourceVersion": "1"}})
    assert old.status == 409
    right = {"uid": made["uid"], "resourceVersion": made["resourceVersion"]}
    assert client.delete(f"{CLASSES}/gpu", {"preconditions": right}).status == 200


def test_dry_run(client: Client) -> None:
    client.post(CLASSES, device_class())
    assert client.delete(f"{CLASSES}/gpu?dryRun=All").status == 200
    assert client.delete(f"{CLASSES}/gpu", {"dryRun": ["All"]}).status == 200
    assert client.get(f"{CLASSES}/gpu").status == 200


def test_a_pod_on_a_node_gets_time(client: Client) -> None:
    client.post(PODS, pod(node="n"))
    marked = client.delete(f"{PODS}/p").json["metadata"]
    assert marked["deletionTimestamp"] == "2026-11-15T12:00:30Z"
    assert marked["deletionGracePeriodSeconds"] == 30
    assert client.get(f"{PODS}/p").status == 200
    sooner = client.delete(f"{PODS}/p?gracePeriodSeconds=5").json["metadata"]
    assert sooner["deletionTimestamp"] == "2026-11-15T12:00:05Z"
    client.delete(f"{PODS}/p", {"gracePeriodSeconds": 0})
    assert client.get(f"{PODS}/p").status == 404


@pytest.mark.parametrize("seconds", [10**18, 2**63 - 1, 10**11, 3 * 10**11])
def test_a_grace_period_beyond_the_calendar_is_one_without_end(
    client: Client, seconds: int
) -> None:
    wanted = pod(node="n")
    wanted["spec"]["terminationGracePeriodSeconds"] = seconds
    client.post(PODS, wanted)
    marked = client.delete(f"{PODS}/p").json["metadata"]
    assert marked["deletionGracePeriodSeconds"] == seconds
    if seconds > 10**11:
        assert marked["deletionTimestamp"] == "9999-12-31T23:59:59Z"
    client.later(60)
    sooner = client.delete(f"{PODS}/p", {"gracePeriodSeconds": 5}).json["metadata"]
    assert sooner["deletionGracePeriodSeconds"] == 5
    assert sooner["deletionTimestamp"] in ("2026-11-15T12:00:05Z", "2026-11-15T12:01:05Z")
    client.delete(f"{PODS}/p", {"gracePeriodSeconds": 0})
    assert client.get(f"{PODS}/p").status == 404


@pytest.mark.parametrize("seconds", [10**18, 2**63 - 1])
def test_a_grace_period_beyond_the_calendar_in_options(client: Client, seconds: int) -> None:
    for name, how in (("p", f"?gracePeriodSeconds={seconds}"), ("q", ""), ("e", "")):
        client.post(PODS, pod(name, node="n"))
        options = {"gracePeriodSeconds": seconds}
        if name == "e":
            body = {"metadata": {"name": name}, "deleteOptions": options}
            assert client.post(f"{PODS}/{name}/eviction", body).status == 201
        elif how:
            assert client.delete(f"{PODS}/{name}{how}").status == 200
        else:
            assert client.delete(f"{PODS}/{name}", options).status == 200
        marked = client.get(f"{PODS}/{name}").json["metadata"]
        assert marked["deletionGracePeriodSeconds"] == seconds


def test_a_negative_grace_period_is_one_second(client: Client) -> None:
    client.post(PODS, pod(node="n"))
    marked = client.delete(f"{PODS}/p", {"gracePeriodSeconds": -5}).json["metadata"]
    assert marked["deletionGracePeriodSeconds"] == 1
    client.post(PODS, pod("q", node="n"))
    marked = client.delete(f"{PODS}/q?gracePeriodSeconds=-5").json["metadata"]
    assert marked["deletionGracePeriodSeconds"] == 1


def test_a_namespace_with_a_pod_of_any_grace_period_is_emptied(client: Client) -> None:
    client.post(NAMESPACES, {"metadata": {"name": "team"}})
    pods = PODS.replace("default", "team")
    wanted = pod(node="n")
    wanted["spec"]["terminationGracePeriodSeconds"] = 10**18
    client.post(pods, {**wanted, "metadata": {"name": "p", "namespace": "team"}})
    client.delete(f"{NAMESPACES}/team")
    client.until(lambda: client.get(f"{pods}/p").json["metadata"].get("deletionTimestamp"))
    client.delete(f"{pods}/p", {"gracePeriodSeconds": 0})
    client.until(lambda: client.get(f"{NAMESPACES}/team").status == 404)


BOTH = "orphanDependents and deletionPropagation cannot be both set"
UNSAFE = "ignoreStoreReadErrorWithClusterBreakingPotential"


@pytest.mark.parametrize(
    ("options", "field", "message"),
    [
        ({"propagationPolicy": "Orphan", "orphanDependents": True}, "propagationPolicy", BOTH),
        ({"propagationPolicy": "Orphan", "orphanDependents": False}, "propagationPolicy", BOTH),
        ({"propagationPolicy": "X"}, "propagationPolicy", 'Unsupported value: "X"'),
        ({"propagationPolicy": ""}, "propagationPolicy", 'Unsupported value: ""'),
        ({"dryRun": ["x"]}, "dryRun", 'supported values: "All"'),
        ({UNSAFE: True, "gracePeriodSeconds": 1}, UNSAFE, "together with .gracePeriodSeconds"),
        ({UNSAFE: True, "preconditions": {}}, UNSAFE, "together with .preconditions"),
    ],
)
def test_invalid_options(client: Client, options: dict[str, Any], field: str, message: str) -> None:
    client.post(CLASSES, device_class())
    client.post(PODS, pod(node="n"))
    eviction = {"metadata": {"name": "p"}, "deleteOptions": options}
    reply = client.delete(f"{CLASSES}/gpu", options)
    assert reply.status == 422
    assert [cause["field"] for cause in reply.json["details"]["causes"]] == [field]
    assert message in reply.message
    assert client.post(f"{PODS}/p/eviction", eviction).status == 422
    assert "deletionTimestamp" not in client.get(f"{PODS}/p").json["metadata"]


def test_a_policy_and_its_old_form_in_a_query(client: Client) -> None:
    client.post(CLASSES, device_class())
    query = "orphanDependents=true&propagationPolicy=Orphan"
    assert client.delete(f"{CLASSES}/gpu?{query}").status == 422
    orphaned = client.delete(f"{CLASSES}/gpu?orphanDependents=true").json["metadata"]
    assert orphaned["finalizers"] == ["orphan"]


def test_an_object_that_can_be_read_is_not_deleted_unsafely(client: Client) -> None:
    client.post(CLASSES, device_class())
    reply = client.delete(f"{CLASSES}/gpu", {UNSAFE: True})
    assert (reply.status, "decodable from storage" in reply.message) == (409, True)
    assert client.get(f"{CLASSES}/gpu").status == 200


def test_a_pod_without_a_node_goes_at_once(client: Client) -> None:
    client.post(PODS, pod())
    assert client.delete(f"{PODS}/p").json["metadata"]["deletionGracePeriodSeconds"] == 0
    assert client.get(f"{PODS}/p").status == 404


def test_a_collection(client: Client) -> None:
    for name in "abc":
        client.post(CLASSES, device_class(name, labels={"of": "a" if name == "a" else "others"}))
    gone = client.delete(f"{CLASSES}?labelSelector=of=others").json
    assert [item["metadata"]["name"] for item in gone["items"]] == ["b", "c"]
    left = client.get(CLASSES).json["items"]
    assert [item["metadata"]["name"] for item in left] == ["a"]


def test_a_namespace_takes_its_content_with_it(client: Client) -> None:
    namespace: dict[str, Any] = {"apiVersion": "v1", "kind": "Namespace"}
    client.post(NAMESPACES, {**namespace, "metadata": {"name": "team"}})
    maps = CONFIG_MAPS.replace("default", "team")
    client.post(maps, config_map(finalizers=["example.com/hold"]))
    going = client.delete(f"{NAMESPACES}/team").json
    assert going["status"]["phase"] == "Terminating"
    refused = client.post(maps, config_map("late"))
    assert refused.status == 403
    assert "it is being terminated" in refused.message
    client.until(lambda: client.get(f"{maps}/m").json["metadata"].get("deletionTimestamp"))
    client.until(lambda: client.get(f"{NAMESPACES}/team").json["status"].get("conditions"))
    told = client.get(f"{NAMESPACES}/team").json["status"]["conditions"]
    assert "configmaps. has 1 resource instances" in str(told)
    client.patch(f"{maps}/m", {"metadata": {"finalizers": None}}, MERGE_PATCH)
    client.until(lambda: client.get(f"{NAMESPACES}/team").status == 404)


def test_namespaces_that_stay(client: Client) -> None:
    assert client.delete(f"{NAMESPACES}/default").status == 403


def test_finalize(client: Client) -> None:
    body: dict[str, Any] = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}}
    made = client.post(NAMESPACES, body).json
    made["spec"] = {"finalizers": []}
    assert client.put(f"{NAMESPACES}/team/finalize", made).status == 200
    assert client.delete(f"{NAMESPACES}/team").status == 200
    assert client.get(f"{NAMESPACES}/team").status == 404


def test_options_that_cannot_be_read(client: Client) -> None:
    client.post(CLASSES, device_class())
    assert client.delete(f"{CLASSES}/gpu", b"{").status == 400
    assert client.delete(f"{CLASSES}/gpu", {"gracePeriodSeconds": "soon"}).status == 400
    assert client.get(f"{CLASSES}/gpu").status == 200
