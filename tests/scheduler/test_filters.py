"""Which nodes will do, rule by rule; company and spreading have files of their own."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.scheduler.framework import Unschedulable
from moorage.scheduler.pod_signature import ReadingSettings, sign
from moorage.scheduler.signature_cache import SignatureCache
from tests.scheduler.makers import answers, diagnose, fleet, node, pod, verdict, verdicts

UNTOLERATED = ("node(s) had untolerated taint(s)",)
NOT_MEANT = ("node(s) didn't match Pod's node affinity/selector",)
NO_PORT = ("node(s) didn't have free ports for the requested pod ports",)


def texts(refusal: Unschedulable | None) -> tuple[str, ...]:
    return refusal.reasons if refusal else ()


# --- names --------------------------------------------------------------------------------------


def test_a_pod_that_names_its_node_is_asked_about_there_only() -> None:
    made = fleet([node("node-1"), node("node-2")])
    found = diagnose(made, sign(pod(nodeName="node-2")))
    assert [state.facts.name for state in found.feasible] == ["node-2"]
    assert found.excluded == Unschedulable(
        "", ("node(s) didn't satisfy plugin(s) [NodeName]",), is_unresolvable=True
    )


def named(*names: str) -> dict[str, Any]:
    fields = [{"key": "metadata.name", "operator": "In", "values": [name]} for name in names]
    return required([{"matchFields": fields}])


def required(terms: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}
        }
    }


def expression(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


def test_affinity_that_names_nodes_narrows_as_well() -> None:
    found = diagnose(fleet([node("node-1"), node("node-2")]), sign(pod(affinity=named("node-1"))))
    assert [state.facts.name for state in found.feasible] == ["node-1"]
    assert texts(found.excluded) == ("node(s) didn't satisfy plugin(s) [NodeAffinity]",)


def test_names_that_exclude_each_other_stop_the_pod() -> None:
    found = diagnose(fleet([node()]), sign(pod(affinity=named("a", "b"))))
    assert found.pre_filter_status == Unschedulable(
        "NodeAffinity", ("pod affinity terms conflict",), True
    )
    found = diagnose(fleet([node()]), sign(pod(affinity=named("a"), nodeName="b")))
    assert isinstance(found.pre_filter_status, Unschedulable)
    assert found.pre_filter_status.reasons == (
        "node(s) didn't satisfy plugin(s) [NodeAffinity NodeName] simultaneously",
    )


# --- taints -------------------------------------------------------------------------------------

GPU = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}

TAINTS: list[tuple[dict[str, str], list[dict[str, str]], bool]] = [
    (GPU, [], False),
    (GPU, [{"key": "gpu", "value": "yes"}], True),
    (GPU, [{"key": "gpu", "operator": "Equal", "value": "yes", "effect": "NoSchedule"}], True),
    (GPU, [{"key": "gpu", "value": "no"}], False),
    (GPU, [{"key": "gpu", "operator": "Exists"}], True),
    (GPU, [{"operator": "Exists"}], True),
    (GPU, [{"key": "gpu", "operator": "Exists", "effect": "NoExecute"}], False),
    (GPU, [{"key": "gpu", "operator": "Nearly", "value": "yes"}], False),
    ({**GPU, "effect": "NoExecute"}, [], False),
    ({**GPU, "effect": "PreferNoSchedule"}, [], True),
]


@pytest.mark.parametrize(("taint", "tolerations", "fits"), TAINTS)
def test_taints(taint: dict[str, str], tolerations: list[dict[str, str]], fits: bool) -> None:
    found = verdict(pod(tolerations=tolerations), node(taints=[taint]))
    assert texts(found) == (() if fits else UNTOLERATED)
    assert fits or (found is not None and found.is_unresolvable)


@pytest.mark.parametrize(
    ("operator", "limit", "value", "fits"),
    [
        ("Gt", "5", "6", True),
        ("Gt", "5", "5", False),
        ("Lt", "5", "-1", True),
        ("Lt", "5", "x", False),
        ("Lt", "5", "03", False),
        ("Gt", "+5", "6", False),
        ("Gt", "0", "9223372036854775808", False),
    ],
)
def test_tolerations_that_compare(operator: str, limit: str, value: str, fits: bool) -> None:
    tainted = fleet([node(taints=[{"key": "level", "value": value, "effect": "NoSchedule"}])])
    one = pod(tolerations=[{"key": "level", "operator": operator, "value": limit}])
    compared = verdicts(tainted, one, ReadingSettings(compares_tolerations=True))["node-1"]
    assert compared == (None if fits else UNTOLERATED)
    assert verdicts(tainted, one)["node-1"] == UNTOLERATED


def test_a_closed_node_takes_only_pods_that_tolerate_that() -> None:
    closed = node(unschedulable=True)
    assert texts(verdict(pod(), closed)) == ("node(s) were unschedulable",)
    key = "node.kubernetes.io/unschedulable"
    assert verdict(pod(tolerations=[{"key": key, "operator": "Exists"}]), closed) is None


# --- labels -------------------------------------------------------------------------------------

LABELS = {"zone": "a", "cores": "8"}

NEEDS: list[tuple[dict[str, Any], bool]] = [
    ({}, True),
    ({"nodeSelector": {"zone": "a"}}, True),
    ({"nodeSelector": {"zone": "b"}}, False),
    ({"nodeSelector": {"zone": "a", "absent": ""}}, False),
    ({"affinity": required([])}, False),
    ({"affinity": required([{}])}, False),
    ({"affinity": required([expression("zone", "In", "a", "b")])}, True),
    ({"affinity": required([expression("zone", "NotIn", "a")])}, False),
    ({"affinity": required([expression("absent", "NotIn", "a")])}, True),
    ({"affinity": required([expression("cores", "Gt", "4")])}, True),
    ({"affinity": required([expression("cores", "Lt", "4")])}, False),
    ({"affinity": required([expression("zone", "In", "b"), expression("zone", "Exists")])}, True),
    ({"nodeSelector": {"zone": "b"}, "affinity": required([expression("zone", "Exists")])}, False),
    ({"affinity": {"nodeAffinity": {}}}, True),
    # A term that cannot be read means no node.
    ({"affinity": required([expression("zone", "Gt", "x")])}, False),
]


@pytest.mark.parametrize(("spec", "fits"), NEEDS)
def test_node_selectors_and_affinity(spec: dict[str, Any], fits: bool) -> None:
    found = verdict(pod(**spec), node(labels=LABELS))
    assert texts(found) == (() if fits else NOT_MEANT)


# --- ports --------------------------------------------------------------------------------------

PORTS: list[tuple[list[Any], list[Any], bool]] = [
    ([80], [], True),
    ([80], [80], False),
    ([80], [81], True),
    ([("", "UDP", 80)], [80], True),
    ([("127.0.0.1", "TCP", 80)], [("127.0.0.2", "TCP", 80)], True),
    ([("127.0.0.1", "TCP", 80)], [("127.0.0.1", "", 80)], False),
    ([("127.0.0.1", "TCP", 80)], [80], False),
    ([80], [("127.0.0.1", "TCP", 80)], False),
    ([("0.0.0.0", "TCP", 80)], [("127.0.0.1", "TCP", 80)], False),
    ([81, 80], [80], False),
]


@pytest.mark.parametrize(("wanted", "taken", "fits"), PORTS)
def test_ports_of_the_host(wanted: list[Any], taken: list[Any], fits: bool) -> None:
    found = verdict(pod(ports=wanted), node(), pod("other", ports=taken))
    assert texts(found) == (() if fits else NO_PORT)
    assert found is None or not found.is_unresolvable


def test_sidecars_take_ports_and_other_init_containers_do_not() -> None:
    port = [{"containerPort": 80, "hostPort": 80}]
    other = pod("other", initContainers=[{"name": "i", "ports": port}])
    assert verdict(pod(ports=[80]), node(), other) is None
    other = pod("other", initContainers=[{"name": "i", "ports": port, "restartPolicy": "Always"}])
    assert texts(verdict(pod(ports=[80]), node(), other)) == NO_PORT


# --- resources ----------------------------------------------------------------------------------

SMALL = {"cpu": "10", "memory": "20", "ephemeral-storage": "20", "pods": "3", "example.com/a": "5"}

FITS: list[tuple[dict[str, str], dict[str, str], tuple[str, ...], bool]] = [
    ({}, {"cpu": "10", "memory": "20"}, (), False),
    ({"cpu": "1", "memory": "1"}, {"cpu": "5", "memory": "5"}, (), False),
    ({"cpu": "5"}, {"cpu": "5"}, (), False),
    ({"cpu": "6"}, {"cpu": "5"}, ("Insufficient cpu",), False),
    ({"cpu": "11"}, {}, ("Insufficient cpu",), True),
    (
        {"cpu": "6", "memory": "16"},
        {"cpu": "5", "memory": "5"},
        ("Insufficient cpu", "Insufficient memory"),
        False,
    ),
    (
        {"cpu": "6", "memory": "21"},
        {"cpu": "5", "memory": "5"},
        ("Insufficient cpu", "Insufficient memory"),
        True,
    ),
    ({"ephemeral-storage": "10"}, {"ephemeral-storage": "10"}, (), False),
    (
        {"ephemeral-storage": "11"},
        {"ephemeral-storage": "10"},
        ("Insufficient ephemeral-storage",),
        False,
    ),
    ({"example.com/a": "3"}, {"example.com/a": "2"}, (), False),
    ({"example.com/a": "4"}, {"example.com/a": "2"}, ("Insufficient example.com/a",), False),
    ({"example.com/a": "6"}, {}, ("Insufficient example.com/a",), True),
    ({"example.com/b": "1"}, {}, ("Insufficient example.com/b",), True),
    ({"example.com/b": "0"}, {}, (), False),
    ({"hugepages-2Mi": "4Mi"}, {}, ("Insufficient hugepages-2Mi",), True),
    ({"unqualified": "1"}, {}, (), False),
    # A node that is overfull still takes a pod that asks for nothing of it.
    ({"memory": "1"}, {"cpu": "12"}, (), False),
]


@pytest.mark.parametrize(("asked", "taken", "short", "is_unresolvable"), FITS)
def test_resources(
    asked: dict[str, str], taken: dict[str, str], short: tuple[str, ...], is_unresolvable: bool
) -> None:
    found = verdict(pod(requests=asked), node(allocatable=SMALL), pod("other", requests=taken))
    assert texts(found) == short
    assert found is None or found.is_unresolvable is is_unresolvable


def test_a_node_has_room_for_a_number_of_pods() -> None:
    placed = [pod(f"other-{number}") for number in range(3)]
    found = verdict(pod(requests={"cpu": "11"}), node(allocatable=SMALL), *placed)
    assert texts(found) == ("Too many pods", "Insufficient cpu")
    found = verdict(pod(), node(allocatable={"cpu": "1"}))
    assert found == Unschedulable("NodeResourcesFit", ("Too many pods",))


def test_what_device_classes_provide_is_left_to_claims_where_the_node_has_none() -> None:
    made = fleet([node("has", allocatable=SMALL), node("has-not")])
    made.set_class_resources(["example.com/a"])
    found = verdicts(made, pod(requests={"example.com/a": "6"}))
    assert found == {"has": ("Insufficient example.com/a",), "has-not": None}


# --- features, gates, and what is not modelled --------------------------------------------------

RULES = [{"action": "RestartAllContainers"}]

FEATURES: list[tuple[dict[str, Any], str]] = [
    ({"hostNetwork": True, "hostUsers": False}, "UserNamespacesHostNetworkSupport"),
    (
        {"containers": [{"name": "c", "restartPolicyRules": RULES}]},
        "RestartAllContainersOnContainerExits",
    ),
    (
        {"initContainers": [{"name": "c", "volumeMounts": [{"bindMountOptions": ["noexec"]}]}]},
        "VolumeBindMountOptions",
    ),
]


@pytest.mark.parametrize(("spec", "feature"), FEATURES)
def test_features_that_a_node_must_declare(spec: dict[str, Any], feature: str) -> None:
    lacking = verdict(pod(**spec), node())
    assert texts(lacking) == ("node(s) didn't match Pod's required features",)
    assert verdict(pod(**spec), node(status={"declaredFeatures": [feature]})) is None


def test_fields_that_are_passed_on_may_be_anything() -> None:
    odd: list[Any] = [None, 1, "text", [], {}, {"image": 1}, {"action": 1}, {"name": []}]
    one = pod(
        volumes=odd,
        containers=[{"name": "c", "volumeMounts": odd, "restartPolicyRules": odd}],
    )
    assert verdict(one, node()) is None
    assert SignatureCache().of(one).required_features == frozenset()


def test_a_pod_waits_for_its_gates() -> None:
    gated = sign(pod(schedulingGates=[{"name": "a"}, {"name": "b"}]))
    assert gated.pre_filter_status == Unschedulable(
        "SchedulingGates", ("waiting for scheduling gates: [a b]",), is_unresolvable=True
    )


UNMODELLED: list[tuple[dict[str, Any], str]] = [
    (
        {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "x"}}]},
        'volume "data" is a persistent volume claim, which is not modelled',
    ),
    (
        {"volumes": [{"name": "data", "ephemeral": {}}]},
        'volume "data" is a volume claim of its own, which is not modelled',
    ),
    (
        {"schedulerName": "other"},
        'the pod asks for the scheduler "other", this is "default-scheduler"',
    ),
    (
        {"runtimeClassName": "kata"},
        (
            'the runtime class "kata" may restrict nodes, '
            "which is known only once a cluster has admitted the pod"
        ),
    ),
]


@pytest.mark.parametrize(("spec", "text"), UNMODELLED)
def test_what_is_not_modelled_is_refused(spec: dict[str, Any], text: str) -> None:
    obstacle = sign(pod(**spec)).pre_filter_status
    assert obstacle == Unschedulable("Unmodelled", (text,), is_unresolvable=True)


def test_an_admitted_pod_has_its_runtime_class_in_itself() -> None:
    assert (
        sign(pod(runtimeClassName="kata"), ReadingSettings(is_admitted=True)).pre_filter_status
        is None
    )


def test_volumes_that_decide_nothing_are_no_obstacle() -> None:
    volumes = [{"name": "a", "emptyDir": {}}, {"name": "b", "configMap": {"name": "x"}}]
    assert sign(pod(volumes=volumes)).pre_filter_status is None


def test_the_first_rule_that_refuses_is_heard() -> None:
    there = node(taints=[GPU], unschedulable=True)
    found = answers(fleet([there]), pod(requests={"cpu": "100"}))["node-1"]
    assert found is not None
    assert found.plugin == "NodeUnschedulable"
