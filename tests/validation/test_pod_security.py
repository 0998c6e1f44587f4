"""Pod security: what labels ask for, and what each check forbids in which version."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moorage.validation.pod_security import (
    LATEST,
    PRIVILEGED_POLICY,
    EvaluatedPod,
    Level,
    LevelVersion,
    PodEvaluator,
    PodSecurityConfigurationError,
    PodSecurityPolicy,
    PolicyVersion,
    policy_of,
    read_admission_configuration,
)
from moorage.validation.pod_security.levels import parse_version

PREFIX = "pod-security.kubernetes.io/"
NEWEST = 37


def labelled(**labels: str) -> dict[str, str]:
    return {PREFIX + name.replace("_", "-"): text for name, text in labels.items()}


def shown(policy: PodSecurityPolicy) -> str:
    return " ".join(f"{mode}={wanted}" for mode, wanted in policy._asdict().items())


# --- labels ---------------------------------------------------------------------------------------

P = "privileged:latest"


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ({}, f"enforce={P} audit={P} warn={P}"),
        # Whoever enforces is warned, unless the labels say what to warn of.
        (
            {"enforce": "baseline", "enforce_version": "v1.30"},
            f"enforce=baseline:v1.30 audit={P} warn=baseline:v1.30",
        ),
        (
            {"enforce": "baseline", "enforce_version": "v1.30", "warn_version": "v1.9"},
            f"enforce=baseline:v1.30 audit={P} warn=baseline:v1.9",
        ),
        (
            {"enforce": "restricted", "warn": "privileged"},
            f"enforce=restricted:latest audit={P} warn={P}",
        ),
        (
            {"audit": "restricted", "audit_version": "v1.0", "warn": "baseline"},
            f"enforce={P} audit=restricted:v1.0 warn=baseline:latest",
        ),
    ],
)
def test_labels_of_a_namespace_give_its_policy(labels: dict[str, str], expected: str) -> None:
    policy, errors = policy_of(labelled(**labels), PRIVILEGED_POLICY)
    assert (shown(policy), errors) == (expected, [])


def test_defaults_hold_for_what_labels_leave_open() -> None:
    defaults = PodSecurityPolicy(enforce=LevelVersion(Level.RESTRICTED, PolicyVersion(30)))
    policy, _ = policy_of(labelled(audit="baseline"), defaults)
    assert shown(policy) == f"enforce=restricted:v1.30 audit=baseline:latest warn={P}"


def test_unreadable_labels_enforce_the_most_and_warn_of_nothing() -> None:
    labels = labelled(
        enforce="Restricted", enforce_version="1.30", audit="", warn="strict", warn_version="v2.1"
    )
    policy, errors = policy_of(labels, PRIVILEGED_POLICY)
    assert shown(policy) == f"enforce=restricted:latest audit={P} warn={P}"
    level, version = "must be one of privileged, baseline, restricted", 'must be "latest" or "v1.x"'
    assert [str(error) for error in errors] == [
        f'metadata.labels[{PREFIX}enforce]: Invalid value: "Restricted": {level}',
        f'metadata.labels[{PREFIX}enforce-version]: Invalid value: "1.30": {version}',
        f'metadata.labels[{PREFIX}audit]: Invalid value: "": {level}',
        f'metadata.labels[{PREFIX}warn]: Invalid value: "strict": {level}',
        f'metadata.labels[{PREFIX}warn-version]: Invalid value: "v2.1": {version}',
    ]


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("latest", LATEST),
        ("v1.0", PolicyVersion(0)),
        ("v1.37", PolicyVersion(37)),
        ("v1.9223372036854775807", PolicyVersion(2**63 - 1)),
        ("v1.9223372036854775808", None),
        ("v1." + "9" * 5000, None),
        ("v1.01", None),
        ("v1.", None),
        ("v1.3\n", None),
        ("v1.٣", None),
        ("", None),
    ],
)
def test_versions_are_read_as_kubernetes_reads_them(
    text: str, version: PolicyVersion | None
) -> None:
    assert parse_version(text) == version


# --- checks ---------------------------------------------------------------------------------------

# What the restricted level demands; tests change one thing of it.
GOOD: dict[str, Any] = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "runAsNonRoot": True,
    "seccompProfile": {"type": "RuntimeDefault"},
}


def container(name: str = "c", *, tree: Any = None, **security: Any) -> dict[str, Any]:
    return {"name": name, "image": "i", "securityContext": GOOD | security, **(tree or {})}


def pod(*containers: Any, annotations: Any = None, **spec: Any) -> EvaluatedPod:
    metadata = {"annotations": annotations or {}}
    return EvaluatedPod(
        {"metadata": metadata, "spec": {"containers": list(containers) or [container()], **spec}}
    )


def violations(level: Level, minor: int | None, subject: EvaluatedPod) -> str:
    return str(PodEvaluator().evaluate(LevelVersion(level, PolicyVersion(minor)), subject))


APPARMOR = "container.apparmor.security.beta.kubernetes.io"
SECCOMP = "seccomp.security.alpha.kubernetes.io"
UNCONFINED = {"type": "Unconfined"}

BASELINE: list[tuple[int, EvaluatedPod, str]] = [
    (
        NEWEST,
        pod(container(appArmorProfile=UNCONFINED), securityContext={"appArmorProfile": UNCONFINED}),
        (
            "forbidden AppArmor profile "
            '(pod and container "c" must not set AppArmor profile type to "Unconfined")'
        ),
    ),
    (
        NEWEST,
        pod(annotations={f"{APPARMOR}/b": "x", f"{APPARMOR}/a": "unconfined", f"{APPARMOR}/c": ""}),
        (
            "forbidden AppArmor profiles (annotations must not set AppArmor profile type to "
            f'"{APPARMOR}/a="unconfined"", "{APPARMOR}/b="x"")'
        ),
    ),
    (
        NEWEST,
        pod(
            container("a", capabilities={"add": ["SYS_ADMIN", "CHOWN"]}),
            container("b", capabilities={"add": ["NET_RAW"]}),
        ),
        (
            'non-default capabilities (containers "a", "b" must not include "NET_RAW", '
            '"SYS_ADMIN" in securityContext.capabilities.add)'
        ),
    ),
    (
        NEWEST,
        pod(hostNetwork=True, hostPID=True, hostIPC=True),
        "host namespaces (hostNetwork=true, hostPID=true, hostIPC=true)",
    ),
    (
        NEWEST,
        pod(volumes=[{"name": "v", "hostPath": {}}, {"name": "w", "emptyDir": {}}]),
        'hostPath volumes (volume "v")',
    ),
    (
        NEWEST,
        pod(container(tree={"ports": [{"hostPort": 8080}, {"hostPort": 10}, {"hostPort": 0}]})),
        'hostPort (container "c" uses hostPorts 10, 8080)',
    ),
    (
        NEWEST,
        pod(
            container("b", tree={"livenessProbe": {"httpGet": {"host": "h"}}}),
            container("a", tree={"lifecycle": {"preStop": {"tcpSocket": {"host": "g"}}}}),
        ),
        'probe or lifecycle host (containers "a", "b" use probe or lifecycle hosts "g", "h")',
    ),
    (33, pod(container(tree={"livenessProbe": {"httpGet": {"host": "h"}}})), ""),
    (
        NEWEST,
        pod(container(privileged=True), initContainers=[container("i", privileged=True)]),
        'privileged (containers "i", "c" must not set securityContext.privileged=true)',
    ),
    (
        NEWEST,
        pod(ephemeralContainers=[container("e", privileged=True)]),
        'privileged (container "e" must not set securityContext.privileged=true)',
    ),
    (
        NEWEST,
        pod(container(procMount="Unmasked")),
        'procMount (container "c" must not set securityContext.procMount to "Unmasked")',
    ),
    (NEWEST, pod(container(procMount="Unmasked"), hostUsers=False), ""),
    (
        34,
        pod(container(procMount="Unmasked"), hostUsers=False),
        'procMount (container "c" must not set securityContext.procMount to "Unmasked")',
    ),
    (
        NEWEST,
        pod(
            container(seLinuxOptions={"user": "u", "role": "r", "level": "s0"}),
            securityContext={"seLinuxOptions": {"type": "x"}},
        ),
        (
            'seLinuxOptions (pod and container "c" set forbidden securityContext.seLinuxOptions: '
            'type "x"; user may not be set; role may not be set)'
        ),
    ),
    (31, pod(container(seLinuxOptions={"type": "container_engine_t"})), ""),
    (
        30,
        pod(container(seLinuxOptions={"type": "container_engine_t"})),
        (
            'seLinuxOptions (container "c" set forbidden securityContext.seLinuxOptions: '
            'type "container_engine_t")'
        ),
    ),
    (
        19,
        pod(container(seccompProfile=UNCONFINED), securityContext={"seccompProfile": UNCONFINED}),
        (
            'seccompProfile (pod and container "c" must not set '
            'securityContext.seccompProfile.type to "Unconfined")'
        ),
    ),
    (
        18,
        pod(annotations={f"{SECCOMP}/pod": "x", f"container.{SECCOMP}/c": "unconfined"}),
        (
            f'seccompProfile (forbidden annotations container.{SECCOMP}/c="unconfined", '
            f'{SECCOMP}/pod="x")'
        ),
    ),
    (19, pod(annotations={f"{SECCOMP}/pod": "x"}), ""),
    (
        NEWEST,
        pod(
            securityContext={
                "sysctls": [
                    {"name": "kernel.msgmax"},
                    {"name": "net.ipv4.tcp_rmem"},
                    {"name": "a.b"},
                ]
            }
        ),
        "forbidden sysctls (kernel.msgmax, a.b)",
    ),
    (
        NEWEST,
        pod(
            container(windowsOptions={"hostProcess": True}),
            securityContext={"windowsOptions": {"hostProcess": True}},
        ),
        (
            'hostProcess (pod and container "c" must not set '
            "securityContext.windowsOptions.hostProcess=true)"
        ),
    ),
]


@pytest.mark.parametrize(("minor", "subject", "expected"), BASELINE)
def test_the_baseline_level_forbids(minor: int, subject: EvaluatedPod, expected: str) -> None:
    assert violations(Level.BASELINE, minor, subject) == expected
    assert violations(Level.PRIVILEGED, minor, subject) == ""


ALL_SYSCTLS = {
    26: "net.ipv4.ip_local_reserved_ports",
    28: "net.ipv4.tcp_keepalive_time",
    31: "net.ipv4.tcp_wmem",
    36: "net.ipv4.tcp_notsent_lowat",
}


@pytest.mark.parametrize(("minor", "name"), ALL_SYSCTLS.items())
def test_sysctls_are_allowed_from_the_version_on_that_calls_them_safe(
    minor: int, name: str
) -> None:
    subject = pod(securityContext={"sysctls": [{"name": name}]})
    assert violations(Level.BASELINE, minor, subject) == f"forbidden sysctls ({name})"
    assert violations(Level.BASELINE, minor + 1, subject) == ""


RESTRICTED: list[tuple[int, EvaluatedPod, str]] = [
    (NEWEST, pod(), ""),
    (
        8,
        pod(container(allowPrivilegeEscalation=None)),
        (
            'allowPrivilegeEscalation != false (container "c" must set '
            "securityContext.allowPrivilegeEscalation=false)"
        ),
    ),
    (7, pod(container(allowPrivilegeEscalation=None)), ""),
    (
        NEWEST,
        pod(
            container("a", capabilities=None),
            container("b", capabilities={"drop": ["NET_RAW", "ALL"], "add": ["CHOWN"]}),
            container("d", capabilities={"drop": ["ALL"], "add": ["NET_BIND_SERVICE"]}),
        ),
        (
            'unrestricted capabilities (container "a" must set '
            'securityContext.capabilities.drop=["ALL"]; container "b" must not include "CHOWN" in '
            "securityContext.capabilities.add)"
        ),
    ),
    (
        NEWEST,
        pod(
            volumes=[
                {"name": "v", "hostPath": {}},
                {"name": "w", "nfs": {}},
                {"name": "x"},
                {"name": "y", "csi": {}},
            ]
        ),
        (
            'restricted volume types (volumes "v", "w", "x" use restricted volume types '
            '"hostPath", "nfs", "unknown")'
        ),
    ),
    (
        NEWEST,
        pod(container(runAsNonRoot=False), securityContext={"runAsNonRoot": False}),
        (
            'runAsNonRoot != true (pod and container "c" must not set '
            "securityContext.runAsNonRoot=false)"
        ),
    ),
    (
        NEWEST,
        pod(container(runAsNonRoot=None)),
        'runAsNonRoot != true (pod or container "c" must set securityContext.runAsNonRoot=true)',
    ),
    (NEWEST, pod(container(runAsNonRoot=None), securityContext={"runAsNonRoot": True}), ""),
    (NEWEST, pod(container(runAsNonRoot=False, runAsUser=0), hostUsers=False), ""),
    (
        23,
        pod(container(runAsUser=0), securityContext={"runAsUser": 0}),
        'runAsUser=0 (pod and container "c" must not set runAsUser=0)',
    ),
    (22, pod(container(runAsUser=0)), ""),
    (
        NEWEST,
        pod(container("a", seccompProfile=None), container("b")),
        (
            'seccompProfile (pod or container "a" must set securityContext.seccompProfile.type to '
            '"RuntimeDefault" or "Localhost")'
        ),
    ),
    (
        NEWEST,
        pod(container(seccompProfile=UNCONFINED)),
        (
            'seccompProfile (container "c" must not set securityContext.seccompProfile.type to '
            '"Unconfined")'
        ),
    ),
    # What a user namespace relaxes, the restricted level keeps for /proc.
    (
        NEWEST,
        pod(container(procMount="Unmasked"), hostUsers=False),
        'procMount (container "c" must not set securityContext.procMount to "Unmasked")',
    ),
]


@pytest.mark.parametrize(("minor", "subject", "expected"), RESTRICTED)
def test_the_restricted_level_forbids(minor: int, subject: EvaluatedPod, expected: str) -> None:
    assert violations(Level.RESTRICTED, minor, subject) == expected


def test_windows_pods_need_no_fields_that_windows_lacks() -> None:
    bare = {"name": "c", "securityContext": {"runAsNonRoot": True}}
    subject = pod(bare, os={"name": "windows"})
    assert violations(Level.RESTRICTED, 25, subject) == ""
    found = PodEvaluator().evaluate(LevelVersion(Level.RESTRICTED, PolicyVersion(24)), subject)
    assert found.reasons == (
        "allowPrivilegeEscalation != false, unrestricted capabilities, seccompProfile"
    )


def test_versions_beyond_the_newest_count_as_the_newest() -> None:
    subject = pod(securityContext={"sysctls": [{"name": "net.ipv4.tcp_notsent_lowat"}]})
    wanted = LevelVersion(Level.BASELINE, PolicyVersion(99))
    assert not PodEvaluator().evaluate(wanted, subject)
    assert PodEvaluator(36).evaluate(wanted, subject)  # as an emulated server of that version
    assert PodEvaluator(36).evaluate(LevelVersion(Level.BASELINE), subject)


def test_a_container_cannot_hide_behind_another_of_its_name() -> None:
    twins = [container("c", privileged=True, procMount="Unmasked"), container("c")]
    found = violations(Level.BASELINE, NEWEST, pod(*twins))
    assert found.startswith('privileged (container "c"')
    assert "procMount" in found
    volumes = [{"name": "v", "nfs": {}}, {"name": "v", "csi": {}}]
    assert "nfs" in violations(Level.RESTRICTED, NEWEST, pod(volumes=volumes))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(
        ["securityContext", "capabilities", "add", "drop", "seccompProfile", "type", "ports",
         "hostPort", "volumes", "hostPath", "sysctls", "name", "os", "containers", "lifecycle",
         "preStop", "httpGet", "host", "seLinuxOptions", "appArmorProfile", "runAsUser"]), inner),
    max_leaves=12,
)  # fmt: skip


@settings(max_examples=150)
@given(JSON, JSON, st.integers(0, 40))
def test_no_json_makes_an_evaluation_fail(spec: Any, first: Any, minor: int) -> None:
    for tree in (spec, {"spec": spec}, {"spec": {"containers": [first, spec], "volumes": spec}}):
        for level in Level:
            assert isinstance(violations(level, minor, EvaluatedPod(tree)), str)


# --- configuration --------------------------------------------------------------------------------


def configured(plugins: Any, files: dict[str, bytes] | None = None, **head: str) -> Any:
    def read(name: str) -> bytes:
        if name not in (files or {}):
            raise FileNotFoundError(f"no {name}")
        return (files or {})[name]

    kind = {"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AdmissionConfiguration"}
    data = json.dumps(kind | head | {"plugins": plugins}).encode()
    return read_admission_configuration(data, "file", read)


def configuration(**content: Any) -> dict[str, Any]:
    kind = {
        "apiVersion": "pod-security.admission.config.k8s.io/v1",
        "kind": "PodSecurityConfiguration",
    }
    return kind | content


def test_a_configuration_has_defaults_and_exemptions() -> None:
    content = configuration(
        defaults={"enforce": "baseline", "enforce-version": "v1.30", "warn": "restricted"},
        exemptions={"usernames": ["ann"], "namespaces": ["n"], "runtimeClasses": ["r"]},
    )
    for plugin, files in (
        ({"configuration": content}, {}),
        ({"path": "other"}, {"other": json.dumps(content).encode()}),
    ):
        found = configured([{"name": "PodSecurity", **plugin}], files)
        assert shown(found.defaults) == f"enforce=baseline:v1.30 audit={P} warn=restricted:latest"
        exempt = (found.exempt_users, found.exempt_namespaces, found.exempt_runtime_classes)
        assert exempt == ({"ann"}, {"n"}, {"r"})
    assert configured([]).defaults == PRIVILEGED_POLICY


@pytest.mark.parametrize(
    ("plugins", "fault"),
    [
        ([{"name": "Priority"}], "file: plugins[0]: 'Priority' takes no configuration"),
        ([{"name": "PodSecurity"}] * 2, "file: plugins[1]: PodSecurity is configured already"),
        ([{"name": "PodSecurity", "path": "gone"}], "file: plugins[0].path: no gone"),
        (
            [{"name": "PodSecurity", "configuration": {"kind": "X", "apiVersion": "v1"}}],
            "must be a pod-security.admission.config.k8s.io/v1 PodSecurityConfiguration, is a v1 X",
        ),
        (
            [{"name": "PodSecurity", "configuration": configuration(defaults={"enforce": "x"})}],
            'defaults.enforce: Invalid value: "x": must be one of privileged, baseline, restricted',
        ),
        (
            [
                {
                    "name": "PodSecurity",
                    "configuration": configuration(defaults={"audit-version": "1"}),
                }
            ],
            'defaults.audit-version: Invalid value: "1": must be "latest" or "v1.x"',
        ),
        (
            [
                {
                    "name": "PodSecurity",
                    "configuration": configuration(
                        exemptions={"namespaces": ["a", "a", "B"], "usernames": [""]}
                    ),
                }
            ],
            'exemptions.namespaces[1]: Duplicate value: "a"; exemptions.namespaces[2]: Invalid',
        ),
        (
            [{"name": "PodSecurity", "configuration": configuration(default={})}],
            "plugins[0].configuration: Object contains unknown field `default`",
        ),
        ("x", "Expected `array | null`"),
    ],
)
def test_a_configuration_that_cannot_be_used_is_refused(plugins: Any, fault: str) -> None:
    with pytest.raises(PodSecurityConfigurationError) as refused:
        configured(plugins)
    assert fault in str(refused.value)


def test_another_kind_of_file_is_refused() -> None:
    with pytest.raises(PodSecurityConfigurationError, match="must be a apiserver"):
        configured([], kind="Policy")
    with pytest.raises(PodSecurityConfigurationError):
        read_admission_configuration(b"{", "file", lambda _: b"")
