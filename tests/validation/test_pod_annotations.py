"""Annotations that mean something to a pod, and warnings about pods that are accepted."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.api.catalogue import CATALOGUE
from moorage.api.codec import to_tree
from moorage.validation.registry import RegistryResult, before_create
from tests.validation.pods import CONTEXT, Tree, container, pod

APP_ARMOR = "container.apparmor.security.beta.kubernetes.io/c"
SECCOMP = "seccomp.security.alpha.kubernetes.io/pod"
CONTAINER_SECCOMP = "container.seccomp.security.alpha.kubernetes.io/c"
COST = "controller.kubernetes.io/pod-deletion-cost"
TOLERATIONS = "scheduler.alpha.kubernetes.io/tolerations"
LOCAL = {"type": "Localhost", "localhostProfile": "a"}
UNCONFINED = {"type": "Unconfined"}


def create(spec: Tree | None = None, **metadata: Any) -> RegistryResult:
    return before_create(pod(spec, **metadata), CATALOGUE.find("v1", "Pod"), CONTEXT)


def annotated(key: str, value: str, spec: Tree | None = None) -> RegistryResult:
    return create(spec, annotations={key: value})


def places(result: RegistryResult) -> list[str]:
    return [f"{error.path} {error.type.value}" for error in result.errors]


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        (COST, "-5", []),
        (COST, "-0", []),
        (COST, "01", [f"metadata.annotations[{COST}] FieldValueInvalid"]),
        (COST, "+1", [f"metadata.annotations[{COST}] FieldValueInvalid"]),
        (COST, "2147483648", [f"metadata.annotations[{COST}] FieldValueInvalid"]),
        (COST, "", [f"metadata.annotations[{COST}] FieldValueInvalid"]),
        (TOLERATIONS, "null", []),
        (TOLERATIONS, '[{"key":"a"}]', []),
        (TOLERATIONS, "{}", ["metadata.annotations FieldValueInvalid"]),
        (TOLERATIONS, "[", ["metadata.annotations FieldValueInvalid"]),
        (
            TOLERATIONS,
            '[{"key":"a","effect":"x"}]',
            [f"metadata.annotations.{TOLERATIONS}[0].effect FieldValueNotSupported"],
        ),
        (SECCOMP, "docker/default", []),
        (SECCOMP, "bogus", [f"metadata.annotations.{SECCOMP} FieldValueInvalid"]),
        (SECCOMP, "localhost/../x", [f"metadata.annotations.{SECCOMP} FieldValueInvalid"]),
        (CONTAINER_SECCOMP, "", [f"metadata.annotations.{CONTAINER_SECCOMP} FieldValueInvalid"]),
        (APP_ARMOR, "", []),
        (APP_ARMOR, "localhost/x", []),
        (APP_ARMOR, "bogus", [f"metadata.annotations[{APP_ARMOR}] FieldValueInvalid"]),
        (f"{APP_ARMOR}x", "", [f"metadata.annotations[{APP_ARMOR}x] FieldValueInvalid"]),
    ],
)
def test_values_of_annotations(key: str, value: str, expected: list[str]) -> None:
    assert places(annotated(key, value)) == expected


@pytest.mark.parametrize(
    ("key", "value", "field", "profile", "expected"),
    [
        (APP_ARMOR, "unconfined", "appArmorProfile", UNCONFINED, ""),
        (APP_ARMOR, "runtime/default", "appArmorProfile", UNCONFINED, "type"),
        (APP_ARMOR, "localhost/a", "appArmorProfile", LOCAL, ""),
        (APP_ARMOR, "localhost/b", "appArmorProfile", LOCAL, "localhostProfile"),
        (APP_ARMOR, "unconfined", "appArmorProfile", LOCAL, "type"),
        (CONTAINER_SECCOMP, "docker/default", "seccompProfile", {"type": "RuntimeDefault"}, ""),
        (CONTAINER_SECCOMP, "unconfined", "seccompProfile", {"type": "RuntimeDefault"}, "type"),
        (CONTAINER_SECCOMP, "localhost/b", "seccompProfile", LOCAL, "localhostProfile"),
    ],
)
def test_profiles_in_annotations_and_fields_agree(
    key: str, value: str, field: str, profile: Tree, expected: str
) -> None:
    spec = {"containers": [container(securityContext={field: profile})]}
    place = f"spec.containers[0].securityContext.{field}.{expected} FieldValueForbidden"
    assert places(annotated(key, value, spec)) == ([place] if expected else [])


def test_an_annotation_of_app_armor_becomes_a_field() -> None:
    result = annotated(APP_ARMOR, "localhost/a")
    (made,) = to_tree(result.stored)["spec"]["containers"]
    assert made["securityContext"] == {"appArmorProfile": LOCAL}
    assert result.warnings == (
        (
            f"metadata.annotations[{APP_ARMOR}]: deprecated since v1.30; use the "
            '"appArmorProfile" field instead'
        ),
    )


def test_annotations_that_were_init_containers_are_dropped() -> None:
    result = annotated("pod.beta.kubernetes.io/init-containers", "[]")
    assert result.stored.metadata.annotations == {}


PORT = {"containerPort": 80, "protocol": "TCP"}
TERM = {"matchExpressions": [{"key": "a", "operator": "In", "values": ["a b"]}]}


@pytest.mark.parametrize(
    ("spec", "place"),
    [
        ({"nodeSelector": {"beta.kubernetes.io/os": "x"}}, "spec.nodeSelector[beta.kubernetes.io/"),
        (
            {"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 1, "preference": TERM}]}}},
            ("spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0]"
            ".preference.matchExpressions[0].values[0]: a b is invalid"),
        ),
        (
            {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
                {"topologyKey": "zone"}]}}},
            ("spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0]"
            ".labelSelector: a null labelSelector"),
        ),
        ({"volumes": [{"name": "v", "gitRepo": {"repository": "r"}}]}, "spec.volumes[0].gitRepo: "),
        (
            {"volumes": [{"name": "v", "configMap": {"name": "m", "items": [
                {"key": "a", "path": "x/y"}, {"key": "b", "path": "x"}]}}]},
            'volume "v" (ConfigMap "m"): overlapping paths: "x" with "x/y"',
        ),
        (
            {"volumes": [{"name": "v", "projected": {"sources": [{}]}}]},
            'volume "v" (Projected) has no sources provided',
        ),
        (
            {"hostAliases": [{"ip": "1.1.1.1"}, {"ip": "1.1.1.1"}]},
            'spec.hostAliases[1].ip: duplicate ip "1.1.1.1"',
        ),
        ({"hostAliases": [{"ip": "0::1"}]}, 'spec.hostAliases[0].ip: IPv6 address "0::1" should'),
        ({"imagePullSecrets": [{}]}, 'spec.imagePullSecrets[0].name: invalid empty name ""'),
        (
            {"containers": [container(resources={"requests": {"memory": "1500m"}})]},
            'spec.containers[0].resources.requests[memory]: fractional byte value "1500m"',
        ),
        (
            {"containers": [container(env=[{"name": "A"}, {"name": "A", "value": "b"}])]},
            'spec.containers[0].env[1]: hides previous definition of "A"',
        ),
        (
            {"containers": [container(ports=[PORT, {**PORT, "hostPort": 1}])]},
            "spec.containers[0].ports[1]: overlapping port definition with spec.containers[0]",
        ),
        (
            {"containers": [container(ports=[{**PORT, "hostIP": "1.1.1.1"}])]},
            ("spec.containers[0].ports[0]: hostIP set without hostPort: {Name: HostPort:0 "
            "ContainerPort:80 Protocol:TCP HostIP:1.1.1.1}"),
        ),
    ],
)  # fmt: skip
def test_a_warning_names_the_place(spec: Tree, place: str) -> None:
    result = create(spec)
    assert not result.errors
    (warning,) = result.warnings
    assert warning.startswith(place)


def test_a_plain_pod_gives_no_warnings() -> None:
    assert create().warnings == ()


def test_a_name_that_is_no_label_is_no_host_name() -> None:
    (warning,) = create(name="a.b").warnings
    assert warning.endswith("a DNS label is recommended: [must not contain dots]")


def test_warnings_are_bounded() -> None:
    ports = [{**PORT, "hostPort": number} for number in range(1, 3000)]
    many = [*ports, *({**PORT, "hostIP": "1.1.1.1"} for _ in range(3000))]
    result = create({"containers": [container(ports=many)]})
    assert len(result.warnings) <= 130


def test_an_invalid_pod_has_no_warnings_about_its_fields() -> None:
    result = create({"imagePullSecrets": [{}], "restartPolicy": "x"})
    assert (bool(result.errors), result.warnings) == (True, ())
