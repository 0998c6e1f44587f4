"""Workload objects: defaults and scaling."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.api import protobuf
from tests.apiserver.client import APPLY_PATCH, JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, Client

DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
JOBS = "/apis/batch/v1/namespaces/default/jobs"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
LABELS = {"app": "d"}


def controller(kind: str = "Deployment", **spec: Any) -> dict[str, Any]:
    template = {
        "metadata": {"labels": LABELS},
        "spec": {"containers": [{"name": "c", "image": "i:1"}]},
    }
    group = "batch/v1" if kind == "Job" else "apps/v1"
    return {
        "apiVersion": group,
        "kind": kind,
        "metadata": {"name": "d"},
        "spec": {"selector": {"matchLabels": LABELS}, "template": template, **spec},
    }


def job(**spec: Any) -> dict[str, Any]:
    body = controller("Job", **spec)
    if "selector" not in spec:
        del body["spec"]["selector"]
    body["spec"]["template"]["spec"]["restartPolicy"] = "Never"
    return body


def rolling(**limits: Any) -> dict[str, Any]:
    return {"type": "RollingUpdate", "rollingUpdate": limits}


# --- defaults -------------------------------------------------------------------------------------


def test_a_deployment_says_how_it_rolls_out(client: Client) -> None:
    spec = client.post(DEPLOYMENTS, controller()).json["spec"]
    assert spec["replicas"] == 1
    assert spec["strategy"] == rolling(maxUnavailable="25%", maxSurge="25%")
    assert (spec["revisionHistoryLimit"], spec["progressDeadlineSeconds"]) == (10, 600)
    assert spec["template"]["spec"]["restartPolicy"] == "Always"
    assert spec["template"]["spec"]["containers"][0]["imagePullPolicy"] == "IfNotPresent"


def test_what_is_given_stays(client: Client) -> None:
    body = controller(replicas=0, strategy=rolling(maxSurge=1))
    spec = client.post(DEPLOYMENTS, body).json["spec"]
    assert spec["replicas"] == 0
    assert spec["strategy"] == rolling(maxUnavailable="25%", maxSurge=1)
    body = controller(strategy={"type": "Recreate"})
    body["metadata"]["name"] = "e"
    assert client.post(DEPLOYMENTS, body).json["spec"]["strategy"] == {"type": "Recreate"}


@pytest.mark.parametrize(
    ("kind", "wanted"),
    [
        ("DaemonSet", {"updateStrategy": rolling(maxUnavailable=1, maxSurge=0)}),
        ("ReplicaSet", {"replicas": 1}),
        (
            "StatefulSet",
            {
                "replicas": 1,
                "podManagementPolicy": "OrderedReady",
                "updateStrategy": rolling(partition=0, maxUnavailable=1),
                "persistentVolumeClaimRetentionPolicy": {
                    "whenDeleted": "Retain",
                    "whenScaled": "Retain",
                },
            },
        ),
    ],
)
def test_other_controllers(client: Client, kind: str, wanted: dict[str, Any]) -> None:
    url = f"/apis/apps/v1/namespaces/default/{kind.lower()}s"
    spec = client.post(url, controller(kind)).json["spec"]
    assert {name: spec[name] for name in wanted} == wanted


def test_a_job_runs_once_and_selects_its_own_pods(client: Client) -> None:
    made = client.post(JOBS, job()).json
    uid, spec = made["metadata"]["uid"], made["spec"]
    assert (spec["completions"], spec["parallelism"], spec["backoffLimit"]) == (1, 1, 6)
    assert spec["completionMode"] == "NonIndexed"
    assert spec["selector"] == {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}
    assert spec["template"]["metadata"]["labels"] == {
        "app": "d",
        "batch.kubernetes.io/controller-uid": uid,
        "batch.kubernetes.io/job-name": "d",
        "controller-uid": uid,
        "job-name": "d",
    }
    # It is labelled as its pods are, since its author labelled only them.
    assert made["metadata"]["labels"] == spec["template"]["metadata"]["labels"]
    # Nobody owns what the server adds.
    (entry,) = made["metadata"]["managedFields"]
    assert "f:selector" not in entry["fieldsV1"]["f:spec"]


def test_a_job_may_select_by_itself(client: Client) -> None:
    selector = {"matchLabels": LABELS}
    made = client.post(JOBS, job(manualSelector=True, selector=selector, parallelism=3)).json
    assert made["spec"]["selector"] == {"matchLabels": LABELS}
    assert "completions" not in made["spec"]


def test_to_apply_twice_changes_nothing(client: Client) -> None:
    url = f"{DEPLOYMENTS}/d?fieldManager=me"
    first = client.patch(url, controller(), APPLY_PATCH)
    client.later(60)
    again = client.patch(url, controller(), APPLY_PATCH)
    assert (first.status, again.status) == (201, 200)
    assert again.json == first.json


# --- scale ----------------------------------------------------------------------------------------


def test_a_scale_is_read(client: Client) -> None:
    made = client.post(DEPLOYMENTS, controller(replicas=2)).json
    scale = client.get(f"{DEPLOYMENTS}/d/scale").json
    assert (scale["apiVersion"], scale["kind"]) == ("autoscaling/v1", "Scale")
    assert (scale["spec"], scale["status"]) == (
        {"replicas": 2},
        {"replicas": 0, "selector": "app=d"},
    )
    names = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    assert scale["metadata"] == {name: made["metadata"][name] for name in names}


def test_a_scale_as_a_table_and_in_protobuf(client: Client) -> None:
    client.post(DEPLOYMENTS, controller(replicas=2))
    table = client.get(f"{DEPLOYMENTS}/d/scale", accept=TABLE).json
    assert [column["name"] for column in table["columnDefinitions"]] == [
        "Name",
        "Desired",
        "Available",
        "Age",
    ]
    assert table["rows"][0]["cells"][:3] == ["d", 2, 0]
    body = client.get(f"{DEPLOYMENTS}/d/scale", accept=protobuf.CONTENT_TYPE).body
    assert protobuf.decode(body).tree["spec"] == {"replicas": 2}


@pytest.mark.parametrize(
    ("patch", "content_type"),
    [
        ({"spec": {"replicas": 5}}, MERGE_PATCH),
        ({"spec": {"replicas": 5}}, STRATEGIC_PATCH),
        ([{"op": "replace", "path": "/spec/replicas", "value": 5}], JSON_PATCH),
    ],
)
def test_a_scale_is_patched(client: Client, patch: Any, content_type: str) -> None:
    client.post(f"{DEPLOYMENTS}?fieldManager=me", controller())
    scaled = client.patch(f"{DEPLOYMENTS}/d/scale?fieldManager=you", patch, content_type)
    assert scaled.json["spec"] == {"replicas": 5}
    found = client.get(f"{DEPLOYMENTS}/d").json
    assert found["spec"]["replicas"] == 5
    assert found["metadata"]["generation"] == 2
    owner = next(e for e in found["metadata"]["managedFields"] if e["manager"] == "you")
    assert (owner["subresource"], owner["fieldsV1"]) == ("scale", {"f:spec": {"f:replicas": {}}})


def test_a_scale_is_replaced_if_nobody_was_faster(client: Client) -> None:
    client.post(DEPLOYMENTS, controller())
    scale = client.get(f"{DEPLOYMENTS}/d/scale").json
    scale["spec"]["replicas"] = 3
    tried = client.put(f"{DEPLOYMENTS}/d/scale?dryRun=All", scale)
    assert tried.json["spec"] == {"replicas": 3}
    assert client.get(f"{DEPLOYMENTS}/d").json["spec"]["replicas"] == 1
    assert client.put(f"{DEPLOYMENTS}/d/scale", scale).status == 200
    late = client.put(f"{DEPLOYMENTS}/d/scale", scale)
    assert (late.status, late.reason) == (409, "Conflict")


def test_scales_that_are_refused(client: Client) -> None:
    client.post(DEPLOYMENTS, controller())
    url = f"{DEPLOYMENTS}/d/scale"
    negative = client.patch(url, {"spec": {"replicas": -1}}, MERGE_PATCH)
    assert (negative.status, negative.message) == (
        422,
        (
            'Scale.autoscaling "d" is invalid: spec.replicas: Invalid value: -1: must be greater '
            "than or equal to 0"
        ),
    )
    assert client.put(url, {"metadata": {"name": "e"}}).status == 400
    assert client.patch(url, {"spec": {"replicas": "x"}}, MERGE_PATCH).status == 422
    assert client.put(url, {"metadata": {"name": "d"}, "spec": {"replicas": "x"}}).status == 400
    assert client.patch(url, {}, "application/json").status == 415
    assert client.get(f"{DEPLOYMENTS}/e/scale").status == 404
    assert client.get(f"{JOBS}/d/scale").status == 404
    assert client.delete(url).status == 405


# --- what is refused ------------------------------------------------------------------------------


def test_a_deployment_without_a_selector_is_refused_with_causes(client: Client) -> None:
    body = controller()
    del body["spec"]["selector"]
    reply = client.post(DEPLOYMENTS, body)
    assert (reply.status, reply.json["reason"]) == (422, "Invalid")
    assert reply.json["details"] == {
        "name": "d",
        "group": "apps",
        "kind": "Deployment",
        "causes": [
            {
                "reason": "FieldValueRequired",
                "message": "Required value",
                "field": "spec.selector",
            },
            {
                "reason": "FieldValueInvalid",
                "message": (
                    'Invalid value: {"app":"d"}: `selector` does not match template `labels`'
                ),
                "field": "spec.template.metadata.labels",
            },
        ],
    }
    assert reply.json["message"].startswith('Deployment.apps "d" is invalid: [spec.selector: ')


def test_a_job_keeps_its_template(client: Client) -> None:
    made = client.post(JOBS, job()).json
    made["spec"]["template"]["spec"]["containers"][0]["image"] = "i:2"
    reply = client.put(f"{JOBS}/d", made)
    assert reply.status == 422
    (cause,) = reply.json["details"]["causes"]
    assert cause["field"] == "spec.template"
    assert cause["message"].endswith(": field is immutable")
    faster = {"spec": {"parallelism": 3}}
    changed = client.patch(f"{JOBS}/d", faster, MERGE_PATCH)
    assert (changed.status, changed.json["metadata"]["generation"]) == (200, 2)
