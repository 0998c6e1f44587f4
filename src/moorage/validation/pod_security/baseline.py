"""Checks of the baseline level: what gives a pod known ways to become root on its node."""

from __future__ import annotations

from typing import Any, Final

from moorage.kit.go_quote import go_quote
from moorage.validation.pod_security.evaluated_pod import (
    EvaluatedContainer,
    EvaluatedPod,
    Tree,
    Violation,
    containers_text,
    plural,
    quoted,
    setters_text,
    texts_at,
    tree_at,
    trees_at,
)

CAPABILITIES: Final = frozenset(
    {
        "AUDIT_WRITE",
        "CHOWN",
        "DAC_OVERRIDE",
        "FOWNER",
        "FSETID",
        "KILL",
        "MKNOD",
        "NET_BIND_SERVICE",
        "SETFCAP",
        "SETGID",
        "SETPCAP",
        "SETUID",
        "SYS_CHROOT",
    }
)

SELINUX_TYPES: Final = frozenset({"", "container_t", "container_init_t", "container_kvm_t"})
SELINUX_TYPES_1_31: Final = SELINUX_TYPES | {"container_engine_t"}

SYSCTLS: Final = frozenset(
    {
        "kernel.shm_rmid_forced",
        "net.ipv4.ip_local_port_range",
        "net.ipv4.tcp_syncookies",
        "net.ipv4.ping_group_range",
        "net.ipv4.ip_unprivileged_port_start",
    }
)
SYSCTLS_1_27: Final = SYSCTLS | {"net.ipv4.ip_local_reserved_ports"}
SYSCTLS_1_29: Final = SYSCTLS_1_27 | {
    "net.ipv4.tcp_keepalive_time",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_keepalive_intvl",
    "net.ipv4.tcp_keepalive_probes",
}
SYSCTLS_1_32: Final = SYSCTLS_1_29 | {"net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"}
SYSCTLS_1_37: Final = SYSCTLS_1_32 | {
    "net.ipv4.tcp_slow_start_after_idle",
    "net.ipv4.tcp_notsent_lowat",
}

# of seccomp and AppArmor profiles
PROFILE_TYPES: Final = frozenset({"RuntimeDefault", "Localhost"})

APPARMOR_ANNOTATION: Final = "container.apparmor.security.beta.kubernetes.io/"
SECCOMP_POD_ANNOTATION: Final = "seccomp.security.alpha.kubernetes.io/pod"
SECCOMP_CONTAINER_ANNOTATION: Final = "container.seccomp.security.alpha.kubernetes.io/"

_PROBES: Final = ("livenessProbe", "readinessProbe", "startupProbe")
_HANDLERS: Final = ("postStart", "preStop")


def app_armor_profile(pod: EvaluatedPod) -> Violation | None:
    """Forbid AppArmor profiles other than the runtime's own and those of the node."""
    pod_type = _profile_type(pod.security, "appArmorProfile")
    types = pod.each(lambda c: _profile_type(c.security, "appArmorProfile"))
    bad = [name for name, type_ in types if not _is_profile(type_)]
    values = _bad_types([pod_type, *(type_ for _, type_ in types)])
    annotations = sorted(
        f"{key}={go_quote(value)}"
        for key, value in pod.annotations.items()
        if key.startswith(APPARMOR_ANNOTATION)
        and value not in ("", "runtime/default")
        and not value.startswith("localhost/")
    )
    setters = [setters_text(not _is_profile(pod_type), bad)] if values else []
    if annotations:
        setters.append(plural(len(annotations), "annotation", "annotations"))
    if not setters:
        return None
    shown = [*values, *annotations]
    reason = plural(len(shown), "forbidden AppArmor profile", "forbidden AppArmor profiles")
    detail = f"{' and '.join(setters)} must not set AppArmor profile type to {quoted(shown)}"
    return Violation(reason, detail)


def capabilities(pod: EvaluatedPod) -> Violation | None:
    """Forbid capabilities beyond those that container runtimes give by default."""

    def beyond(container: EvaluatedContainer) -> list[str]:
        added = texts_at(tree_at(container.security, "capabilities"), "add")
        return [each for each in added if each not in CAPABILITIES]

    bad, added = pod.found(beyond)
    if not bad:
        return None
    setters, shown = containers_text(bad), quoted(added)
    detail = f"{setters} must not include {shown} in securityContext.capabilities.add"
    return Violation("non-default capabilities", detail)


