"""Admission sets priorities and service accounts of new pods and groups."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from moorage.api.gates import Gates
from tests.apiserver.client import MERGE_PATCH, NAMESPACES, PODS, Client, pod

CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
GROUPS = "/apis/scheduling.k8s.io/v1beta1/namespaces/default/podgroups"
ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"


def priority_class(name: str, value: int, **fields: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "value": value, **fields}


def with_spec(**fields: Any) -> dict[str, Any]:
    body = pod()
    body["spec"] |= fields
    return body


def group(**spec: Any) -> dict[str, Any]:
    policy: dict[str, Any] = {"basic": {}}
    return {"metadata": {"name": "g"}, "spec": {"schedulingPolicy": policy, **spec}}


# --- priorities -----------------------------------------------------------------------------------


def test_a_pod_has_the_priority_of_its_class(client: Client) -> None:
    client.post(CLASSES, priority_class("high", 1000, preemptionPolicy="Never"))
    spec = client.post(PODS, with_spec(priorityClassName="high")).json["spec"]
    assert (spec["priority"], spec["preemptionPolicy"]) == (1000, "Never")


def test_without_classes_nothing_is_more_important(client: Client) -> None:
    spec = client.post(PODS, pod()).json["spec"]
    assert (spec["priority"], spec["preemptionPolicy"]) == (0, "PreemptLowerPriority")
    assert "priorityClassName" not in spec


def test_the_default_class_is_given_to_who_names_none(client: Client) -> None:
    client.post(CLASSES, priority_class("usual", 7, globalDefault=True))

    def given() -> str | None:
        spec = client.post(PODS, pod()).json["spec"]
        client.delete(f"{PODS}/p")
        return spec.get("priorityClassName") if spec["priority"] == 7 else None

    assert client.until(given) == "usual"


def test_system_classes_are_there(client: Client) -> None:
    items = client.get(CLASSES).json["items"]
    assert {item["metadata"]["name"]: item["value"] for item in items} == {
        "system-cluster-critical": 2_000_000_000,
        "system-node-critical": 2_000_001_000,
    }
    spec = client.post(PODS, with_spec(priorityClassName="system-node-critical")).json["spec"]
    assert spec["priority"] == 2_000_001_000


COMPUTED = "priority admission controller computed"


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"priorityClassName": "nope"}, "no PriorityClass with name nope was found"),
        (
            {"priorityClassName": "high", "priority": 3},
            (
                "the integer value of priority (3) must not be provided in pod spec; "
                f"{COMPUTED} 1000 from the given PriorityClass name"
            ),
        ),
        (
            {"priorityClassName": "high", "preemptionPolicy": "Never"},
            (
                "the string value of PreemptionPolicy (Never) must not be provided in pod spec; "
                f"{COMPUTED} PreemptLowerPriority from the given PriorityClass name"
            ),
        ),
    ],
)
def test_what_contradicts_the_class_is_refused(
    client: Client, fields: dict[str, Any], text: str
) -> None:
    client.post(CLASSES, priority_class("high", 1000))
    reply = client.post(PODS, with_spec(**fields))
    assert (reply.status, reply.message) == (403, f'pods "p" is forbidden: {text}')


def test_groups_have_priorities_too(client: Client) -> None:
    client.post(CLASSES, priority_class("high", 1000))
    spec = client.post(GROUPS, group(priorityClassName="high")).json["spec"]
    assert (spec["priority"], spec["preemptionPolicy"]) == (1000, "PreemptLowerPriority")
    reply = client.post(GROUPS, group(priorityClassName="nope"))
    assert reply.message == (
        'podgroups.scheduling.k8s.io "g" is forbidden: no PriorityClass with name nope was found'
    )
    reply = client.post(GROUPS, group(priorityClassName="high", priority=4))
    assert "priority set in the pod group (4) must match the priority computed (1000)" in (
        reply.message
    )


def test_groups_get_no_preemption_policy_while_the_feature_is_off(tmp_path: Path) -> None:
    client = Client(tmp_path, gates=Gates.parse("PodGroupPreemptionPolicy=false"))
    client.post(CLASSES, priority_class("high", 1000))
    reply = client.post(GROUPS, group(priorityClassName="high", preemptionPolicy="Never"))
    assert (reply.status, reply.json["spec"]["priority"]) == (201, 1000)
    assert "preemptionPolicy" not in reply.json["spec"]
    client.close()


def test_there_is_one_default_class(client: Client) -> None:
    client.post(CLASSES, priority_class("a", 1, globalDefault=True))

    def refused() -> str | None:
        reply = client.post(CLASSES, priority_class("b", 2, globalDefault=True))
        client.delete(f"{CLASSES}/b")
        return reply.message if reply.status == 403 else None

    assert client.until(refused) == (
        'priorityclasses.scheduling.k8s.io "b" is forbidden: PriorityClass a is already marked as '
        "default. Only one default can exist"
    )
    assert client.patch(f"{CLASSES}/a", {"description": "x"}, MERGE_PATCH).status == 200


def test_a_pod_keeps_its_priority_when_it_is_written_without(client: Client) -> None:
    made = client.post(PODS, pod()).json
    for name in ("priority", "preemptionPolicy"):
        del made["spec"][name]
    made["metadata"]["labels"] = {"a": "b"}
    spec = client.put(f"{PODS}/p", made).json["spec"]
    assert (spec["priority"], spec["preemptionPolicy"]) == (0, "PreemptLowerPriority")


# --- accounts -------------------------------------------------------------------------------------


def test_every_namespace_has_an_account(client: Client) -> None:
    assert client.get(f"{ACCOUNTS}/default").status == 200
    client.post(NAMESPACES, {"metadata": {"name": "new"}})
    made = ACCOUNTS.replace("/default/", "/new/") + "/default"
    client.until(lambda: client.get(made).status == 200)
    client.delete(made)
    client.until(lambda: client.get(made).status == 200)


def test_a_pod_runs_at_once_in_a_new_namespace(client: Client) -> None:
    client.post(NAMESPACES, {"metadata": {"name": "new"}})
    made = client.post(PODS.replace("default", "new"), pod())
    assert made.json["spec"]["serviceAccountName"] == "default"


def test_an_account_that_is_not_there_is_refused(client: Client) -> None:
    reply = client.post(PODS, with_spec(serviceAccountName="robot"))
    assert (reply.status, reply.message) == (
        403,
        (
            'pods "p" is forbidden: error looking up service account default/robot: serviceaccount '
            '"robot" not found'
        ),
    )
    client.post(ACCOUNTS, {"metadata": {"name": "robot"}})
    made = client.post(PODS, with_spec(serviceAccountName="robot")).json
    assert made["spec"]["serviceAccountName"] == made["spec"]["serviceAccount"] == "robot"


def test_an_account_says_whether_pods_get_its_token(client: Client) -> None:
    quiet = {
        "metadata": {"name": "quiet"},
        "automountServiceAccountToken": False,
        "imagePullSecrets": [{"name": "s"}],
    }
    client.post(ACCOUNTS, quiet)
    spec = client.post(PODS, with_spec(serviceAccountName="quiet")).json["spec"]
    assert "volumes" not in spec
    assert spec["imagePullSecrets"] == [{"name": "s"}]
    body = with_spec(serviceAccountName="quiet", automountServiceAccountToken=True)
    body["metadata"]["name"] = "q"
    spec = client.post(PODS, body).json["spec"]
    assert spec["volumes"][0]["projected"]["sources"][0]["serviceAccountToken"]["path"] == "token"


def test_a_mounted_token_is_not_mounted_twice(client: Client) -> None:
    first = client.post(PODS, pod()).json
    volumes, containers = first["spec"]["volumes"], first["spec"]["containers"]
    body = with_spec(volumes=volumes, containers=containers)
    body["metadata"]["name"] = "q"
    again = client.post(PODS, body).json["spec"]
    assert (again["volumes"], again["containers"]) == (volumes, containers)


def test_what_a_node_shows_runs_as_nobody(client: Client) -> None:
    annotations = {"kubernetes.io/config.mirror": "x"}
    body = pod("m", node="n", annotations=annotations)
    assert "serviceAccountName" not in client.post(PODS, body).json["spec"]
    body["spec"]["serviceAccountName"] = "default"
    body["metadata"]["name"] = "k"
    assert "a mirror pod may not reference service accounts" in client.post(PODS, body).message


MIRROR = {"kubernetes.io/config.mirror": "x"}
TOKEN_SOURCE = {"serviceAccountToken": {"path": "token", "expirationSeconds": 600}}


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({"serviceAccountName": "default"}, "reference service accounts"),
        ({"serviceAccount": "default"}, "reference service accounts"),
        ({"imagePullSecrets": [{"name": "s"}]}, "reference secrets"),
        ({"volumes": [{"name": "v", "secret": {"secretName": "s"}}]}, "reference secrets"),
        (
            {"volumes": [{"name": "v", "projected": {"sources": [TOKEN_SOURCE]}}]},
            "use ServiceAccountToken volume projections",
        ),
    ],
)
def test_a_mirror_pod_has_no_part_in_the_cluster(
    client: Client, spec: dict[str, Any], why: str
) -> None:
    made = pod(node="n", annotations=MIRROR)
    reply = client.post(PODS, {**made, "spec": {**made["spec"], **spec}})
    assert (reply.status, f"a mirror pod may not {why}" in reply.message) == (403, True)


def test_a_mirror_pod_gets_the_tolerations_of_all_pods(client: Client) -> None:
    made = client.post(PODS, pod(node="n", annotations=MIRROR)).json["spec"]
    assert [each["key"] for each in made["tolerations"]] == [
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/unreachable",
    ]
    assert "serviceAccountName" not in made


def test_default_tolerations_come_back_with_an_update(client: Client) -> None:
    made = client.post(PODS, pod()).json
    reply = client.put(f"{PODS}/p", {**made, "spec": {**made["spec"], "tolerations": []}})
    assert (reply.status, reply.json["spec"]["tolerations"]) == (200, made["spec"]["tolerations"])


def test_a_pod_that_admission_refuses_has_no_warnings_about_its_fields(client: Client) -> None:
    made = pod("a.b")
    refused = client.post(PODS, {**made, "spec": {**made["spec"], "priorityClassName": "none"}})
    assert refused.status == 403
    assert not [value for name, value in refused.headers if name == "warning"]
    assert [value for name, value in client.post(PODS, made).headers if name == "warning"]
