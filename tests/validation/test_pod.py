"""Pods: Kubernetes' defaults, dropped fields and validation messages."""

from __future__ import annotations

import json

import pytest

from moorage.api.codec import decode_tree, to_tree
from moorage.api.core import Node, Pod, PodSpec
from moorage.api.timestamp import Timestamp
from moorage.validation.go_layout import internal_lines
from moorage.validation.node import NodeStrategy
from moorage.validation.pod.defaults import default_pod
from moorage.validation.pod.strategy import PodStrategy
from tests.corpus import corpus
from tests.strategies import full
from tests.validation.pods import (
    ALL_OFF,
    CONTEXT,
    GPU,
    LABEL,
    SUBDOMAIN,
    Tree,
    container,
    pod,
    texts,
    under,
    using,
)

PODS = PodStrategy()


def created(value: Pod) -> list[str]:
    return texts(PODS.validate(value, CONTEXT))


# --- defaults -----------------------------------------------------------------------------


def test_a_pod_gets_what_kubernetes_sets() -> None:
    spec = to_tree(pod().spec)
    assert spec == {
        "containers": [
            {
                "name": "c",
                "image": "x",
                "resources": {},
                "terminationMessagePath": "/dev/termination-log",
                "terminationMessagePolicy": "File",
                "imagePullPolicy": "Always",
            }
        ],
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 30,
        "dnsPolicy": "ClusterFirst",
        "securityContext": {},
        "schedulerName": "default-scheduler",
        "enableServiceLinks": True,
    }


@pytest.mark.parametrize("name", ["containers", "initContainers"])
def test_requests_come_from_limits(name: str) -> None:
    resources = {"limits": {"example.com/gpu": "2", "cpu": "4"}, "requests": {"cpu": "1"}}
    value = pod({name: [container(resources=resources)]})
    found = (*value.spec.init_containers, *value.spec.containers)[0].resources.requests
    assert {key: str(amount) for key, amount in found.items()} == {
        "example.com/gpu": "2",
        "cpu": "1",
    }


def test_amounts_are_rounded_up_to_thousandths() -> None:
    resources = {"requests": {"cpu": "100u", "memory": "9223372036854775807"}}
    value = pod({"containers": [container(resources=resources)]})
    requests = value.spec.containers[0].resources.requests
    assert (str(requests["cpu"]), str(requests["memory"])) == ("1m", "9223372036854775807")


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("x", "Always"),
        ("x:latest", "Always"),
        ("registry.example.com:5000/a/x", "Always"),
        ("registry.example.com:5000/a/x:1.2", "IfNotPresent"),
        ("x@sha256:" + "a" * 64, "IfNotPresent"),
        ("x:latest@sha256:" + "a" * 64, "Always"),
        ("Not An Image", "IfNotPresent"),
        ("", "IfNotPresent"),
    ],
)
def test_the_pull_policy_follows_the_tag(image: str, policy: str) -> None:
    value = pod({"containers": [container(image=image)]})
    assert value.spec.containers[0].image_pull_policy == policy


def test_ports_get_a_protocol_and_on_the_hosts_network_a_host_port() -> None:
    value = pod({"hostNetwork": True, "containers": [container(ports=[{"containerPort": 80}])]})
    (port,) = value.spec.containers[0].ports
    assert (port.protocol, port.host_port) == ("TCP", 80)


def test_the_two_names_of_the_service_account_are_kept_in_step() -> None:
    spec = pod({"serviceAccount": "robot"}).spec
    assert (spec.service_account_name, spec.service_account) == ("robot", "robot")