def host_namespaces(pod: EvaluatedPod) -> Violation | None:
    """Forbid the namespaces of the node."""
    names = ("hostNetwork", "hostPID", "hostIPC")
    found = [f"{name}=true" for name in names if pod.spec.get(name) is True]
    return Violation("host namespaces", ", ".join(found)) if found else None


def host_path_volumes(pod: EvaluatedPod) -> Violation | None:
    """Forbid volumes of paths on the node."""
    volumes = trees_at(pod.spec, "volumes")
    found = [str(v.get("name", "")) for v in volumes if v.get("hostPath") is not None]
    if not found:
        return None
    noun = plural(len(found), "volume", "volumes")
    return Violation("hostPath volumes", f"{noun} {quoted(found)}")


def host_ports(pod: EvaluatedPod) -> Violation | None:
    """Forbid ports of the node."""
    bad, shown = pod.found(
        lambda c: [str(p["hostPort"]) for p in trees_at(c.tree, "ports") if p.get("hostPort")]
    )
    if not bad:
        return None
    verb, noun = plural(len(bad), "uses", "use"), plural(len(shown), "hostPort", "hostPorts")
    return Violation("hostPort", f"{containers_text(bad)} {verb} {noun} {', '.join(shown)}")


def host_probes(pod: EvaluatedPod) -> Violation | None:
    """Forbid probes and lifecycle handlers that connect to another host than the pod."""
    names, shown = pod.found(lambda c: _hosts(c.tree))
    if not names:
        return None
    bad = sorted(set(names))
    words = "probe or lifecycle host"
    verb, noun = plural(len(bad), "uses", "use"), plural(len(shown), words, f"{words}s")
    return Violation(words, f"{containers_text(bad)} {verb} {noun} {quoted(shown)}")


def _hosts(container: Tree) -> list[str]:
    handlers = [tree_at(container, name) for name in _PROBES if name in container]
    if "lifecycle" in container:
        handlers += [tree_at(container, "lifecycle", name) for name in _HANDLERS]
    found = [
        tree_at(handler, action).get("host")
        for handler in handlers
        for action in ("httpGet", "tcpSocket")
    ]
    return [host for host in found if isinstance(host, str) and host]


def privileged(pod: EvaluatedPod) -> Violation | None:
    """Forbid privileged containers."""
    bad = pod.names(lambda c: c.security.get("privileged") is True)
    if not bad:
        return None
    detail = f"{containers_text(bad)} must not set securityContext.privileged=true"
    return Violation("privileged", detail)


def proc_mount(pod: EvaluatedPod) -> Violation | None:
    """Forbid /proc without its masks."""

    def unmasked(container: EvaluatedContainer) -> list[str]:
        mount = container.security.get("procMount")
        return [] if mount in (None, "Default") else [str(mount)]

    bad, mounts = pod.found(unmasked)
    if not bad:
        return None
    setters = containers_text(bad)
    detail = f"{setters} must not set securityContext.procMount to {quoted(mounts)}"
    return Violation("procMount", detail)


def proc_mount_1_35(pod: EvaluatedPod) -> Violation | None:
    """Forbid /proc without its masks, but in a user namespace."""
    return None if pod.has_user_namespace else proc_mount(pod)


def selinux_options(pod: EvaluatedPod) -> Violation | None:
    """Forbid SELinux users, roles, and types but those of containers."""
    return _selinux(pod, SELINUX_TYPES)


def selinux_options_1_31(pod: EvaluatedPod) -> Violation | None:
    """Forbid the same, but for one more type of containers."""
    return _selinux(pod, SELINUX_TYPES_1_31)


def _selinux(pod: EvaluatedPod, allowed: frozenset[str]) -> Violation | None:
    def options(security: Tree) -> Tree:
        return tree_at(security, "seLinuxOptions")

    def is_bad(found: Tree) -> bool:
        is_type = str(found.get("type") or "") in allowed
        return not is_type or bool(found.get("user")) or bool(found.get("role"))

    is_pod = is_bad(options(pod.security))
    bad = pod.names(lambda c: is_bad(options(c.security)))
    if not is_pod and not bad:
        return None
    given = [options(pod.security), *(options(c.security) for c in pod.containers)]
    types = sorted({str(each.get("type") or "") for each in given} - allowed)
    facts = [f"{plural(len(types), 'type', 'types')} {quoted(types)}"] if types else []
    facts += [f"{name} may not be set" for name in ("user", "role") if _any(given, name)]
    setters = setters_text(is_pod, bad)
    detail = f"{setters} set forbidden securityContext.seLinuxOptions: {'; '.join(facts)}"
    return Violation("seLinuxOptions", detail)


