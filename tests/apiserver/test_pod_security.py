"""PodSecurity: namespaces ask a level of their pods, and the server enforces, audits and warns."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from moorage.api.catalogue import CATALOGUE
from moorage.api.gates import Gates
from moorage.apiserver.admission import existing_pods, pod_security
from moorage.apiserver.audit import DEFAULT_POLICY, Auditor
from moorage.apiserver.auth.users import ADMIN
from moorage.apiserver.http.response_encoder import WARNING_LENGTH_MAX, warning_headers
from moorage.kit.bulkhead import Fault
from moorage.validation.pod_security import (
    EvaluatedPod,
    Level,
    LevelVersion,
    PodEvaluator,
    PodSecurityConfiguration,
    PodSecurityPolicy,
)
from tests.apiserver.client import (
    JSON_PATCH,
    MERGE_PATCH,
    NAMESPACES,
    START,
    STRATEGIC_PATCH,
    Client,
    Reply,
    pod,
)
from tests.apiserver.test_audit import Notes

PREFIX = "pod-security.kubernetes.io/"
GUARDED = f"{NAMESPACES}/guarded"
PODS = f"{GUARDED}/pods"
DEPLOYMENTS = "/apis/apps/v1/namespaces/guarded/deployments"

PRIVILEGED: dict[str, Any] = {"securityContext": {"privileged": True}}
WHY = 'privileged (container "c" must not set securityContext.privileged=true)'
BASELINE = f'PodSecurity "baseline:latest": {WHY}'

MakeClient = Callable[..., Client]


@pytest.fixture
def notes() -> Notes:
    return Notes()


@pytest.fixture
def make_client(tmp_path: Path, notes: Notes) -> Iterator[MakeClient]:
    made: list[Client] = []

    def make(configuration: PodSecurityConfiguration | None = None, **more: Any) -> Client:
        client = Client(
            tmp_path / "store",
            audit=Auditor(DEFAULT_POLICY, notes, lambda: START),
            pod_security=configuration or PodSecurityConfiguration(),
            **more,
        )
        made.append(client)
        return client

    yield make
    for client in made:
        client.close()


@pytest.fixture
def client(make_client: MakeClient) -> Client:
    return make_client()


def guarded(client: Client, **labels: str) -> Reply:
    """Make a namespace with labels of pod security."""
    return client.post(NAMESPACES, {"metadata": {"name": "guarded", "labels": labelled(**labels)}})


def relabelled(client: Client, **labels: str) -> Reply:
    return client.patch(GUARDED, {"metadata": {"labels": labelled(**labels)}}, MERGE_PATCH)


def labelled(**labels: str) -> dict[str, str]:
    return {PREFIX + name.replace("_", "-"): text for name, text in labels.items()}


def with_container(name: str = "p", **fields: Any) -> dict[str, Any]:
    body = pod(name)
    body["spec"]["containers"][0] |= fields
    return body


def deployment(template: dict[str, Any]) -> dict[str, Any]:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": template["spec"]}
    selector = {"matchLabels": {"a": "b"}}
    return {"metadata": {"name": "d"}, "spec": {"selector": selector, "template": template}}


def warned(*texts: str) -> list[str]:
    return ['299 - "{}"'.format(text.replace('"', '\\"')) for text in texts]


def audited(notes: Notes) -> dict[str, str]:
    """Return what the last audit event says about pod security."""
    given = notes.lines[-1]["annotations"].items()
    return {name.removeprefix(PREFIX): text for name, text in given if name.startswith(PREFIX)}


def counted(client: Client) -> list[str]:
    lines = client.get("/metrics").body.decode().splitlines()
    return [line for line in lines if line.startswith("pod_security_")]


# --- parts of pods --------------------------------------------------------------------------------

DEBUGGER = {"name": "debugger", "image": "busybox"}
EPHEMERAL = f"{PODS}/p/ephemeralcontainers"


def debugging(*containers: dict[str, Any]) -> dict[str, Any]:
    return {"spec": {"ephemeralContainers": list(containers)}}


def test_an_ephemeral_container_must_keep_to_the_level(client: Client, notes: Notes) -> None:
    guarded(client, enforce="baseline")
    assert client.post(PODS, pod()).status == 201
    refused = client.patch(EPHEMERAL, debugging({**DEBUGGER, **PRIVILEGED}), STRATEGIC_PATCH)
    assert refused.status == 403
    assert refused.message == f'pods "p" is forbidden: violates {BASELINE}'.replace(
        'container "c"', 'container "debugger"'
    )
    assert audited(notes) == {"enforce-policy": "baseline:latest"}
    added = client.patch(EPHEMERAL, debugging(DEBUGGER), STRATEGIC_PATCH)
    assert added.status == 200
    worse = {**added.json["spec"]["ephemeralContainers"][0], "name": "more", **PRIVILEGED}
    refused = client.put(EPHEMERAL, {**added.json, **debugging(DEBUGGER, worse)})
    assert refused.status == 403
    labels = [line for line in counted(client) if 'subresource="ephemeralcontainers"' in line]
    assert sum('decision="deny"' in line for line in labels) == 1


def test_an_ephemeral_container_is_warned_of(client: Client, notes: Notes) -> None:
    guarded(client, warn="baseline", audit="baseline")
    assert client.post(PODS, pod()).status == 201
    added = client.patch(EPHEMERAL, debugging({**DEBUGGER, **PRIVILEGED}), STRATEGIC_PATCH)
    text = f"would violate {BASELINE}".replace('container "c"', 'container "debugger"')
    assert (added.status, added.warnings) == (200, warned(text))
    assert audited(notes)["audit-violations"] == text


def test_a_pod_that_was_there_before_the_level_can_be_resized(client: Client) -> None:
    guarded(client)
    sizes = {"requests": {"cpu": "1"}, "limits": {"cpu": "2"}}
    made = client.post(PODS, with_container(**PRIVILEGED, resources=sizes))
    assert made.status == 201
    relabelled(client, enforce="restricted")
    size = {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1500m"}}}]}}
    assert client.patch(f"{PODS}/p/resize", size, STRATEGIC_PATCH).status == 200
    assert client.patch(EPHEMERAL, debugging(DEBUGGER), STRATEGIC_PATCH).status == 403


# --- pods -----------------------------------------------------------------------------------------


def test_without_labels_everything_is_allowed(client: Client, notes: Notes) -> None:
    guarded(client)
    reply = client.post(PODS, with_container(**PRIVILEGED))
    assert (reply.status, reply.warnings) == (201, [])
    assert audited(notes) == {"enforce-policy": "privileged:latest"}


def test_enforce_refuses_a_pod_that_violates_the_level(client: Client, notes: Notes) -> None:
    guarded(client, enforce="baseline")
    reply = client.post(PODS, with_container(**PRIVILEGED))
    assert reply.status == 403
    assert reply.message == f'pods "p" is forbidden: violates {BASELINE}'
    assert reply.json["details"] == {"name": "p", "kind": "pods"}
    assert reply.warnings == []  # The error says it.
    assert audited(notes) == {"enforce-policy": "baseline:latest"}
    assert client.get(f"{PODS}/p").status == 404
    assert client.post(PODS, with_container()).status == 201


def test_a_refused_pod_with_a_generated_name_is_named(client: Client) -> None:
    guarded(client, enforce="baseline")
    body = with_container(**PRIVILEGED)
    body["metadata"] = {"generateName": "web-"}
    reply = client.post(PODS, body)
    assert reply.message.startswith('pods "web-')
    assert reply.json["details"]["name"] != "web-"


def test_audit_and_warn_let_the_pod_pass(client: Client, notes: Notes) -> None:
    guarded(client, audit="baseline", warn="baseline", warn_version="v1.30")
    reply = client.post(PODS, with_container(**PRIVILEGED))
    assert reply.status == 201
    assert reply.warnings == warned(f'would violate PodSecurity "baseline:v1.30": {WHY}')
    assert audited(notes) == {
        "enforce-policy": "privileged:latest",
        "audit-violations": f"would violate {BASELINE}",
    }


def test_an_invalid_pod_is_invalid_first(client: Client) -> None:
    guarded(client, enforce="restricted")
    assert client.post(PODS, with_container(image=" i", **PRIVILEGED)).status == 422


def test_an_update_is_evaluated_only_if_it_changes_images(client: Client, notes: Notes) -> None:
    guarded(client)
    client.post(PODS, with_container(**PRIVILEGED))
    relabelled(client, enforce="baseline", audit="baseline")
    labels = client.patch(f"{PODS}/p", {"metadata": {"labels": {"a": "b"}}}, MERGE_PATCH)
    assert (labels.status, audited(notes)) == (200, {})
    image = [{"op": "replace", "path": "/spec/containers/0/image", "value": "newer"}]
    reply = client.patch(f"{PODS}/p", image, JSON_PATCH)
    assert reply.message == f'pods "p" is forbidden: violates {BASELINE}'
    assert audited(notes)["audit-violations"] == f"would violate {BASELINE}"
    status = client.patch(f"{PODS}/p/status", {"status": {"phase": "Running"}}, MERGE_PATCH)
    assert status.status == 200


def test_host_ports_that_defaulting_sets_are_refused(client: Client) -> None:
    guarded(client, enforce="baseline")
    body = with_container(ports=[{"containerPort": 80}])
    body["spec"]["hostNetwork"] = True
    assert client.post(PODS, body).message.endswith(
        'host namespaces (hostNetwork=true), hostPort (container "c" uses hostPort 80)'
    )


def test_profiles_of_deprecated_annotations_count_as_fields(client: Client) -> None:
    guarded(client, enforce="baseline")
    key = "container.apparmor.security.beta.kubernetes.io/c"
    body = with_container()
    body["metadata"]["annotations"] = {key: "unconfined"}
    assert client.post(PODS, body).message.endswith(
        'forbidden AppArmor profiles (container "c" and annotation must not set AppArmor profile '
        f'type to "Unconfined", "{key}="unconfined"")'
    )
    body["metadata"]["annotations"] = {key: "localhost/strict"}
    spec = client.post(PODS, body).json["spec"]
    profile = {"type": "Localhost", "localhostProfile": "strict"}
    assert spec["containers"][0]["securityContext"] == {"appArmorProfile": profile}


# --- pod templates --------------------------------------------------------------------------------


def test_templates_are_warned_about_and_audited_but_never_refused(
    client: Client, notes: Notes
) -> None:
    guarded(client, enforce="baseline", audit="baseline")
    reply = client.post(DEPLOYMENTS, deployment(with_container(**PRIVILEGED)))
    assert reply.status == 201
    assert reply.warnings == warned(f"would violate {BASELINE}")
    assert audited(notes) == {"audit-violations": f"would violate {BASELINE}"}
    scaled = client.patch(f"{DEPLOYMENTS}/d/scale", {"spec": {"replicas": 2}}, MERGE_PATCH)
    assert (scaled.status, scaled.warnings) == (200, [])


def test_templates_may_be_enforced_without_a_warning(client: Client) -> None:
    guarded(client, enforce="baseline", warn="privileged")
    reply = client.post(DEPLOYMENTS, deployment(with_container(**PRIVILEGED)))
    assert (reply.status, reply.warnings) == (201, [])


SERVED = [
    which
    for which in pod_security.TEMPLATES
    if any((kind.group, kind.plural) == which for kind in CATALOGUE)
]


@pytest.mark.parametrize("which", SERVED)
def test_templates_of_every_served_kind_are_found(client: Client, which: tuple[str, str]) -> None:
    resource = client.service.resources.of(*which)
    guarded(client, warn="baseline")
    template = {"metadata": {"labels": {"a": "b"}}, "spec": with_container(**PRIVILEGED)["spec"]}
    content: Any = template
    for name in reversed(pod_security.TEMPLATES[which]):
        content = {name: content}
    if which[0] == "batch":
        template["spec"]["restartPolicy"] = "Never"
    if which[0] == "apps":
        content["spec"]["selector"] = {"matchLabels": {"a": "b"}}
    if which[1] == "cronjobs":
        content["spec"]["schedule"] = "@daily"
    if which[1] == "statefulsets":
        content["spec"]["serviceName"] = "s"
    group, version = which[0], resource.any_kind.version
    path = f"/apis/{group}/{version}" if group else f"/api/{version}"
    body = {"metadata": {"name": "w"}, **content}
    reply = client.post(f"{path}/namespaces/guarded/{which[1]}", body)
    assert (reply.status, reply.warnings) == (201, warned(f"would violate {BASELINE}"))


# --- namespaces -----------------------------------------------------------------------------------


def test_a_namespace_with_unreadable_labels_is_refused(client: Client) -> None:
    reply = guarded(client, enforce="strict", audit_version="1.30")
    assert reply.status == 422
    assert reply.message == (
        'Namespace "guarded" is invalid: [metadata.labels[pod-security.kubernetes.io/enforce]: '
        'Invalid value: "strict": must be one of privileged, baseline, restricted, '
        "metadata.labels[pod-security.kubernetes.io/audit-version]: "
        'Invalid value: "1.30": must be "latest" or "v1.x"]'
    )
    guarded(client)
    assert relabelled(client, warn="loud").status == 422
    assert relabelled(client, warn="baseline").status == 200


def stored_labels(client: Client, **labels: str) -> None:
    """Store labels past admission, as an older server may have."""
    registry, resource = client.service.registry, client.service.resources.of("", "namespaces")

    async def change(namespace: Any) -> Any:
        metadata = replace(namespace.metadata, labels=labelled(**labels))
        return replace(namespace, metadata=metadata)

    client.run(registry.change(resource, "", "guarded", change))


def test_unreadable_labels_that_were_there_stay_and_enforce_the_most(
    client: Client, notes: Notes
) -> None:
    guarded(client)
    stored_labels(client, enforce="strict")
    other = client.patch(GUARDED, {"metadata": {"annotations": {"a": "b"}}}, MERGE_PATCH)
    assert other.status == 200
    assert relabelled(client, audit="strict").status == 422
    reply = client.post(PODS, with_container(**PRIVILEGED))
    assert 'violates PodSecurity "restricted:latest"' in reply.message
    assert audited(notes)["error"].startswith("Failed to parse policy: metadata.labels[")
    key = 'pod_security_errors_total{fatal="false",request_operation="create",resource="pod"'
    assert [line for line in counted(client) if line.startswith(key)]


def test_a_stricter_level_warns_of_pods_that_violate_it(client: Client) -> None:
    guarded(client)
    for name in ("b", "a", "d"):
        client.post(PODS, with_container(name, **PRIVILEGED))
    client.post(PODS, with_container("c"))
    reply = relabelled(client, enforce="baseline")
    assert reply.status == 200
    assert reply.warnings == warned(
        'existing pods in namespace "guarded" violate the new PodSecurity enforce level '
        '"baseline:latest"',
        "a (and 2 other pods): privileged",
    )
    assert relabelled(client, audit="restricted").warnings == []
    assert relabelled(client, enforce="privileged").warnings == []
    assert len(relabelled(client, enforce="restricted").warnings) == 3
    assert relabelled(client, enforce="baseline").warnings == []  # less strict
    assert len(relabelled(client, enforce_version="v1.30").warnings) == 2


def test_a_pod_that_cannot_be_read_keeps_no_level_from_its_namespace(
    client: Client, faults: list[Fault]
) -> None:
    guarded(client)
    client.post(PODS, with_container(**PRIVILEGED))
    broken = b'{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","uid":"u"},"spec":1}'
    client.run(client.store.create("/registry/core/pods/guarded/a", broken))
    reply = relabelled(client, enforce="baseline")
    assert (reply.status, len(reply.warnings)) == (200, 2)
    assert {each.place for each in faults} == {"reading the store"}


def test_the_check_of_existing_pods_is_bounded_in_count(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(existing_pods, "CHECKED_PODS_MAX", 3)
    monkeypatch.setattr(existing_pods, "PAGE", 2)
    guarded(client)
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "u"}
    for name in ("a", "b", "c"):
        body = with_container(name)
        body["metadata"]["ownerReferences"] = [{**owner, "controller": True}]
        client.post(PODS, body)
    for name in ("y", "z"):
        client.post(PODS, with_container(name, **PRIVILEGED))
    # Of pods of one controller, one is checked before others.
    assert relabelled(client, enforce="baseline").warnings == warned(
        "new PodSecurity enforce level only checked against the first 3 of 5 existing pods",
        'existing pods in namespace "guarded" violate the new PodSecurity enforce level '
        '"baseline:latest"',
        "y (and 1 other pod): privileged",
    )


class Ticking:
    """A clock on which every look takes a tenth of a second."""

    def __init__(self) -> None:
        self.looks = 0

    def __call__(self) -> float:
        self.looks += 1
        return self.looks / 10


def test_the_check_of_existing_pods_is_bounded_in_time(client: Client) -> None:
    guarded(client)
    for number in range(20):
        client.post(PODS, with_container(f"p{number:02}", **PRIVILEGED))
    service = client.service
    pods = existing_pods.ExistingPods(
        service.registry, service.resources, PodEvaluator(), frozenset(), clock=Ticking()
    )
    found = client.run(pods.warnings("guarded", LevelVersion(Level.BASELINE)))
    assert found == [
        "new PodSecurity enforce level only checked against the first 1 of 20 existing pods",
        (
            'existing pods in namespace "guarded" violate the new PodSecurity enforce level '
            '"baseline:latest"'
        ),
        "p00: privileged",
    ]


# --- configuration --------------------------------------------------------------------------------

CONFIGURED = PodSecurityConfiguration(
    PodSecurityPolicy(enforce=LevelVersion(Level.BASELINE)),
    exempt_namespaces=frozenset({"kube-system"}),
    exempt_runtime_classes=frozenset({"vm"}),
)


def test_defaults_hold_for_namespaces_without_labels(make_client: MakeClient) -> None:
    client = make_client(CONFIGURED)
    guarded(client)
    assert client.post(PODS, with_container(**PRIVILEGED)).status == 403
    relabelled(client, enforce="privileged")
    assert client.post(PODS, with_container(**PRIVILEGED)).status == 201


def test_exempt_namespaces_and_runtime_classes_are_not_checked(
    make_client: MakeClient, notes: Notes
) -> None:
    client = make_client(CONFIGURED)
    client.post("/apis/node.k8s.io/v1/runtimeclasses", {"metadata": {"name": "vm"}, "handler": "v"})
    system = f"{NAMESPACES}/kube-system"
    assert client.post(f"{system}/pods", with_container(**PRIVILEGED)).status == 201
    assert audited(notes) == {"exempt": "namespace"}
    guarded(client)
    body = with_container(**PRIVILEGED)
    body["spec"]["runtimeClassName"] = "vm"
    assert client.post(PODS, body).status == 201
    assert audited(notes) == {"exempt": "runtimeClass"}
    labels = {"metadata": {"labels": labelled(enforce="restricted", warn_version="v1.30")}}
    assert client.patch(system, labels, MERGE_PATCH).warnings == warned(
        'namespace "kube-system" is exempt from Pod Security, and the policy '
        "(enforce=restricted:latest, warn=restricted:v1.30) will be ignored"
    )
    key = 'pod_security_exemptions_total{request_operation="create",resource="pod",subresource=""}'
    assert f"{key} 2" in counted(client)


def test_exempt_users_are_not_checked(make_client: MakeClient, notes: Notes) -> None:
    client = make_client(PodSecurityConfiguration(exempt_users=frozenset({ADMIN.name})))
    labels = {"metadata": {"name": "guarded", "labels": labelled(enforce="restricted")}}
    client.post(NAMESPACES, labels)
    assert client.post(PODS, with_container(**PRIVILEGED)).status == 201
    assert audited(notes) == {"exempt": "user"}


def test_an_emulated_server_has_no_later_checks(make_client: MakeClient) -> None:
    client = make_client(gates=Gates.parse(emulated_version="1.36"))
    guarded(client, enforce="baseline")
    body = with_container()
    name = "net.ipv4.tcp_notsent_lowat"
    body["spec"]["securityContext"] = {"sysctls": [{"name": name, "value": "1"}]}
    assert client.post(PODS, body).message.endswith(f"forbidden sysctls ({name})")


# --- metrics and headers --------------------------------------------------------------------------


def test_evaluations_are_counted(client: Client) -> None:
    guarded(
        client, enforce="baseline", enforce_version="v1.99", audit="restricted", warn="baseline"
    )
    client.post(PODS, with_container(**PRIVILEGED))
    client.post(PODS, with_container())
    client.post(DEPLOYMENTS, deployment(with_container(**PRIVILEGED)))
    client.post(f"{NAMESPACES}/default/pods", with_container())
    line = (
        'pod_security_evaluations_total{{decision="{}",policy_level="{}",policy_version="{}",'
        'mode="{}",request_operation="create",resource="{}",subresource=""}} {}'
    )
    expected = [
        ("allow", "baseline", "future", "enforce", "pod", 1),
        ("allow", "privileged", "latest", "enforce", "pod", 1),
        ("deny", "baseline", "future", "enforce", "pod", 1),
        ("deny", "baseline", "latest", "warn", "controller", 1),
        ("deny", "restricted", "latest", "audit", "controller", 1),
        ("deny", "restricted", "latest", "audit", "pod", 2),
    ]
    assert counted(client) == [line.format(*each) for each in expected]


def test_warnings_are_shortened_only_if_all_are_too_long_together() -> None:
    long = "x" * 3000
    assert warning_headers((long,)) == (("Warning", f'299 - "{long}"'),)
    short = "x" * WARNING_LENGTH_MAX
    assert warning_headers((long, long, "y" * 2000)) == (
        ("Warning", f'299 - "{short}"'),
        ("Warning", f'299 - "{"y" * WARNING_LENGTH_MAX}"'),
    )
    many = warning_headers(tuple(f"{n:04}{long}" for n in range(100)))
    assert sum(len(text) for _, text in many) < 5000


def test_a_large_pod_is_evaluated_check_by_check(client: Client) -> None:
    guarded(client, enforce="baseline")
    body = with_container()
    count = pod_security.LARGE + 1
    body["spec"]["containers"] = [
        {"name": f"c{number}", "image": "i", **PRIVILEGED} for number in range(count)
    ]
    others = 0

    async def other() -> None:
        nonlocal others
        while True:
            others += 1
            await asyncio.sleep(0)

    async def evaluated() -> int:
        plugin = pod_security.PodSecurityAdmission(
            client.service.registry,
            client.service.resources,
            PodSecurityConfiguration(),
            gates=client.service.gates,
        )
        task = asyncio.create_task(other())
        found = await plugin._violations(LevelVersion(Level.BASELINE), EvaluatedPod(body))
        task.cancel()
        return str(found).count('"c')

    assert client.run(evaluated()) == count
    checks = len(PodEvaluator().checks(LevelVersion(Level.BASELINE)))
    assert others >= checks
    assert client.post(PODS, body).status == 403