def test_a_negative_grace_period_becomes_one_second() -> None:
    assert pod({"terminationGracePeriodSeconds": -5}).spec.termination_grace_period_seconds == 1


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ({"podIP": "1.1.1.1"}, ("1.1.1.1", ["1.1.1.1"])),
        ({"podIPs": [{"ip": "1.1.1.1"}]}, ("1.1.1.1", ["1.1.1.1"])),
        ({"podIP": "2.2.2.2", "podIPs": [{"ip": "1.1.1.1"}]}, ("2.2.2.2", ["2.2.2.2"])),
        ({}, ("", [])),
    ],
)
def test_the_addresses_of_a_pod_are_kept_in_step(
    status: Tree, expected: tuple[str, list[str]]
) -> None:
    found = pod(status=status).status
    assert (found.pod_ip, [address.ip for address in found.pod_ips]) == expected


def test_a_node_with_capacity_only_can_allocate_all_of_it() -> None:
    node = decode_tree({"status": {"capacity": {"cpu": "4"}}}, Node).value
    assert NodeStrategy().default(node, "v1", CONTEXT).status.allocatable == node.status.capacity
    told = decode_tree({"status": {"capacity": {"cpu": "4"}, "allocatable": {"cpu": "3"}}}, Node)
    assert NodeStrategy().default(told.value, "v1", CONTEXT) == told.value


# --- creating -----------------------------------------------------------------------------


def test_a_pod_starts_pending_in_its_first_generation_without_the_status_given() -> None:
    new = PODS.prepare_for_create(pod(status={"phase": "Running", "reason": "x"}), CONTEXT)
    assert new.metadata.generation == 1
    assert to_tree(new.status) == {"phase": "Pending", "qosClass": "BestEffort"}


def test_a_gated_pod_says_so() -> None:
    now = Timestamp.parse("2026-01-01T00:00:00Z")
    new = PODS.prepare_for_create(
        pod({"schedulingGates": [{"name": "a"}]}), CONTEXT._replace(now=now)
    )
    assert to_tree(new.status)["conditions"] == [
        {
            "type": "PodScheduled",
            "status": "False",
            "lastProbeTime": None,
            "lastTransitionTime": "2026-01-01T00:00:00Z",
            "reason": "SchedulingGated",
            "message": "Scheduling is blocked due to non-empty scheduling gates",
        }
    ]


@pytest.mark.parametrize(
    ("spec", "qos"),
    [
        ({}, "BestEffort"),
        ({"containers": [container(resources={"limits": {"cpu": "1", "memory": "1Gi"}})]},
         "Guaranteed"),
        ({"containers": [container(resources={"limits": {"cpu": "1"}})]}, "Burstable"),
        ({"containers": [container(resources={"requests": {"cpu": "1"}})]}, "Burstable"),
        ({"containers": [container(resources={"limits": {"a.com/gpu": "1"}})]}, "BestEffort"),
        ({"initContainers": [{"name": "i", "image": "x"}],
          "containers": [container(resources={"limits": {"cpu": "1", "memory": "1Gi"}})]},
         "Burstable"),
        ({"resources": {"limits": {"cpu": "1", "memory": "1"},
                        "requests": {"cpu": "1", "memory": "1"}}}, "Guaranteed"),
        ({"resources": {}}, "BestEffort"),
    ],
)  # fmt: skip
def test_the_quality_of_service_follows_requests_and_limits(spec: Tree, qos: str) -> None:
    assert PODS.prepare_for_create(pod(spec), CONTEXT).status.qos_class == qos


def test_a_plain_pod_is_accepted() -> None:
    assert created(pod()) == []


@pytest.mark.parametrize(
    "spec",
    [
        using({"name": "gpu"}),
        using({"name": "gpu", "request": "a"}, {"name": "gpu", "request": "b"}),
        {"resourceClaims": [{"name": "a", "resourceClaimTemplateName": "t"}]},
        {"containers": [container(resources={"limits": {"a.com/gpu": "1"}})]},
        {"containers": [container(
            resources={"limits": {"deviceclass.resource.kubernetes.io/gpu": "1"}})]},
        {"containers": [container(resources={"limits": {"cpu": "1", "hugepages-2Mi": "4Mi"}})]},
        {"schedulingGroup": {"podGroupName": "group"}},
        {"resources": {"requests": {"cpu": "1"}}},
    ],
)  # fmt: skip
def test_what_is_right_is_accepted(spec: Tree) -> None:
    assert created(pod(spec)) == []