def _any(trees: list[Tree], name: str) -> bool:
    return any(tree.get(name) for tree in trees)


def seccomp_profile_1_0(pod: EvaluatedPod) -> Violation | None:
    """Forbid seccomp annotations but the runtime's own profile and those of the node."""
    keys = [SECCOMP_POD_ANNOTATION]
    keys += [SECCOMP_CONTAINER_ANNOTATION + c.name for c in pod.containers]
    given = ((key, pod.annotations.get(key)) for key in dict.fromkeys(keys))
    found = sorted(
        f"{key}={go_quote(value)}"
        for key, value in given
        if value is not None
        and value not in ("runtime/default", "docker/default")
        and not value.startswith("localhost/")
    )
    if not found:
        return None
    noun = plural(len(found), "annotation", "annotations")
    return Violation("seccompProfile", f"forbidden {noun} {', '.join(found)}")


def seccomp_profile_1_19(pod: EvaluatedPod) -> Violation | None:
    """Forbid seccomp profiles but the runtime's own and those of the node."""
    pod_type = _profile_type(pod.security, "seccompProfile")
    types = pod.each(lambda c: _profile_type(c.security, "seccompProfile"))
    bad = [name for name, type_ in types if not _is_profile(type_)]
    if _is_profile(pod_type) and not bad:
        return None
    values = _bad_types([pod_type, *(type_ for _, type_ in types)])
    detail = (
        f"{setters_text(not _is_profile(pod_type), bad)} must not set "
        f"securityContext.seccompProfile.type to {quoted(values)}"
    )
    return Violation("seccompProfile", detail)


def _profile_type(security: Tree, name: str) -> str | None:
    """Return the type of a profile; None if there is no profile."""
    profile: Any = security.get(name)
    return None if profile is None else str(tree_at(profile).get("type") or "")


def _is_profile(type_: str | None) -> bool:
    return type_ is None or type_ in PROFILE_TYPES


def _bad_types(types: list[str | None]) -> list[str]:
    return sorted({type_ for type_ in types if type_ is not None} - PROFILE_TYPES)


def sysctls(pod: EvaluatedPod) -> Violation | None:
    """Forbid kernel parameters that other pods would feel."""
    return _sysctls(pod, SYSCTLS)


def sysctls_1_27(pod: EvaluatedPod) -> Violation | None:
    """Forbid the same, but for reserved ports."""
    return _sysctls(pod, SYSCTLS_1_27)


def sysctls_1_29(pod: EvaluatedPod) -> Violation | None:
    """Forbid the same, but for times of TCP connections."""
    return _sysctls(pod, SYSCTLS_1_29)


def sysctls_1_32(pod: EvaluatedPod) -> Violation | None:
    """Forbid the same, but for buffers of TCP connections."""
    return _sysctls(pod, SYSCTLS_1_32)


def sysctls_1_37(pod: EvaluatedPod) -> Violation | None:
    """Forbid the same, but for two more parameters of TCP connections."""
    return _sysctls(pod, SYSCTLS_1_37)


def _sysctls(pod: EvaluatedPod, allowed: frozenset[str]) -> Violation | None:
    names = (str(each.get("name", "")) for each in trees_at(pod.security, "sysctls"))
    found = [name for name in names if name not in allowed]
    return Violation("forbidden sysctls", ", ".join(found)) if found else None


def windows_host_process(pod: EvaluatedPod) -> Violation | None:
    """Forbid Windows containers that run as processes of the node."""
    is_pod = _is_host_process(pod.security)
    bad = pod.names(_is_host_process_container)
    if not is_pod and not bad:
        return None
    setters = setters_text(is_pod, bad)
    detail = f"{setters} must not set securityContext.windowsOptions.hostProcess=true"
    return Violation("hostProcess", detail)


def _is_host_process(security: Tree) -> bool:
    return tree_at(security, "windowsOptions").get("hostProcess") is True


def _is_host_process_container(container: EvaluatedContainer) -> bool:
    return _is_host_process(container.security)
