"""Table rows of objects."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.api.catalogue import CATALOGUE, SERVED, to_hub
from moorage.api.codec import decode_tree, encode_json
from moorage.api.meta import ObjectMeta
from moorage.api.timestamp import NO_TIME, Timestamp
from moorage.apiserver.tables import Include, columns_of, table_of, table_of_one
from moorage.apiserver.tables.columns import age, span

NOW = Timestamp.parse("2026-11-15T12:00:00Z")
CREATED = "2026-11-15T11:00:00Z"
KEYS = ["reason", "conditionType", "x"]

API_VERSIONS = {
    "ClusterRoleBinding": "rbac.authorization.k8s.io/v1",
    "CronJob": "batch/v1",
    "DaemonSet": "apps/v1",
    "Deployment": "apps/v1",
    "HorizontalPodAutoscaler": "autoscaling/v2",
    "Job": "batch/v1",
    "Lease": "coordination.k8s.io/v1",
    "PodGroup": "scheduling.k8s.io/v1beta1",
    "PriorityClass": "scheduling.k8s.io/v1",
    "ReplicaSet": "apps/v1",
    "ResourceClaim": "resource.k8s.io/v1",
    "ResourcePoolStatusRequest": "resource.k8s.io/v1alpha3",
    "Role": "rbac.authorization.k8s.io/v1",
    "StatefulSet": "apps/v1",
}


def row(kind_name: str, include: Include = Include.NONE, **body: Any) -> dict[str, Any]:
    """Return the row of an object called x, by the names of its columns."""
    api_version = API_VERSIONS.get(kind_name, "v1")
    kind = CATALOGUE.find(api_version, kind_name)
    metadata = {"name": "x", "creationTimestamp": CREATED, **body.pop("metadata", {})}
    tree = {"apiVersion": api_version, "kind": kind_name, "metadata": metadata, **body}
    value = to_hub(decode_tree(tree, kind.struct).value)
    table = json.loads(encode_json(table_of_one(kind, value, NOW, include=include)))
    names = [column["name"] for column in table["columnDefinitions"]]
    (found,) = table["rows"]
    return {**dict(zip(names, found["cells"], strict=True)), "row": found}


def pod(status: dict[str, Any], **spec: Any) -> dict[str, Any]:
    metadata = spec.pop("metadata", {})
    spec = {"containers": [{"name": "a"}, {"name": "b"}], **spec}
    return row("Pod", metadata=metadata, spec=spec, status=status)


def container(name: str, *, restarts: int = 0, ready: bool = False, **state: Any) -> dict[str, Any]:
    last = state.pop("last", {})
    return {
        "name": name,
        "restartCount": restarts,
        "ready": ready,
        "state": state,
        "lastState": last,
        "started": state.get("running") is not None,
    }


RUNNING: dict[str, Any] = {"running": {"startedAt": CREATED}}
DONE: dict[str, Any] = {"terminated": {"exitCode": 0, "reason": "Completed"}}
ENDED = {"terminated": {"exitCode": 1, "finishedAt": "2026-11-15T11:50:00Z"}}
SIDECAR = {"name": "s", "restartPolicy": "Always"}


@pytest.mark.parametrize(
    ("status", "spec", "shown"),
    [
        ({"phase": "Pending"}, {}, ("0/2", "Pending", "0")),
        ({"phase": "Failed", "reason": "Evicted"}, {}, ("0/2", "Evicted", "0")),
        (
            {"conditions": [{"type": "PodScheduled", "reason": "SchedulingGated"}]},
            {},
            ("0/2", "SchedulingGated", "0"),
        ),
        (
            {
                "phase": "Running",
                "containerStatuses": [
                    container("a", ready=True, restarts=2, last=ENDED, **RUNNING),
                    container("b", ready=True, **RUNNING),
                ],
            },
            {},
            ("2/2", "Running", "2 (10m ago)"),
        ),
        (
            {
                "phase": "Running",
                "containerStatuses": [
                    container("a", waiting={"reason": "CrashLoopBackOff"}, restarts=3),
                    container("b", ready=True, **RUNNING),
                ],
            },
            {},
            ("1/2", "CrashLoopBackOff", "3"),
        ),
        (
            {"containerStatuses": [container("a", terminated={"exitCode": 3})]},
            {},
            ("0/2", "ExitCode:3", "0"),
        ),
        (
            {"containerStatuses": [container("a", terminated={"exitCode": 3, "signal": 9})]},
            {},
            ("0/2", "Signal:9", "0"),
        ),
        (
            {
                "containerStatuses": [
                    container("a", **DONE),
                    container("b", ready=True, **RUNNING),
                ],
            },
            {},
            ("1/2", "NotReady", "0"),
        ),
        (
            {
                "conditions": [{"type": "Ready", "status": "True"}],
                "containerStatuses": [
                    container("a", **DONE),
                    container("b", ready=True, **RUNNING),
                ],
            },
            {},
            ("1/2", "Running", "0"),
        ),
        (
            {
                "containerStatuses": [
                    container("a", **DONE),
                    container("b", terminated={"exitCode": 1, "reason": "Error"}),
                ],
            },
            {},
            ("0/2", "Error", "0"),
        ),
        (
            {
                "initContainerStatuses": [
                    container("i", **DONE),
                    container("j", waiting={"reason": "PodInitializing"}),
                ],
            },
            {"initContainers": [{"name": "i"}, {"name": "j"}]},
            ("0/2", "Init:1/2", "0"),
        ),
        (
            {"initContainerStatuses": [container("i", terminated={"exitCode": 2})]},
            {"initContainers": [{"name": "i"}]},
            ("0/2", "Init:ExitCode:2", "0"),
        ),
        (
            {
                "initContainerStatuses": [container("i", waiting={"reason": "ErrImagePull"})],
            },
            {"initContainers": [{"name": "i"}]},
            ("0/2", "Init:ErrImagePull", "0"),
        ),
        (
            {
                "phase": "Running",
                "initContainerStatuses": [
                    container("s", ready=True, restarts=1, **RUNNING),
                ],
                "containerStatuses": [container("a", ready=True, **RUNNING)],
            },
            {"initContainers": [SIDECAR]},
            ("2/3", "Running", "1"),
        ),
        (
            {"phase": "Running"},
            {"metadata": {"deletionTimestamp": CREATED}},
            ("0/2", "Terminating", "0"),
        ),
        (
            {"phase": "Running", "reason": "NodeLost"},
            {"metadata": {"deletionTimestamp": CREATED}},
            ("0/2", "Unknown", "0"),
        ),
        (
            {"phase": "Succeeded"},
            {"metadata": {"deletionTimestamp": CREATED}},
            ("0/2", "Succeeded", "0"),
        ),
    ],
)
def test_pods_show_what_holds_them_up(
    status: dict[str, Any], spec: dict[str, Any], shown: tuple[str, ...]
) -> None:
    found = pod(status, **spec)
    assert (found["Ready"], found["Status"], found["Restarts"]) == shown


def test_pods_that_ended_say_so_of_their_rows() -> None:
    (condition,) = pod({"phase": "Succeeded"})["row"]["conditions"]
    assert (condition["type"], condition["status"], condition["reason"]) == (
        "Completed",
        "True",
        "Succeeded",
    )
    assert "conditions" not in pod({"phase": "Running"})["row"]


def test_pods_show_place_and_gates_in_wide_tables() -> None:
    found = pod(
        {"podIPs": [{"ip": "10.0.0.1"}], "conditions": [{"type": "g", "status": "True"}]},
        nodeName="node-a",
        readinessGates=[{"conditionType": "g"}, {"conditionType": "h"}],
    )
    shown = [found[name] for name in ("IP", "Node", "Nominated Node", "Readiness Gates")]
    assert shown == ["10.0.0.1", "node-a", "<none>", "1/2"]


def test_nodes_show_readiness_roles_and_addresses() -> None:
    found = row(
        "Node",
        metadata={"labels": {"node-role.kubernetes.io/worker": "", "kubernetes.io/role": "gpu"}},
        spec={"unschedulable": True},
        status={
            "conditions": [{"type": "Ready", "status": "False"}],
            "addresses": [{"type": "InternalIP", "address": "10.1.0.1"}],
            "nodeInfo": {"kernelVersion": "6.1", "architecture": "arm64"},
        },
    )
    assert found["Status"] == "NotReady,SchedulingDisabled"
    assert found["Roles"] == "gpu,worker"
    assert (found["Internal-IP"], found["External-IP"]) == ("10.1.0.1", "<none>")
    assert found["Kernel-Version"] == "6.1 (arm64)"
    assert row("Node")["Status"] == "Unknown"


def test_events_show_when_and_how_often() -> None:
    about = {"kind": "Pod", "name": "p"}
    once = row("Event", involvedObject=about, eventTime="2026-11-15T11:59:00.000000Z")
    assert (once["Last Seen"], once["First Seen"], once["Count"]) == ("60s", "60s", 1)
    assert once["Object"] == "pod/p"
    often = row(
        "Event",
        involvedObject={"kind": "Node"},
        firstTimestamp=CREATED,
        lastTimestamp="2026-11-15T11:59:50Z",
        count=4,
        source={"component": "kubelet", "host": "node-a"},
        message="  spaced \n",
    )
    assert (often["Last Seen"], often["First Seen"], often["Count"]) == ("10s", "60m", 4)
    assert (often["Object"], often["Source"]) == ("node", "kubelet, node-a")
    assert often["Message"] == "spaced"
    series = {"count": 9, "lastObservedTime": "2026-11-15T11:59:58.000000Z"}
    again = row("Event", firstTimestamp=CREATED, series=series)
    assert (again["Last Seen"], again["Count"]) == ("2s", 9)


def test_quotas_show_requests_apart_from_limits() -> None:
    hard = {"requests.cpu": "4", "limits.cpu": "8", "pods": "10"}
    found = row("ResourceQuota", status={"hard": hard, "used": {"pods": "3"}})
    assert found["Request"] == "pods: 3/10, requests.cpu: 0/4"
    assert found["Limit"] == "limits.cpu: 0/8"


def test_data_is_counted() -> None:
    assert row("ConfigMap", data={"a": "1"}, binaryData={"b": "YQ=="})["Data"] == 2
    secret = row("Secret", type="Opaque", data={"a": "YQ=="})
    assert (secret["Type"], secret["Data"]) == ("Opaque", 1)


def test_controllers_show_their_pods() -> None:
    template = {"spec": {"containers": [{"name": "a", "image": "i"}, {"name": "b", "image": "j"}]}}
    selector = {
        "matchLabels": {"z": "1"},
        "matchExpressions": [
            {"key": "a", "operator": "In", "values": ["y", "x"]},
            {"key": "b", "operator": "DoesNotExist"},
            {"key": "c", "operator": "Exists"},
        ],
    }
    spec = {"replicas": 3, "selector": selector, "template": template}
    deployment = row("Deployment", spec=spec, status={"readyReplicas": 1, "updatedReplicas": 2})
    assert (deployment["Ready"], deployment["Up-to-date"], deployment["Available"]) == ("1/3", 2, 0)
    assert (deployment["Containers"], deployment["Images"]) == ("a,b", "i,j")
    assert deployment["Selector"] == "a in (x,y),!b,c,z=1"
    replica_set = row("ReplicaSet", spec={"replicas": 3, "template": template})
    assert (replica_set["Desired"], replica_set["Selector"]) == (3, "<none>")
    wrong = {"matchExpressions": [{"key": "a", "operator": "Near"}]}
    assert row("Deployment", spec={"selector": wrong})["Selector"] == "<invalid>"
    assert row("DaemonSet", spec={"selector": wrong})["Selector"] == "<error>"
    nodes = {"template": {"spec": {"nodeSelector": {"b": "2", "a": "1"}}}}
    assert row("DaemonSet", spec=nodes)["Node Selector"] == "a=1,b=2"
    assert row("StatefulSet", spec=spec, status={"readyReplicas": 2})["Ready"] == "2/3"


@pytest.mark.parametrize(
    ("spec", "status", "shown"),
    [
        ({"completions": 3}, {"succeeded": 1}, ("Running", "1/3", "")),
        ({"parallelism": 4}, {}, ("Running", "0/1 of 4", "")),
        ({}, {"startTime": CREATED}, ("Running", "0/1", "60m")),
        (
            {},
            {
                "startTime": CREATED,
                "completionTime": "2026-11-15T11:00:42Z",
                "conditions": [{"type": "Complete", "status": "True"}],
            },
            ("Complete", "0/1", "42s"),
        ),
        (
            {},
            {"conditions": [{"type": "Suspended", "status": "True"}]},
            ("Suspended", "0/1", ""),
        ),
        (
            {},
            {
                "conditions": [
                    {"type": "FailureTarget", "status": "True"},
                    {"type": "Failed", "status": "True"},
                ]
            },
            ("Failed", "0/1", ""),
        ),
    ],
)
def test_jobs_show_how_far_they_are(
    spec: dict[str, Any], status: dict[str, Any], shown: tuple[str, ...]
) -> None:
    found = row("Job", spec=spec, status=status)
    assert (found["Status"], found["Completions"], found["Duration"]) == shown


def test_claims_show_their_state() -> None:
    allocation: dict[str, Any] = {"allocation": {"devices": {}}}
    reserved = {**allocation, "reservedFor": [{"resource": "pods", "name": "p", "uid": "u"}]}
    deleted = {"deletionTimestamp": CREATED}
    assert row("ResourceClaim")["State"] == "pending"
    assert row("ResourceClaim", status=allocation)["State"] == "allocated"
    assert row("ResourceClaim", status=reserved)["State"] == "allocated,reserved"
    assert row("ResourceClaim", metadata=deleted)["State"] == "deleted"
    assert row("ResourceClaim", metadata=deleted, status=reserved)["State"] == (
        "deleted,allocated,reserved"
    )


def test_pool_status_requests_add_their_pools_up() -> None:
    complete = {"type": "Complete", "status": "True", "lastTransitionTime": CREATED}
    pools = [
        {"driver": "d", "poolName": "p", "totalDevices": 4, "availableDevices": 1},
        {"driver": "d", "poolName": "q", "totalDevices": 2, "validationError": "e"},
    ]
    done = {"conditions": [complete], "pools": pools, "poolCount": 3}
    found = row("ResourcePoolStatusRequest", spec={"driver": "d"}, status=done)
    assert [found[n] for n in ("Total", "Available", "Errors", "Pools")] == ["6", "1", "1", 3]
    assert (found["Status"], found["Completed"]) == ("Complete (2/3 pools)", "60m")
    waiting = row("ResourcePoolStatusRequest", spec={"driver": "d"})
    assert (waiting["Total"], waiting["Status"], waiting["Completed"]) == ("-", "Pending", "<none>")
    failed = {"conditions": [{"type": "Failed", "status": "True"}], "pools": pools}
    assert row("ResourcePoolStatusRequest", status=failed)["Total"] == "-"


def test_groups_show_whether_they_are_scheduled() -> None:
    scheduled = {"type": "PodGroupInitiallyScheduled", "status": "True"}
    disrupted = {"type": "DisruptionTarget", "status": "True", "reason": "Preempted"}
    spec = {"schedulingPolicy": {"basic": {}}, "workloadRef": {"workloadName": "w"}}
    found = row("PodGroup", spec=spec, status={"conditions": [scheduled]})
    assert (found["Policy"], found["Workload"], found["Status"]) == ("Basic", "w", "Scheduled")
    both = {"conditions": [scheduled, disrupted]}
    assert row("PodGroup", spec=spec, status=both)["Status"] == "Preempted"


def test_bindings_show_who_gets_what() -> None:
    subjects = [
        {"kind": "User", "name": "u"},
        {"kind": "User", "name": "v"},
        {"kind": "Group", "name": "g"},
        {"kind": "ServiceAccount", "name": "s", "namespace": "n"},
    ]
    role = {"kind": "ClusterRole", "name": "view"}
    found = row("ClusterRoleBinding", roleRef=role, subjects=subjects)
    shown = [found[n] for n in ("Role", "Users", "Groups", "ServiceAccounts")]
    assert shown == ["ClusterRole/view", "u, v", "g", "n/s"]


def test_small_kinds() -> None:
    assert row("Lease", spec={"holderIdentity": "h"})["Holder"] == "h"
    priority = row("PriorityClass", value=5, globalDefault=True)
    assert (priority["Value"], priority["Global-Default"]) == (5, True)
    assert row("Namespace", status={"phase": "Active"})["Status"] == "Active"


def test_columns_have_the_types_of_kubernetes_also_where_cells_have_another() -> None:
    def types(kind: str) -> list[str]:
        return [column.type for column in columns_of(CATALOGUE.find(API_VERSIONS[kind], kind))]

    text = "string"
    assert types("CronJob") == [text, text, text, "boolean", "integer", *[text] * 5]
    assert types("HorizontalPodAutoscaler") == [text] * 7


def test_kinds_without_a_printer_show_when_they_were_created() -> None:
    assert row("Role")["Created At"] == CREATED


def test_rows_hold_as_much_of_the_object_as_is_asked_for() -> None:
    assert row("ResourceClaim")["row"]["object"] is None
    metadata = row("ResourceClaim", Include.METADATA)["row"]["object"]
    assert metadata["kind"] == "PartialObjectMetadata"
    whole = row("ResourceClaim", Include.OBJECT, spec={"devices": {"requests": []}})["row"][
        "object"
    ]
    assert (whole["kind"], whole["spec"]) == ("ResourceClaim", {"devices": {"requests": []}})


def test_a_bookmark_holds_its_metadata_whatever_is_asked_for() -> None:
    kind = CATALOGUE.find("v1", "Pod")
    metadata = ObjectMeta(resource_version="9", annotations={"k8s.io/initial-events-end": "true"})
    table = table_of_one(kind, kind.struct(metadata=metadata), NOW, include=Include.NONE)
    (found,) = json.loads(encode_json(table))["rows"]
    assert found["object"]["metadata"]["resourceVersion"] == "9"
    assert found["cells"][:5] == ["", "0/0", "", "0", "<unknown>"]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(0, 9) | st.sampled_from(["", "a", "s", "Completed"]),
    lambda below: st.lists(below, max_size=2) | st.dictionaries(st.sampled_from(KEYS), below),
    max_leaves=12,
)
STATES = st.fixed_dictionaries(
    {},
    optional={
        "waiting": JSON,
        "running": JSON,
        "terminated": st.fixed_dictionaries(
            {"exitCode": st.integers(0, 2)}, optional={"reason": st.sampled_from(["", "Completed"])}
        ),
    },
)
CONTAINERS = st.lists(
    st.fixed_dictionaries(
        {"name": st.sampled_from("abs"), "state": STATES, "lastState": STATES},
        optional={"ready": st.booleans(), "started": st.booleans()},
    ),
    max_size=3,
)


@given(
    phase=st.sampled_from(["", "Pending", "Running", "Succeeded"]),
    containers=CONTAINERS,
    init_containers=CONTAINERS,
    gates=st.lists(JSON, max_size=2),
)
def test_any_pod_can_be_shown(
    phase: str, containers: Any, init_containers: Any, gates: list[Any]
) -> None:
    status = {
        "phase": phase,
        "containerStatuses": containers,
        "initContainerStatuses": init_containers,
    }
    found = pod(status, initContainers=[SIDECAR], readinessGates=gates)
    ready, wanted = map(int, found["Ready"].split("/"))
    assert wanted == 3
    assert ready <= len(containers) + len(init_containers)


@pytest.mark.parametrize("kind", SERVED, ids=lambda kind: f"{kind.api_version} {kind.name}")
def test_every_kind_has_as_many_cells_as_columns(kind: Any) -> None:
    empty = to_hub(decode_tree({}, kind.struct).value, kind)
    table = table_of(kind, [empty], NOW, version="meta.k8s.io/v1beta1")
    assert len(table.rows[0].cells) == len(columns_of(kind))
    tree = json.loads(encode_json(table))
    assert tree["apiVersion"] == tree["rows"][0]["object"]["apiVersion"] == "meta.k8s.io/v1beta1"


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (-2, "<invalid>"),
        (-1, "0s"),
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (391, "6m31s"),
        (600, "10m"),
        (3 * 3600 - 1, "179m"),
        (3 * 3600, "3h"),
        (3 * 3600 + 600, "3h10m"),
        (8 * 3600 + 59, "8h"),
        (47 * 3600, "47h"),
        (2 * 86_400, "2d"),
        (2 * 86_400 + 4 * 3600, "2d4h"),
        (8 * 86_400 + 4 * 3600, "8d"),
        (2 * 365 * 86_400, "2y"),
        (3 * 365 * 86_400 + 12 * 86_400, "3y12d"),
        (9 * 365 * 86_400, "9y"),
    ],
)
def test_ages_take_few_letters(seconds: int, shown: str) -> None:
    assert span(Timestamp(NOW.instant - timedelta(seconds=seconds)), NOW) == shown


def test_no_time_has_no_age() -> None:
    assert age(None, NOW) == age(NO_TIME, NOW) == "<unknown>"