CLAIM = "spec.containers[0].resources.claims"


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        # the claims of the pod
        ({"resourceClaims": [{"resourceClaimName": "c"}]},
         ["spec.resourceClaims[0].name: Required value"]),
        ({"resourceClaims": [GPU, GPU]},
         ['spec.resourceClaims[1].name: Duplicate value: "gpu"']),
        ({"resourceClaims": [{**GPU, "name": "Gpu"}]},
         [f'spec.resourceClaims[0].name: Invalid value: "Gpu": {LABEL}']),
        ({"resourceClaims": [{**GPU, "name": "a" * 64}]},
         [(f'spec.resourceClaims[0].name: Invalid value: "{"a" * 64}": '
          "must be no more than 63 characters")]),
        ({"resourceClaims": [{**GPU, "resourceClaimTemplateName": "t"}]},
         [('spec.resourceClaims[0]: Invalid value: {"Name":"gpu","ResourceClaimName":"my-gpu",'
          '"ResourceClaimTemplateName":"t"}: at most one of `resourceClaimName` or '
          "`resourceClaimTemplateName` may be specified")]),
        ({"resourceClaims": [{"name": "gpu"}]},
         [('spec.resourceClaims[0]: Invalid value: {"Name":"gpu","ResourceClaimName":null,'
          '"ResourceClaimTemplateName":null}: must specify one of: `resourceClaimName`, '
          "`resourceClaimTemplateName`")]),
        ({"resourceClaims": [{"name": "a", "resourceClaimName": "."}]},
         [f'spec.resourceClaims[0].resourceClaimName: Invalid value: ".": {SUBDOMAIN}']),
        ({"resourceClaims": [{"name": "a", "resourceClaimTemplateName": ""}]},
         [f'spec.resourceClaims[0].resourceClaimTemplateName: Invalid value: "": {SUBDOMAIN}']),
        # the claims of containers
        (using({"name": "gpu"}, {"name": "gpu"}), [f'{CLAIM}[1]: Duplicate value: "gpu"']),
        (using({"name": "gpu"}, {"name": "gpu", "request": "a"}),
         [f'{CLAIM}[1]: Duplicate value: "gpu"']),
        (using({"name": "gpu", "request": "a"}, {"name": "gpu"}),
         [f'{CLAIM}[1]: Duplicate value: "gpu"']),
        (using({"name": "gpu", "request": "a"}, {"name": "gpu", "request": "b"}, {"name": "gpu"}),
         [f'{CLAIM}[2]: Duplicate value: "gpu"', f'{CLAIM}[2]: Duplicate value: "gpu"']),
        (using({"name": "gpu", "request": "a"}, {"name": "gpu", "request": "a"}),
         [f'{CLAIM}[1]: Duplicate value: "gpu/a"']),
        (using({}), [f"{CLAIM}[0]: Required value"]),
        (using({"name": "gpu", "request": "A"}),
         [f'{CLAIM}[0].request: Invalid value: "A": {LABEL}']),
        (using({"name": "zzz"}, pod_claims=()),
         [(f'{CLAIM}[0]: Not found: "zzz": must be one of the names in pod.spec.resourceClaims '
          "which is empty")]),
        (using({"name": "zzz"}, pod_claims=({**GPU, "name": "b"}, {**GPU, "name": "a"})),
         [(f'{CLAIM}[0]: Not found: "zzz": must be one of the names in pod.spec.resourceClaims: '
          "a, b")]),
        ({"initContainers": [{"name": "i", "image": "x",
                              "resources": {"claims": [{"name": "z"}]}}]},
         [('spec.initContainers[0].resources.claims[0]: Not found: "z": must be one of the names '
          "in pod.spec.resourceClaims which is empty")]),
        ({"resources": {"claims": [{"name": "gpu"}]}, "resourceClaims": [GPU]},
         ["spec.resources.claims: Forbidden: claims may not be set for Resources at pod-level"]),
        # ephemeral containers
        ({"ephemeralContainers": [{"name": "e", "image": "x"}]},
         ["spec.ephemeralContainers: Forbidden: cannot be set on create"]),
        ({"ephemeralContainers": [{"name": "e", "image": "x", "targetContainerName": "z",
                                   "resources": {"claims": [{"name": "gpu"}]}}],
          "resourceClaims": [GPU]},
         ['spec.ephemeralContainers[0].targetContainerName: Not found: "z"',
          ("spec.ephemeralContainers[0].resources: Forbidden: cannot be set for an Ephemeral "
          "Container"),
          "spec.ephemeralContainers: Forbidden: cannot be set on create"]),
        # groups
        ({"schedulingGroup": {}},
         [("spec.schedulingGroup.podGroupName: Invalid value: null: must specify one of: "
          "`podGroupName`")]),
        ({"schedulingGroup": {"podGroupName": "A"}},
         [f'spec.schedulingGroup.podGroupName: Invalid value: "A": {SUBDOMAIN}']),
    ],
)  # fmt: skip
def test_claims_that_are_wrong_are_refused(spec: Tree, expected: list[str]) -> None:
    assert created(pod(spec)) == expected


