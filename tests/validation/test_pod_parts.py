"""Rules for the parts of pods, and of the templates of all who make pods."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.api.core.placement import Affinity, PodAffinity, PodAffinityTerm
from moorage.api.field_path import root
from moorage.api.meta import LabelSelector
from moorage.validation.pod.affinity import validate_affinity
from tests.validation.objects import VALID, Tree, causes, create

LABEL = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and "
    "must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used "
    "for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
WORKLOADS = sorted(kind for kind in VALID if "template" in VALID[kind].get("spec", {}))
HOLDERS = ["Pod", *WORKLOADS]

CONTAINER = {"name": "c", "image": "i"}


def of(kind: str, spec: Tree) -> list[str]:
    """Return what is wrong with a pod, or with a template, by the place in its spec."""
    whole = spec if kind == "Pod" else {"template": {"spec": spec}}
    prefix = "spec." if kind == "Pod" else "spec.template.spec."
    found = causes(create(kind, {"spec": whole}))
    assert all(prefix in cause for cause in found), found
    return [cause.replace(prefix, "", 1) for cause in found]


def mounting(*mounts: Tree, **container: Any) -> Tree:
    return {
        "volumes": [{"name": "v", "emptyDir": {}}, {"name": "w", "emptyDir": {}}],
        "containers": [{**CONTAINER, "volumeMounts": list(mounts), **container}],
    }


def test_all_who_make_pods_are_tried() -> None:
    assert WORKLOADS == ["DaemonSet", "Deployment", "Job", "ReplicaSet", "StatefulSet"]


@pytest.mark.parametrize("kind", HOLDERS)
@pytest.mark.parametrize(
    "name", ["/srv/victim", "../../etc", "..", ".", "a/b", "A", "a b", "a" * 64]
)
def test_a_volume_is_named_by_a_label(kind: str, name: str) -> None:
    (cause,) = of(kind, {"volumes": [{"name": name, "emptyDir": {}}]})
    assert cause.startswith(f'Invalid volumes[0].name: Invalid value: "{name}": ')


@pytest.mark.parametrize("kind", HOLDERS)
def test_volumes_have_names_of_their_own(kind: str) -> None:
    twice = [{"name": "v", "emptyDir": {}}, {"name": "v", "configMap": {"name": "m"}}]
    assert of(kind, {"volumes": twice}) == ['Duplicate volumes[1].name: Duplicate value: "v"']
    assert of(kind, {"volumes": [{"emptyDir": {}}]}) == ["Required volumes[0].name: Required value"]


@pytest.mark.parametrize("kind", HOLDERS)
def test_a_mount_names_a_volume_and_a_place_of_its_own(kind: str) -> None:
    assert of(kind, mounting({"name": "x", "mountPath": "/x"})) == [
        'NotFound containers[0].volumeMounts[0].name: Not found: "x"'
    ]
    twice = mounting({"name": "v", "mountPath": "/v"}, {"name": "w", "mountPath": "/v"})
    assert of(kind, twice) == [
        'Invalid containers[0].volumeMounts[1].mountPath: Invalid value: "/v": must be unique'
    ]


@pytest.mark.parametrize("kind", HOLDERS)
@pytest.mark.parametrize("field", ["subPath", "subPathExpr"])
@pytest.mark.parametrize(
    ("target", "detail"),
    [
        ("/etc", "must be a relative path"),
        ("a/../../b", "must not contain '..'"),
        ("..", "must not contain '..'"),
    ],
)
def test_a_part_of_a_volume_is_below_it(kind: str, field: str, target: str, detail: str) -> None:
    mount = {"name": "v", "mountPath": "/v", field: target}
    assert of(kind, mounting(mount)) == [
        f'Invalid containers[0].volumeMounts.{field}: Invalid value: "{target}": {detail}'
    ]


@pytest.mark.parametrize(
    ("source", "wrong"),
    [
        ({}, []),
        (
            {"emptyDir": {}, "hostPath": {"path": "/"}},
            ["Forbidden volumes[0].hostPath: Forbidden: may not specify more than 1 volume type"],
        ),
        (
            {"hostPath": {"path": "/a/../b"}},
            [
                (
                    'Invalid volumes[0].hostPath.path: Invalid value: "/a/../b": '
                    "must not contain '..'"
                )
            ],
        ),
        ({"configMap": {}}, ["Required volumes[0].configMap.name: Required value"]),
        (
            {"secret": {"secretName": "s", "items": [{"key": "k", "path": "../p", "mode": 512}]}},
            [
                (
                    'Invalid volumes[0].secret.items[0].path: Invalid value: "../p": '
                    "must not contain '..'"
                ),
                (
                    "Invalid volumes[0].secret.items[0].mode: Invalid value: 512: "
                    "must be a number between 0 and 0777 (octal), both inclusive"
                ),
            ],
        ),
        (
            {"projected": {"sources": [{"serviceAccountToken": {"path": "/t"}}]}},
            [('Invalid volumes[0].projected.path: Invalid value: "/t": must be a relative path')],
        ),
        (
            {"downwardAPI": {"items": [{"path": "p", "fieldRef": {"fieldPath": "spec.x"}}]}},
            [
                (
                    'Invalid volumes[0].downwardAPI.fieldRef.fieldPath: Invalid value: "spec.x": '
                    "error converting fieldPath: field label not supported: spec.x"
                )
            ],
        ),
    ],
)
def test_sources_of_volumes(source: Tree, wrong: list[str]) -> None:
    assert of("Pod", {"volumes": [{"name": "v", **source}]}) == wrong


@pytest.mark.parametrize(
    ("container", "wrong"),
    [
        ({"name": "../c"}, [f'Invalid containers[0].name: Invalid value: "../c": {LABEL}']),
        (
            {"env": [{"name": "A=B"}]},
            [
                (
                    'Invalid containers[0].env[0].name: Invalid value: "A=B": a valid environment '
                    "variable name must consist only of printable ASCII characters other than '='"
                )
            ],
        ),
        (
            {"envFrom": [{"configMapRef": {"name": "../m"}}]},
            [
                (
                    'Invalid containers[0].envFrom[0].configMapRef.name: Invalid value: "../m": a '
                    "lowercase RFC 1123 subdomain must consist of lower case alphanumeric "
                    "characters, '-' or '.', and must start and end with an alphanumeric character "
                    "(e.g. 'example.com', regex used for validation is "
                    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
                )
            ],
        ),
        (
            {"livenessProbe": {"grpc": {"port": 0}}},
            [
                (
                    "Invalid containers[0].livenessProbe.grpc.port: Invalid value: 0: "
                    "must be between 1 and 65535, inclusive"
                )
            ],
        ),
        (
            {"readinessProbe": {}},
            ["Required containers[0].readinessProbe: Required value: must specify a handler type"],
        ),
        (
            {"securityContext": {"privileged": True, "allowPrivilegeEscalation": False}},
            [
                (
                    "Invalid containers[0].securityContext: Invalid value: "
                    '{"Capabilities":null,"Privileged":true,"SELinuxOptions":null,'
                    '"WindowsOptions":null,"RunAsUser":null,"RunAsGroup":null,"RunAsNonRoot":null,'
                    '"ReadOnlyRootFilesystem":null,"AllowPrivilegeEscalation":false,'
                    '"ProcMount":null,"SeccompProfile":null,"AppArmorProfile":null}: cannot set '
                    "`allowPrivilegeEscalation` to false and `privileged` to true"
                )
            ],
        ),
    ],
)
def test_parts_of_containers(container: Tree, wrong: list[str]) -> None:
    assert of("Pod", {"containers": [{**CONTAINER, **container}]}) == wrong


# --- ports of the host ----------------------------------------------------------------------------

PORT: Tree = {"containerPort": 8080}
ON_HOST: Tree = {"hostNetwork": True, "containers": [{**CONTAINER, "ports": [PORT]}]}


@pytest.mark.parametrize("kind", WORKLOADS)
def test_a_template_on_the_hosts_network_may_leave_out_its_ports(kind: str) -> None:
    change: Tree = {"spec": {"template": {"spec": ON_HOST}}}
    admitted = create(kind, change)
    assert causes(admitted) == []
    (port,) = admitted.stored.spec.template.spec.containers[0].ports
    assert port.host_port == 0  # Its pods get it.


@pytest.mark.parametrize("kind", HOLDERS)
def test_ports_on_the_hosts_network_are_those_of_the_host(kind: str) -> None:
    spec = {**ON_HOST, "containers": [{**CONTAINER, "ports": [{**PORT, "hostPort": 80}]}]}
    (cause,) = of(kind, spec)
    assert cause.startswith("Invalid containers[0].ports[0].hostPort: Invalid value: 80: ")
    assert cause.endswith("must match `containerPort` when `hostNetwork` is true")


def test_a_pod_on_the_hosts_network_gets_the_ports_of_its_containers() -> None:
    (port,) = create("Pod", {"spec": ON_HOST}).stored.spec.containers[0].ports
    assert port.host_port == 8080


# --- defaults -------------------------------------------------------------------------------------

PROBE: Tree = {
    "timeoutSeconds": 1,
    "periodSeconds": 10,
    "successThreshold": 1,
    "failureThreshold": 3,
}


@pytest.mark.parametrize("kind", HOLDERS)
def test_parts_of_containers_get_their_defaults(kind: str) -> None:
    container = {
        **CONTAINER,
        "env": [{"name": "N", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
        "livenessProbe": {"grpc": {"port": 1}},
        "readinessProbe": {"httpGet": {"port": 2}, "failureThreshold": 7},
        "lifecycle": {"preStop": {"httpGet": {"port": 3}}},
    }
    made = _spec(kind, {"containers": [container]}).containers[0]
    assert made.env[0]["valueFrom"]["fieldRef"]["apiVersion"] == "v1"
    assert made.liveness_probe == {"grpc": {"port": 1, "service": ""}, **PROBE}
    http = {"path": "/", "scheme": "HTTP"}
    assert made.readiness_probe == {**PROBE, "httpGet": {"port": 2, **http}, "failureThreshold": 7}
    assert made.lifecycle == {"preStop": {"httpGet": {"port": 3, **http}}}


@pytest.mark.parametrize("kind", HOLDERS)
def test_volumes_get_their_defaults(kind: str) -> None:
    given: list[Tree] = [
        {},
        {"configMap": {"name": "m"}},
        {"secret": {"secretName": "s", "defaultMode": 0}},
        {"downwardAPI": {"items": [{"path": "p", "fieldRef": {"fieldPath": "metadata.name"}}]}},
        {"projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}},
        {"hostPath": {"path": "/"}},
        {"image": {"reference": "i:1"}},
    ]
    volumes = [{"name": f"v{number}", **source} for number, source in enumerate(given)]
    made = [dict(volume) for volume in _spec(kind, {"volumes": volumes}).volumes]
    field = {"path": "p", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}}
    token = {"serviceAccountToken": {"path": "t", "expirationSeconds": 3600}}
    assert [{k: v for k, v in volume.items() if k != "name"} for volume in made] == [
        {"emptyDir": {}},
        {"configMap": {"name": "m", "defaultMode": 0o644}},
        {"secret": {"secretName": "s", "defaultMode": 0}},
        {"downwardAPI": {"items": [field], "defaultMode": 0o644}},
        {"projected": {"sources": [token], "defaultMode": 0o644}},
        {"hostPath": {"path": "/", "type": ""}},
        {"image": {"reference": "i:1", "pullPolicy": "IfNotPresent"}},
    ]


def _spec(kind: str, spec: Tree) -> Any:
    whole = spec if kind == "Pod" else {"template": {"spec": spec}}
    admitted = create(kind, {"spec": whole})
    assert causes(admitted) == []
    stored = admitted.stored.spec
    return stored if kind == "Pod" else stored.template.spec


def test_what_a_pod_asks_for_as_a_whole_follows_from_its_containers() -> None:
    limited = {**CONTAINER, "resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "3"}}}
    change = {"containers": [limited], "resources": {"requests": {"memory": "1Gi"}}}
    resources = _spec("Pod", change).resources
    assert {name: str(amount) for name, amount in resources.requests.items()} == {
        "cpu": "1",
        "memory": "1Gi",
    }
    assert {name: str(amount) for name, amount in resources.limits.items()} == {"cpu": "3"}
    change["resources"] = {"requests": {"cpu": "500m"}}
    (cause,) = of("Pod", change)
    assert cause.endswith("must be greater than or equal to aggregate container requests of 1")


def test_label_keys_are_compared_about_as_often_as_there_are_keys() -> None:
    compared = 0

    class Counted(str):
        __slots__ = ()
        __hash__ = str.__hash__

        def __eq__(self, other: object) -> bool:
            nonlocal compared
            compared += 1
            return str.__eq__(self, other)

    keys = tuple(Counted(f"a{number}") for number in range(400))
    others = tuple(Counted(f"a{number}") for number in reversed(range(400)))
    term = PodAffinityTerm(
        topology_key="t",
        label_selector=LabelSelector(),
        match_label_keys=keys,
        mismatch_label_keys=others,
    )
    near = PodAffinity(required_during_scheduling_ignored_during_execution=(term,))
    found = validate_affinity(Affinity(pod_affinity=near), root("spec"))
    assert len(found) == len(keys)
    assert compared < 20 * len(keys)


def test_a_pod_with_resources_and_no_containers_is_refused() -> None:
    found = create("Pod", {"spec": {"containers": None, "resources": {"requests": {"cpu": "1"}}}})
    assert causes(found) == ["Required spec.containers: Required value"]
