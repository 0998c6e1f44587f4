"""Rules of volumes, claims, classes, autoscalers, endpoints and budgets."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.api.catalogue import CATALOGUE
from moorage.api.codec import decode_tree
from moorage.api.gates import Gates
from moorage.validation.registry import before_create
from tests.validation.objects import (
    CONTEXT,
    Tree,
    causes,
    create,
    update,
    update_status,
)

IMMUTABLE = "Invalid value: null: field is immutable"
ZONE = {"key": "zone", "values": ["a", "b"]}
CLASS = "must consist of lower case"
CPU: Tree = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}


def topologies(*expressions: Tree) -> Tree:
    return {"allowedTopologies": [{"matchLabelExpressions": list(expressions)}]}


def metric(**source: Any) -> Tree:
    (kind,) = source
    name = kind[0].upper() + kind[1:]
    return {"spec": {"metrics": [{"type": name, **source}]}}


REFUSALS: list[tuple[str, Tree, list[str]]] = [
    (
        "StorageClass",
        {"volumeBindingMode": ""},
        ['NotSupported volumeBindingMode: Unsupported value: ""'],
    ),
    (
        "StorageClass",
        topologies({"key": "zone", "values": ["a", "a"]}, ZONE, {"key": "Z!"}),
        [
            "Duplicate allowedTopologies[0].matchLabelExpressions[0].values[1]: Duplicate value",
            'Duplicate allowedTopologies[0].matchLabelExpressions[1].key: Duplicate value: "zone"',
            "Required allowedTopologies[0].matchLabelExpressions[2].values: Required value",
            'Invalid allowedTopologies[0].matchLabelExpressions[2].key: Invalid value: "Z!"',
        ],
    ),
    (
        "StorageClass",
        {"allowedTopologies": [{"matchLabelExpressions": [ZONE]}] * 2},
        ['Duplicate allowedTopologies[1].matchLabelExpressions: Duplicate value: ""'],
    ),
    ("StorageClass", topologies(), ["Duplicate allowedTopologies[0].matchLabelExpressions"]),
    (
        "PersistentVolume",
        {"spec": {"hostPath": {"type": "Odd"}, "volumeMode": ""}},
        [
            'NotSupported spec.hostPath.type: Unsupported value: "Odd"',
            'NotSupported spec.volumeMode: Unsupported value: ""',
        ],
    ),
    (
        "PersistentVolume",
        {"spec": {"hostPath": {"path": "/a/../b"}}},
        ["Invalid spec.hostPath.path: Invalid value: \"/a/../b\": must not contain '..'"],
    ),
    (
        "PersistentVolume",
        {"spec": {"volumeAttributesClassName": ""}},
        [
            "Required spec.volumeAttributesClassName: Required value: an empty string",
            "Required spec.csi: Required value: has to be specified when using",
        ],
    ),
    ("PersistentVolumeClaim", {"spec": {"volumeMode": ""}}, ["NotSupported spec.volumeMode"]),
    (
        "PersistentVolumeClaim",
        {"spec": {"dataSource": {"kind": "A", "name": "a"}, "dataSourceRef": {"name": "b"}}},
        [
            "Invalid spec.dataSource: Invalid value: \"A\": must be 'PersistentVolumeClaim'",
            "Required spec.dataSourceRef.kind: Required value",
            'Invalid spec.dataSourceRef: Invalid value: ""',
            "Invalid spec: Invalid value: {}: must match dataSourceRef",
        ],
    ),
    (
        "HorizontalPodAutoscaler",
        {"spec": {"maxReplicas": 0}},
        [
            "Invalid spec.maxReplicas: Invalid value: 0: must be greater than or equal to `min",
            "Required spec.maxReplicas: Required value",
        ],
    ),
    (
        "HorizontalPodAutoscaler",
        metric(containerResource={**CPU, "name": "odd", "container": "A"}),
        [
            'Invalid spec.metrics[0].containerResource.name: Invalid value: "odd": must be a stan',
            'Invalid spec.metrics[0].containerResource.name: Invalid value: "odd": must be a stan',
            'Invalid spec.metrics[0].containerResource.container: Invalid value: "A"',
        ],
    ),
    (
        "HorizontalPodAutoscaler",
        metric(external={"metric": {"name": "m"}, "target": {"value": "1", "averageValue": "1"}}),
        [
            "Required spec.metrics[0].external.target.type: Required value",
            'Invalid spec.metrics[0].external.target.type: Invalid value: ""',
            "Forbidden spec.metrics[0].external.target.value: Forbidden: may not set both",
        ],
    ),
    (
        "EndpointSlice",
        {
            "endpoints": [
                {
                    "addresses": ["10.0.0.1"],
                    "hints": {"forZones": [{"name": "z"}, {"name": "z"}], "forNodes": [{}]},
                }
            ],
            "ports": [{"protocol": "", "appProtocol": "a b"}],
        },
        [
            'NotSupported ports[0].protocol: Unsupported value: ""',
            'Invalid ports[0].appProtocol: Invalid value: "a b"',
            'Duplicate endpoints[0].hints.forZones[1].name: Duplicate value: "z"',
            'Invalid endpoints[0].hints.forNodes[0].name: Invalid value: ""',
        ],
    ),
    ("ControllerRevision", {"data": []}, ["Required data: Required value: data must be a valid"]),
]


@pytest.mark.parametrize(("kind", "change", "expected"), REFUSALS)
def test_what_is_wrong_is_told(kind: str, change: Tree, expected: list[str]) -> None:
    found = causes(create(kind, change))
    assert len(found) == len(expected), found
    for cause, text in zip(found, expected, strict=True):
        assert cause.startswith(text)


CHANGES: list[tuple[str, Tree, list[str]]] = [
    ("StorageClass", {"provisioner": "b.c/d"}, [f"Invalid provisioner: {IMMUTABLE}"]),
    ("StorageClass", {"reclaimPolicy": "Retain"}, [f"Invalid reclaimPolicy: {IMMUTABLE}"]),
    ("StorageClass", {"volumeBindingMode": "WaitForFirstConsumer"}, ["Invalid volumeBindingMode"]),
    ("EndpointSlice", {"addressType": "FQDN"}, [f"Invalid addressType: {IMMUTABLE}"]),
    ("ControllerRevision", {"data": {"a": 2}}, ['Invalid data: Invalid value: {"a":2}: field']),
]


@pytest.mark.parametrize(("kind", "change", "expected"), CHANGES)
def test_what_may_not_change_is_told(kind: str, change: Tree, expected: list[str]) -> None:
    found = causes(update(kind, {}, change))
    assert len(found) == len(expected), found
    for cause, text in zip(found, expected, strict=True):
        assert cause.startswith(text)


RECHECKED = (
    *("ControllerRevision", "EndpointSlice", "Ingress", "LimitRange", "PersistentVolume"),
    *("PersistentVolumeClaim", "StorageClass", "ValidatingAdmissionPolicyBinding"),
)


@pytest.mark.parametrize("kind", RECHECKED)
def test_metadata_of_an_update_is_checked_as_that_of_a_new_object(kind: str) -> None:
    (cause,) = causes(update(kind, {}, {"metadata": {"generateName": "Odd_"}}))
    assert cause.startswith('Invalid metadata.generateName: Invalid value: "Odd_"')


@pytest.mark.parametrize("kind", ["Ingress", "NetworkPolicy", "PodTemplate"])
def test_finalizers_need_a_domain(kind: str) -> None:
    bare = {"metadata": {"finalizers": ["x"]}}
    for found in (causes(create(kind, bare)), causes(update(kind, {}, bare))):
        assert [cause.split(":")[0] for cause in found] == ["Invalid metadata.finalizers[0]"]


@pytest.mark.parametrize("kind", ["PodDisruptionBudget", "ValidatingAdmissionPolicyBinding"])
def test_of_some_kinds_they_need_none(kind: str) -> None:
    bare = {"metadata": {"finalizers": ["x"]}}
    assert causes(create(kind, bare)) == []
    assert causes(update(kind, {}, bare)) == []


def test_a_budget_may_have_any_name_that_fits_into_a_path() -> None:
    assert causes(create("PodDisruptionBudget", {"metadata": {"name": "Any_Name!"}})) == []
    (cause,) = causes(create("PodDisruptionBudget", {"metadata": {"name": "a/b"}}))
    assert cause == "Invalid metadata.name: Invalid value: \"a/b\": may not contain '/'"


# --- the two forms of a data source ---------------------------------------------------------------


def claim_with(**sources: Tree) -> Any:
    made = create("PersistentVolumeClaim", {"spec": sources})
    assert causes(made) == []
    return made.stored.spec


def test_a_data_source_has_two_forms_that_complete_each_other() -> None:
    whole = {"apiGroup": None, "kind": "PersistentVolumeClaim", "name": "a"}
    short = {"kind": "PersistentVolumeClaim", "name": "a"}
    for spec in (claim_with(dataSource=short), claim_with(dataSourceRef=short)):
        assert spec.data_source == spec.data_source_ref == whole


def test_the_older_form_drops_what_it_did_not_know() -> None:
    spec = claim_with(dataSource={"apiGroup": "a.b", "kind": "Populator", "name": "a"})
    assert spec.data_source is None
    assert spec.data_source_ref is None
    spec = claim_with(dataSourceRef={"apiGroup": "a.b", "kind": "Populator", "name": "a"})
    assert spec.data_source["kind"] == "Populator"


def test_the_progress_of_a_resize_is_checked() -> None:
    status = {
        "allocatedResourceStatuses": {"storage": "Odd"},
        "allocatedResources": {"cpu": "1", "storage": "-1", "a.b/c": "1"},
    }
    assert [c.split(":")[0] for c in causes(update_status("PersistentVolumeClaim", status))] == [
        "NotSupported status.allocatedResourceStatuses",
        "NotSupported status.allocatedResources",
        "Invalid status.allocatedResources[storage]",
    ]


# --- services and templates -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ingress", "expected"),
    [
        ({"ip": "10.0.0.1", "ipMode": "Proxy"}, []),
        ({"ip": "10.0.0.1"}, []),
        (
            {"ip": "odd", "ipMode": "Odd", "hostname": "A_"},
            [
                "Invalid status.loadBalancer.ingress[0].ip",
                "NotSupported status.loadBalancer.ingress[0].ipMode",
                "Invalid status.loadBalancer.ingress[0].hostname",
            ],
        ),
        (
            {"ipMode": "VIP", "hostname": "a.b"},
            ["Forbidden status.loadBalancer.ingress[0].ipMode"],
        ),
    ],
)
def test_addresses_of_a_load_balancer_are_checked(ingress: Tree, expected: list[str]) -> None:
    found = causes(update_status("Service", {"loadBalancer": {"ingress": [ingress]}}))
    assert [cause.split(":")[0] for cause in found] == expected


def test_an_address_of_a_load_balancer_has_a_mode() -> None:
    reported = {"loadBalancer": {"ingress": [{"ip": "10.0.0.1"}]}}
    stored = update_status("Service", reported).stored
    assert stored.status.load_balancer.ingress == ({"ip": "10.0.0.1", "ipMode": "VIP"},)


def test_only_a_load_balancer_has_addresses() -> None:
    reported = {"loadBalancer": {"ingress": [{"ip": "10.0.0.1"}]}}
    (cause,) = causes(update_status("Service", reported, spec_before={"type": "NodePort"}))
    assert cause == (
        "Forbidden status.loadBalancer.ingress: Forbidden: may only be used when `spec.type` is "
        "'LoadBalancer'"
    )


def test_the_port_of_health_checks_stays() -> None:
    local = {"externalTrafficPolicy": "Local", "healthCheckNodePort": 30002}
    change = {"spec": {"healthCheckNodePort": 30003}}
    (cause,) = causes(update("Service", {"spec": local}, change))
    assert cause == "Forbidden spec.healthCheckNodePort: Forbidden: field is immutable"


def test_a_pod_template_loses_fields_of_disabled_features() -> None:
    kind = CATALOGUE.find("v1", "PodTemplate")
    containers = [{"name": "c", "image": "i"}]
    spec: Tree = {"containers": containers, "schedulingGroup": {"podGroupName": "g"}}
    tree = {"metadata": {"name": "a"}, "template": {"spec": spec}}
    without = CONTEXT._replace(gates=Gates.parse("GenericWorkload=false"))
    value = decode_tree({"apiVersion": "v1", "kind": "PodTemplate", **tree}, kind.struct).value
    assert before_create(value, kind, CONTEXT).stored.template.spec.scheduling_group is not None
    assert before_create(value, kind, without).stored.template.spec.scheduling_group is None