REQUESTS = "spec.containers[0].resources.requests"
LIMITS = "spec.containers[0].resources.limits"


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        ({"requests": {"a.com/gpu": "1"}},
         [f"{LIMITS}: Required value: Limit must be set for non overcommitable resources"]),
        ({"requests": {"a.com/gpu": "1"}, "limits": {"a.com/gpu": "2"}},
         [f'{REQUESTS}: Invalid value: "1": must be equal to a.com/gpu limit of 2']),
        ({"requests": {"cpu": "2"}, "limits": {"cpu": "1"}},
         [f'{REQUESTS}: Invalid value: "2": must be less than or equal to cpu limit of 1']),
        ({"limits": {"a.com/gpu": "1500m"}},
         [f'{LIMITS}[a.com/gpu]: Invalid value: "1500m": must be an integer',
          f'{REQUESTS}[a.com/gpu]: Invalid value: "1500m": must be an integer']),
        ({"requests": {"cpu": "-1"}},
         [f'{REQUESTS}[cpu]: Invalid value: "-1": must be greater than or equal to 0']),
        ({"requests": {"gpu": "1"}},
         [(f'{REQUESTS}[gpu]: Invalid value: "gpu": must be a standard resource type or fully '
          "qualified"),
          f'{REQUESTS}[gpu]: Invalid value: "gpu": must be a standard resource for containers']),
        ({"requests": {"pods": "1"}},
         [f'{REQUESTS}[pods]: Invalid value: "pods": must be a standard resource for containers']),
        ({"limits": {"requests.a.com/gpu": "1"}},
         [(f'{LIMITS}[requests.a.com/gpu]: Invalid value: "requests.a.com/gpu": doesn\'t follow '
          "extended resource name standard"),
          (f'{REQUESTS}[requests.a.com/gpu]: Invalid value: "requests.a.com/gpu": doesn\'t follow '
          "extended resource name standard")]),
        ({"limits": {"hugepages-2Mi": "2Mi"}},
         ["spec.containers[0].resources: Forbidden: HugePages require cpu or memory"]),
        ({"requests": {"cpu": "1", "hugepages-2Mi": "3Mi"}, "limits": {"hugepages-2Mi": "3Mi"}},
         [(f'{LIMITS}[hugepages-2Mi]: Invalid value: "3Mi": 3Mi is not positive integer multiple '
          "of hugepages-2Mi"),
          (f'{REQUESTS}[hugepages-2Mi]: Invalid value: "3Mi": 3Mi is not positive integer multiple '
          "of hugepages-2Mi")]),
    ],
)  # fmt: skip
def test_amounts_that_are_wrong_are_refused(resources: Tree, expected: list[str]) -> None:
    assert created(pod({"containers": [container(resources=resources)]})) == expected


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"containers": []}, ["spec.containers: Required value"]),
        ({"containers": [{"image": "x"}]}, ["spec.containers[0].name: Required value"]),
        ({"containers": [{"name": "c"}]}, ["spec.containers[0].image: Required value"]),
        ({"containers": [container(), container()]},
         ['spec.containers[1].name: Duplicate value: "c"']),
        ({"initContainers": [container()]},
         ['spec.initContainers[0].name: Duplicate value: "c"']),
        ({"containers": [container(image=" x")]},
         [('spec.containers[0].image: Invalid value: " x": must not have leading or trailing '
          "whitespace")]),
        ({"containers": [container(imagePullPolicy="Maybe")]},
         [('spec.containers[0].imagePullPolicy: Unsupported value: "Maybe": supported values: '
          '"Always", "IfNotPresent", "Never"')]),
        ({"containers": [container(ports=[{"containerPort": 80, "hostPort": 80},
                                          {"containerPort": 81, "hostPort": 80}])]},
         ['spec.containers[0].ports[1].hostPort: Duplicate value: "TCP//80"']),
        ({"containers": [container(ports=[{"name": "A-", "containerPort": 0, "hostPort": 99999}])]},
         [('spec.containers[0].ports[0].name: Invalid value: "A-": must contain only alpha-numeric '
          "characters (a-z, 0-9), and hyphens (-)"),
          ('spec.containers[0].ports[0].name: Invalid value: "A-": must contain at least one '
          "letter (a-z)"),
          ('spec.containers[0].ports[0].name: Invalid value: "A-": must not begin or end with a '
          "hyphen"),
          "spec.containers[0].ports[0].containerPort: Required value",
          ("spec.containers[0].ports[0].hostPort: Invalid value: 99999: must be between 1 and "
          "65535, inclusive")]),
        ({"hostNetwork": True,
          "containers": [container(ports=[{"containerPort": 80, "hostPort": 81}])]},
         [("spec.containers[0].ports[0].hostPort: Invalid value: 81: must match `containerPort` "
          "when `hostNetwork` is true")]),
        ({"restartPolicy": "Sometimes"},
         [('spec.restartPolicy: Unsupported value: "Sometimes": supported values: "Always", '
          '"OnFailure", "Never"')]),
        ({"schedulingGates": [{"name": "a"}, {"name": "a"}]},
         ['spec.schedulingGates[1]: Duplicate value: "a"']),
        ({"schedulingGates": [{"name": "a"}], "nodeName": "n"},
         ["spec.nodeName: Forbidden: cannot be set until all schedulingGates have been cleared"]),
        ({"activeDeadlineSeconds": 0},
         [("spec.activeDeadlineSeconds: Invalid value: 0: must be between 1 and 2147483647, "
          "inclusive")]),
        ({"tolerations": [{"operator": "Equal"}]},
         [('spec.tolerations[0].operator: Invalid value: "Equal": operator must be Exists when '
          '`key` is empty, which means "match all values and all keys"')]),
        ({"tolerations": [{"key": "a", "operator": "Exists", "value": "v"}]},
         [('spec.tolerations[0].operator: Invalid value: "v": value must be empty when `operator` '
          "is 'Exists'")]),
        ({"tolerations": [{"key": "a", "tolerationSeconds": 1, "effect": "NoSchedule"}]},
         [('spec.tolerations[0].effect: Invalid value: "NoSchedule": effect must be \'NoExecute\' '
          "when `tolerationSeconds` is set")]),
        ({"tolerations": [{"key": "a", "operator": "Is", "effect": "Never"}]},
         [('spec.tolerations[0].operator: Unsupported value: "Is": supported values: "Equal", '
          '"Exists"'),
          ('spec.tolerations[0].effect: Unsupported value: "Never": supported values: '
          '"NoSchedule", "PreferNoSchedule", "NoExecute"')]),
        ({"resources": {"limits": {"a.com/gpu": "1"}}},
         [('spec.resources.limits[a.com/gpu]: Unsupported value: "a.com/gpu": supported values: '
          '"cpu", "hugepages-", "memory"')]),
    ],
)  # fmt: skip
def test_pods_that_are_wrong_are_refused(spec: Tree, expected: list[str]) -> None:
    assert created(pod(spec)) == expected


