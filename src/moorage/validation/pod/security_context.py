"""Rules of security contexts, of Linux and of Windows."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from moorage.api import names
from moorage.api.core.pod import Container, PodSpec
from moorage.api.field_path import Path
from moorage.api.names import byte_length
from moorage.validation.errors import (
    ErrorList,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    required,
    too_long,
)
from moorage.validation.field_rules import each, each_invalid
from moorage.validation.go_layout import internal_form
from moorage.validation.pod.field_rules import Tree, descending_path, one_of, user_id

PROFILE_TYPES = ("Localhost", "RuntimeDefault", "Unconfined")
PROC_MOUNTS = ("Default", "Unmasked")
PROFILE_MAX_BYTES = 4095
SYSCTL_MAX = 253

_SEGMENT = "[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_SYSCTL = rf"({_SEGMENT}[\./])*{_SEGMENT}"
_is_sysctl = re.compile(_SYSCTL).fullmatch

_CHANGE_POLICIES = {
    "fsGroupChangePolicy": ("Always", "OnRootMismatch"),
    "supplementalGroupsPolicy": ("Merge", "Strict"),
    "seLinuxChangePolicy": ("MountOption", "Recursive"),
}
_IPC_SYSCTLS = frozenset(
    (
        "kernel.sem",
        "kernel.shmall",
        "kernel.shmmax",
        "kernel.shmmni",
        "kernel.shm_rmid_forced",
        "kernel.shm",
        "kernel.msgmax",
        "kernel.msgmnb",
        "kernel.msgmni",
        "kernel.msg",
    )
)


def validate_container_security(context: Tree | None, spec: PodSpec, path: Path) -> ErrorList:
    """Validate the security context of a container."""
    if context is None:
        return []
    found = user_id(context.get("runAsUser"), path.child("runAsUser"))
    found += user_id(context.get("runAsGroup"), path.child("runAsGroup"))
    proc_mount, place = context.get("procMount"), path.child("procMount")
    found += one_of(proc_mount, PROC_MOUNTS, place)
    if proc_mount == "Unmasked" and spec.host_users is not False:
        found.append(invalid(place, proc_mount, "`hostUsers` must be false to use `Unmasked`"))
    found += _validate_profiles(context, path)
    return found + _validate_escalation(context, path)


def _validate_escalation(context: Tree, path: Path) -> ErrorList:
    """Validate that a container without privilege escalation is not privileged."""
    if context.get("allowPrivilegeEscalation") is not False:
        return []
    found: ErrorList = []
    shown = internal_form(context, "SecurityContext")
    prefix = "cannot set `allowPrivilegeEscalation` to false and"
    if context.get("privileged"):
        found.append(invalid(path, shown, f"{prefix} `privileged` to true"))
    if "CAP_SYS_ADMIN" in context.get("capabilities", {}).get("add", ()):
        found.append(invalid(path, shown, f"{prefix} `capabilities.Add` CAP_SYS_ADMIN"))
    return found


def validate_pod_security(context: Tree | None, spec: PodSpec, path: Path) -> ErrorList:
    """Validate the security context of a pod."""
    if context is None:
        return []
    found: ErrorList = []
    for name in ("fsGroup", "runAsUser", "runAsGroup"):
        found += user_id(context.get(name), path.child(name))
    found += each(context.get("supplementalGroups", ()), user_id, path.child("supplementalGroups"))
    found += _validate_sysctls(context.get("sysctls", ()), spec, path.child("sysctls"))
    for name, policies in _CHANGE_POLICIES.items():
        found += one_of(context.get(name), policies, path.child(name))
    return found + _validate_profiles(context, path)


# --- profiles -----------------------------------------------------------------------------


def _validate_profiles(context: Tree, path: Path) -> ErrorList:
    found: ErrorList = []
    if "seccompProfile" in context:
        found += _validate_seccomp(context["seccompProfile"], path.child("seccompProfile"))
    if "windowsOptions" in context:
        found += validate_windows_options(context["windowsOptions"], path.child("windowsOptions"))
    if "appArmorProfile" in context:
        found += validate_app_armor(context["appArmorProfile"], path.child("appArmorProfile"))
    return found


def _validate_profile_type(profile: Tree, owner: str, path: Path) -> ErrorList:
    kind, place = profile.get("type", ""), path.child("type")
    if not kind:
        return [required(place, f"type is required when {owner} is set")]
    return [] if kind in PROFILE_TYPES else [not_supported(place, kind, PROFILE_TYPES)]


def _validate_seccomp(profile: Tree, path: Path) -> ErrorList:
    found = _validate_profile_type(profile, "seccompProfile", path)
    file, place = profile.get("localhostProfile"), path.child("localhostProfile")
    if profile.get("type") != "Localhost":
        if file is not None:
            detail = "can only be set when seccomp type is Localhost"
            found.append(invalid(place, internal_form(profile, "SeccompProfile"), detail))
    elif file is None:
        found.append(required(place, "must be set when seccomp type is Localhost"))
    else:
        found += descending_path(file, place)
    return found


def validate_app_armor(profile: Tree, path: Path) -> ErrorList:
    """Validate a profile of AppArmor."""
    kind = profile.get("type", "")
    found = _validate_profile_type(profile, "appArmorProfile", path)
    file, place = profile.get("localhostProfile"), path.child("localhostProfile")
    if found:
        return found
    if kind != "Localhost":
        if file is not None:
            detail = "can only be set when AppArmor type is Localhost"
            found.append(invalid(place, file, detail))
        return found
    missing = required(place, "must be set when AppArmor type is Localhost")
    if file is None:
        return [missing]
    if file != file.strip():
        found.append(invalid(place, file, "must not be padded with whitespace"))
    elif not file:
        found.append(missing)
    if byte_length(file) > PROFILE_MAX_BYTES:
        found.append(too_long(place, PROFILE_MAX_BYTES))
    return found


# --- sysctls ------------------------------------------------------------------------------


def _validate_sysctls(sysctls: Any, spec: PodSpec, path: Path) -> ErrorList:
    found: ErrorList = []
    taken: set[str] = set()
    for position, sysctl in enumerate(sysctls):
        name, place = sysctl.get("name", ""), path.index(position).child("name")
        if not name:
            found.append(required(place))
        elif byte_length(name) > SYSCTL_MAX or not _is_sysctl(name):
            detail = f"must have at most {SYSCTL_MAX} characters and match regex ^{_SYSCTL}$"
            found.append(invalid(place, name, detail))
        elif name in taken:
            found.append(duplicate(place, name))
        found += _validate_host_sysctl(name, spec, place)
        taken.add(name)
    return found


def _validate_host_sysctl(name: str, spec: PodSpec, path: Path) -> ErrorList:
    """Validate that a pod sets no sysctl of a namespace that it shares with its node."""
    namespace = _sysctl_namespace(name)
    if spec.host_network and namespace == "net":
        return [invalid(path, name, "may not be specified when 'hostNetwork' is true")]
    if spec.host_ipc and namespace == "ipc":
        return [invalid(path, name, "may not be specified when 'hostIPC' is true")]
    return []


def _sysctl_namespace(name: str) -> str:
    """Return the kernel namespace of a sysctl, or ""."""
    dotted = _with_dots(name).partition("*")[0]
    if dotted.startswith("net."):
        return "net"
    return "ipc" if dotted in _IPC_SYSCTLS or dotted.startswith("fs.mqueue.") else ""


def _with_dots(name: str) -> str:
    """Return a sysctl name with dots as separators: `net/ipv4/a.b` is `net.ipv4.a/b`."""
    first = re.search(r"[./]", name)
    if first is None or first[0] == ".":
        return name
    return name.translate({ord("."): "/", ord("/"): "."})


# --- Windows ------------------------------------------------------------------------------

LINUX, WINDOWS = "linux", "windows"

CREDENTIAL_MAX_KIB = 64
DOMAIN_MAX = 256
USER_MAX = 104

_has_control = re.compile(r"[\x00-\x1f\x7f]").search
_is_netbios = re.compile(r'[^\\/:*?"<>|.][^\\/:*?"<>|]{0,14}').fullmatch
_LABEL = "[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?"
_is_domain = re.compile(rf"{_LABEL}(?:\.{_LABEL})*").fullmatch
_has_bad_character = re.compile(r'["/\\:;|=,+*?<>@\[\]]').search
_is_dots_and_spaces = re.compile(r"[. ]+").fullmatch

_NOT_WINDOWS = "cannot be set for a windows pod"
_POD_FIELDS = (
    "appArmorProfile",
    "seLinuxOptions",
    "seccompProfile",
    "fsGroup",
    "fsGroupChangePolicy",
    "sysctls",
    "runAsUser",
    "runAsGroup",
    "supplementalGroups",
    "supplementalGroupsPolicy",
    "seLinuxChangePolicy",
)
_CONTAINER_FIELDS = (
    "appArmorProfile",
    "seLinuxOptions",
    "seccompProfile",
    "capabilities",
    "readOnlyRootFilesystem",
    "privileged",
    "allowPrivilegeEscalation",
    "procMount",
    "runAsUser",
    "runAsGroup",
)

Containers = Iterable[tuple[Container, Path]]  # with their places


def validate_os(spec: PodSpec, containers: Containers, path: Path) -> ErrorList:
    """Validate the operating system of a pod, and that no field is set that it does not have."""
    if spec.os is None:
        return []
    name = spec.os.get("name", "")
    if not name:
        return [required(path.child("os", "name"))]
    match name:
        case "linux":
            return _validate_linux(spec, containers, path)
        case "windows":
            return _validate_windows(spec, containers, path)
    return [not_supported(path.child("os"), name, (LINUX, WINDOWS))]


def _validate_linux(spec: PodSpec, containers: Containers, path: Path) -> ErrorList:
    detail = "windows options cannot be set for a linux pod"
    contexts = [(spec.security_context, path), *((c.security_context, p) for c, p in containers)]
    return [
        forbidden(place.child("securityContext", "windowsOptions"), detail)
        for context, place in contexts
        if context is not None and "windowsOptions" in context
    ]


def _validate_windows(spec: PodSpec, containers: Containers, path: Path) -> ErrorList:
    context = spec.security_context or {}
    place = path.child("securityContext")
    found = [forbidden(place.child(n), _NOT_WINDOWS) for n in _POD_FIELDS if n in context]
    for name, is_set in (
        ("hostUsers", spec.host_users is not None),
        ("hostPID", spec.host_pid),
        ("hostIPC", spec.host_ipc),
        ("shareProcessNamespace", spec.share_process_namespace is not None),
    ):
        if is_set:
            found.append(forbidden(path.child(name), _NOT_WINDOWS))
    for container, container_path in containers:
        context = container.security_context or {}
        place = container_path.child("securityContext")
        found += [
            forbidden(place.child(n), _NOT_WINDOWS) for n in _CONTAINER_FIELDS if n in context
        ]
    return found


def validate_host_processes(spec: PodSpec, containers: Containers, path: Path) -> ErrorList:
    """Validate that all containers of a pod are HostProcess containers, or none."""
    whole = (spec.security_context or {}).get("windowsOptions", {}).get("hostProcess")
    found: ErrorList = []
    are_processes = []
    for container, place in containers:
        own = (container.security_context or {}).get("windowsOptions", {}).get("hostProcess")
        if whole is not None and own is not None and whole != own:
            shown = "true" if whole else "false"
            detail = f"pod hostProcess value must be identical if both are specified, was {shown}"
            where = place.child("securityContext", "windowsOptions", "hostProcess")
            found.append(invalid(where, own, detail))
        are_processes.append(bool(whole if own is None else own))
    if not any(are_processes):
        return found
    if not all(are_processes):
        detail = (
            "If pod contains any hostProcess containers then all containers must be HostProcess "
            "containers"
        )
        found.append(invalid(path, "", detail))
    if not spec.host_network:
        detail = "hostNetwork must be true if pod contains any hostProcess containers"
        found.append(invalid(path.child("hostNetwork"), False, detail))
    return found


# --- options ------------------------------------------------------------------------------


def validate_windows_options(options: Tree, path: Path) -> ErrorList:
    """Validate the options of a security context for Windows."""
    found: ErrorList = []
    name = options.get("gmsaCredentialSpecName")
    if name is not None:
        place = path.child("gmsaCredentialSpecName")
        found += each_invalid(place, name, names.dns1123_subdomain(name))
    credential, place = options.get("gmsaCredentialSpec"), path.child("gmsaCredentialSpec")
    if credential == "":
        found.append(invalid(place, credential, "gmsaCredentialSpec cannot be an empty string"))
    elif credential is not None and byte_length(credential) > CREDENTIAL_MAX_KIB * 1024:
        detail = f"gmsaCredentialSpec size must be under {CREDENTIAL_MAX_KIB} KiB"
        found.append(invalid(place, credential, detail))
    user = options.get("runAsUserName")
    if user is not None:
        found += each_invalid(path.child("runAsUserName"), user, _user_faults(user))
    return found


def _user_faults(name: str) -> list[str]:
    r"""Return the error in a user name: [domain "\"] user."""
    if not name:
        return ["runAsUserName cannot be an empty string"]
    if _has_control(name):
        return ["runAsUserName cannot contain control characters"]
    if name.count("\\") > 1:
        return ["runAsUserName cannot contain more than one backslash"]
    domain, backslash, rest = name.partition("\\")
    user = rest if backslash else domain
    found = _domain_faults(domain) if backslash else []
    if not user:
        found.append("runAsUserName's User cannot be empty")
    elif byte_length(user) > USER_MAX:
        found.append(f"runAsUserName's User length must not be longer than {USER_MAX} characters")
    if _is_dots_and_spaces(user):
        found.append("runAsUserName's User cannot contain only periods or spaces")
    if _has_bad_character(user):
        found.append(
            "runAsUserName's User cannot contain the following characters: \"/\\:;|=,+*?<>@[]"
        )
    return found


def _domain_faults(domain: str) -> list[str]:
    found = []
    if byte_length(domain) >= DOMAIN_MAX:
        found.append(f"runAsUserName's Domain length must be under {DOMAIN_MAX} characters")
    if not (_is_netbios(domain) or _is_domain(domain)):
        found.append("runAsUserName's Domain doesn't match the NetBios nor the DNS format")
    return found