MIRROR = {"kubernetes.io/config.mirror": "x"}


def test_a_mirror_pod_has_no_claims() -> None:
    value = pod({"nodeName": "n", "resourceClaims": [GPU]}, annotations=MIRROR)
    assert created(value) == ["[]: Forbidden: static pods do not support resource claims"]


def test_a_mirror_pod_names_its_node() -> None:
    assert created(pod(annotations=MIRROR)) == [
        (
            'metadata.annotations[kubernetes.io/config.mirror]: Invalid value: "x": '
            "must set spec.nodeName if mirror pod annotation is set"
        )
    ]


# --- updating -----------------------------------------------------------------------------


def updated(new: Pod, old: Pod) -> list[str]:
    return texts(PODS.validate_update(new, old, CONTEXT))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({}, {}),
        ({}, {"containers": [container(image="y")]}),
        ({"initContainers": [{"name": "i", "image": "a"}]},
         {"initContainers": [{"name": "i", "image": "b"}]}),
        ({}, {"tolerations": [{"key": "a", "operator": "Exists"}]}),
        ({"tolerations": [{"key": "a", "effect": "NoExecute"}]},
         {"tolerations": [{"key": "a", "effect": "NoExecute", "tolerationSeconds": 5}]}),
        ({}, {"activeDeadlineSeconds": 5}),
        ({"activeDeadlineSeconds": 5}, {"activeDeadlineSeconds": 4}),
        ({"schedulingGates": [{"name": "a"}, {"name": "b"}]}, {"schedulingGates": [{"name": "b"}]}),
        ({"schedulingGates": [{"name": "a"}]}, {"nodeSelector": {"a": "b"}}),
        ({"schedulingGates": [{"name": "a"}]},
         {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
             "nodeSelectorTerms": [{"matchFields": []}]}}}}),
    ],
)  # fmt: skip
def test_what_may_change_may_change(old: Tree, new: Tree) -> None:
    assert updated(pod(new), pod(old)) == []


TERMS = (
    "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
)


def on_nodes(*terms: Tree) -> Tree:
    required = {
        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}
    }
    return {"schedulingGates": [{"name": "g"}], "affinity": {"nodeAffinity": required}}


def term(*values: str) -> Tree:
    return {"matchExpressions": [{"key": v, "operator": "Exists"} for v in values]}


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ({}, {"containers": [container(), {"name": "d", "image": "x"}]},
         ["spec.containers: Forbidden: pod updates may not add or remove containers"]),
        ({}, {"initContainers": [{"name": "d", "image": "x"}]},
         ["spec.initContainers: Forbidden: pod updates may not add or remove containers"]),
        ({"activeDeadlineSeconds": 5}, {"activeDeadlineSeconds": 6},
         [("spec.activeDeadlineSeconds: Invalid value: 6: must be less than or equal to previous "
          "value")]),
        ({"activeDeadlineSeconds": 5}, {},
         [("spec.activeDeadlineSeconds: Invalid value: null: must not update from a positive "
          "integer to nil value")]),
        ({"tolerations": [{"key": "a"}]}, {},
         [("spec.tolerations: Forbidden: existing toleration can not be modified except its "
          "tolerationSeconds")]),
        ({}, {"schedulingGates": [{"name": "a"}]},
         [("spec.schedulingGates[0].name: Forbidden: only deletion is allowed, but found new "
          "scheduling gate 'a'")]),
        ({"schedulingGates": [{"name": "a"}], "nodeSelector": {"a": "b"}},
         {"nodeSelector": {"a": "c", "0": "z"}},
         [('spec.nodeSelector: Invalid value: {"0":"z","a":"c"}: only additions to '
          "spec.nodeSelector are allowed (no mutations or deletions)")]),
        (on_nodes(term("a")), on_nodes(term("a"), term("b")),
         [(f"{TERMS}: Invalid value: "
          '[{"matchExpressions":[{"key":"a","operator":"Exists"}]},'
          '{"matchExpressions":[{"key":"b","operator":"Exists"}]}]: '
          "no additions/deletions to non-empty NodeSelectorTerms list are allowed")]),
        (on_nodes(term("a")), on_nodes(term("b")),
         [(f"{TERMS}[0]: Invalid value: "
          '{"matchExpressions":[{"key":"b","operator":"Exists"}]}: '
          "only additions are allowed (no mutations or deletions)")]),
        (on_nodes(term("a")), on_nodes(term("a", "b")), []),
    ],
)  # fmt: skip
def test_what_may_not_change_may_not_change(old: Tree, new: Tree, expected: list[str]) -> None:
    assert updated(pod(new), pod(old)) == expected


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({"resourceClaims": [GPU]}, {"resourceClaims": [{**GPU, "resourceClaimName": "other"}]}),
        ({}, {"resourceClaims": [GPU]}),
        (using({"name": "gpu"}), {"resourceClaims": [GPU]}),
        ({}, {"schedulingGroup": {"podGroupName": "g"}}),
        ({}, {"nodeName": "n"}),
        ({}, {"nodeSelector": {"a": "b"}}),
    ],
)
def test_all_else_of_a_pod_is_immutable(old: Tree, new: Tree) -> None:
    (error,) = updated(pod(new), pod(old))
    assert error.startswith(
        "spec: Forbidden: pod updates may not change fields other than "
        "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,"
        "`spec.tolerations` (only additions to existing tolerations),"
        "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously "
        "negative)\n@@ -"
    )


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ({}, MIRROR, "may not add mirror pod annotation"),
        (MIRROR, {}, "may not remove or update mirror pod annotation"),
        (MIRROR, {"kubernetes.io/config.mirror": "y"},
         "may not remove or update mirror pod annotation"),
    ],
)  # fmt: skip
def test_a_pod_neither_becomes_nor_stops_to_be_a_mirror_pod(
    old: Tree, new: Tree, expected: str
) -> None:
    spec = {"nodeName": "n"}
    found = updated(pod(spec, annotations=new), pod(spec, annotations=old))
    path = "metadata.annotations[kubernetes.io/config.mirror]"
    assert found == [f"{path}: Forbidden: {expected}"]


def test_an_update_keeps_the_status_and_counts_generations() -> None:
    old = pod(status={"phase": "Running"}, generation=3)
    same = PODS.prepare_for_update(pod(generation=3), old, CONTEXT)
    assert (same.status, same.metadata.generation) == (old.status, 3)
    changed = pod({"containers": [container(image="y")]}, generation=3)
    assert PODS.prepare_for_update(changed, old, CONTEXT).metadata.generation == 4


def test_an_update_that_leaves_out_pod_level_resources_keeps_them() -> None:
    old = pod({"resources": {"requests": {"cpu": "1"}}})
    new = PODS.prepare_for_update(pod(), old, CONTEXT)
    assert new.spec.resources == old.spec.resources


# --- gates --------------------------------------------------------------------------------


def test_fields_of_disabled_features_are_dropped_from_a_new_pod() -> None:
    spec = {**using({"name": "gpu"}), "schedulingGroup": {"podGroupName": "g"}}
    new = PODS.prepare_for_create(pod(spec), under(ALL_OFF))
    assert new.spec.resource_claims == ()
    assert new.spec.containers[0].resources.claims == ()
    assert new.spec.scheduling_group is None


def test_fields_of_disabled_features_that_are_in_use_are_kept() -> None:
    spec = {**using({"name": "gpu"}), "schedulingGroup": {"podGroupName": "g"}}
    old = pod(spec)
    assert PODS.prepare_for_update(old, old, under(ALL_OFF)).spec == old.spec


# --- the strategy, and Kubernetes' own answers --------------------------------------------


def test_the_strategy_runs_the_same_steps() -> None:
    strategy, context = PODS, CONTEXT
    value = strategy.default(Pod(spec=PodSpec(containers=pod().spec.containers)), "v1", context)
    new = strategy.prepare_for_create(value, context)
    assert texts(strategy.validate(new, context)) == [
        "metadata.name: Required value: name or generateName is required",
        "metadata.namespace: Required value",
    ]
    old = pod()
    assert (
        strategy.validate_update(strategy.prepare_for_update(old, old, context), old, context) == []
    )
    assert (
        strategy.validate_status_update(
            strategy.prepare_for_status_update(old, old, context), old, context
        )
        == []
    )


def test_rejections_are_those_of_kubernetes() -> None:
    rejections = json.loads(corpus("golden", "rejections.json").read_text())
    checked = 0
    for case in rejections.values():
        if isinstance(case["request"], dict) and case["request"]["kind"] == "Pod":
            value = default_pod(decode_tree(case["request"], Pod).value)
            if not value.metadata.namespace:
                value = pod(case["request"]["spec"])
            found = PODS.validate(value, CONTEXT)
            causes = [
                {"reason": error.type.value, "message": error.body, "field": error.field}
                for error in found
            ]
            assert causes == case["status"]["details"]["causes"]
            checked += 1
    assert checked == 2


ACCESS = "kube-api-access-x"
ADMITTED = {
    "nodeName": "node-a",
    "serviceAccountName": "default",
    "priority": 0,
    "preemptionPolicy": "PreemptLowerPriority",
    "tolerations": [
        {"key": f"node.kubernetes.io/{trouble}", "operator": "Exists", "effect": "NoExecute",
         "tolerationSeconds": 300}
        for trouble in ("not-ready", "unreachable")
    ],
    "volumes": [{"name": ACCESS, "projected": {"defaultMode": 420, "sources": [
        {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": {
            "apiVersion": "v1", "fieldPath": "metadata.namespace"}}]}},
    ]}}],
}  # fmt: skip


def test_a_forbidden_change_is_shown_line_by_line_as_kubernetes_shows_it() -> None:
    recording = json.loads(corpus("lifecycle", "immutable.json").read_text())
    create, patch = (
        step for step in recording["steps"]
        if "Pod" in (step["do"].get("object", {}).get("kind"),
                     step["do"].get("target", {}).get("kind"))
        and step["do"]["verb"] in ("create", "patch")
    )  # fmt: skip
    spec = {**create["do"]["object"]["spec"], **ADMITTED}
    spec["containers"][0]["volumeMounts"] = [{"name": ACCESS, "readOnly": True, "mountPath": "/"}]
    old = pod(spec)
    new = pod({**spec, **patch["do"]["patch"]["spec"]})
    (error,) = PODS.validate_update(new, old, CONTEXT)
    (cause,) = patch["expectError"]["details"]["causes"]
    assert {"reason": error.type, "message": error.body, "field": error.field} == cause


def test_every_field_of_a_spec_has_a_place_in_kubernetes_internal_form() -> None:
    spec = full(PodSpec)
    shown = "".join(internal_lines(spec))
    given = to_tree(spec)
    assert set(json.loads(shown)) == {info[0].upper() + info[1:] for info in _go_names(given)}


def _go_names(tree: Tree) -> list[str]:
    initials = {"dnsPolicy": "DNSPolicy", "dnsConfig": "DNSConfig", "os": "OS"}
    odd = {**initials, "serviceAccount": "DeprecatedServiceAccount"}
    return [odd.get(name, name) for name in tree]
