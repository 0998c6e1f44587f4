"""Rules for the rights of a pod and its containers: users, profiles, capabilities, sysctls."""

from __future__ import annotations

import re
from typing import Any

from mooring.api.core.pod import PodSpec
from mooring.api.fieldpath import Path
from mooring.api.names import byte_length
from mooring.validation.errors import (
    Errors,
    duplicate,
    invalid,
    not_supported,
    required,
    too_long,
)
from mooring.validation.pod.field_rules import Tree, choice, descending_path, user_id
from mooring.validation.pod.layout import internal_form
from mooring.validation.pod.windows import check_windows_options

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


def check_container_security(context: Tree | None, spec: PodSpec, path: Path) -> Errors:
    """Check the security context of a container."""
    if context is None:
        return []
    found = user_id(context.get("runAsUser"), path.child("runAsUser"))
    found += user_id(context.get("runAsGroup"), path.child("runAsGroup"))
    proc_mount, place = context.get("procMount"), path.child("procMount")
    found += choice(proc_mount, PROC_MOUNTS, place)
    if proc_mount == "Unmasked" and spec.host_users is not False:
        found.append(invalid(place, proc_mount, "`hostUsers` must be false to use `Unmasked`"))
    found += _check_profiles(context, path)
    return found + _check_escalation(context, path)


def _check_escalation(context: Tree, path: Path) -> Errors:
    """Check that a container that may gain no rights does not start with all of them."""
    if context.get("allowPrivilegeEscalation") is not False:
        return []
    found: Errors = []
    shown = internal_form(context, "SecurityContext")
    prefix = "cannot set `allowPrivilegeEscalation` to false and"
    if context.get("privileged"):
        found.append(invalid(path, shown, f"{prefix} `privileged` to true"))
    if "CAP_SYS_ADMIN" in context.get("capabilities", {}).get("add", ()):
        found.append(invalid(path, shown, f"{prefix} `capabilities.Add` CAP_SYS_ADMIN"))
    return found


def check_pod_security(context: Tree | None, spec: PodSpec, path: Path) -> Errors:
    """Check the security context of a pod."""
    if context is None:
        return []
    found: Errors = []
    for name in ("fsGroup", "runAsUser", "runAsGroup"):
        found += user_id(context.get(name), path.child(name))
    for position, group in enumerate(context.get("supplementalGroups", ())):
        found += user_id(group, path.child("supplementalGroups").index(position))
    found += _check_sysctls(context.get("sysctls", ()), spec, path.child("sysctls"))
    for name, policies in _CHANGE_POLICIES.items():
        found += choice(context.get(name), policies, path.child(name))
    return found + _check_profiles(context, path)


# --- profiles -------------------------------------------------------------------------------------


def _check_profiles(context: Tree, path: Path) -> Errors:
    found: Errors = []
    if "seccompProfile" in context:
        found += _check_seccomp(context["seccompProfile"], path.child("seccompProfile"))
    if "windowsOptions" in context:
        found += check_windows_options(context["windowsOptions"], path.child("windowsOptions"))
    if "appArmorProfile" in context:
        found += _check_app_armor(context["appArmorProfile"], path.child("appArmorProfile"))
    return found


def _check_profile_type(profile: Tree, owner: str, path: Path) -> Errors:
    kind, place = profile.get("type", ""), path.child("type")
    if not kind:
        return [required(place, f"type is required when {owner} is set")]
    return [] if kind in PROFILE_TYPES else [not_supported(place, kind, PROFILE_TYPES)]


def _check_seccomp(profile: Tree, path: Path) -> Errors:
    found = _check_profile_type(profile, "seccompProfile", path)
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


def _check_app_armor(profile: Tree, path: Path) -> Errors:
    kind = profile.get("type", "")
    found = _check_profile_type(profile, "appArmorProfile", path)
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


# --- sysctls --------------------------------------------------------------------------------------


def _check_sysctls(sysctls: Any, spec: PodSpec, path: Path) -> Errors:
    found: Errors = []
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
        found += _check_host_sysctl(name, spec, place)
        taken.add(name)
    return found


def _check_host_sysctl(name: str, spec: PodSpec, path: Path) -> Errors:
    """Check that a pod does not change what it shares with its node."""
    namespace = _sysctl_namespace(name)
    if spec.host_network and namespace == "net":
        return [invalid(path, name, "may not be specified when 'hostNetwork' is true")]
    if spec.host_ipc and namespace == "ipc":
        return [invalid(path, name, "may not be specified when 'hostIPC' is true")]
    return []


def _sysctl_namespace(name: str) -> str:
    """Return which namespace of the kernel has a parameter; nothing if no namespace does."""
    dotted = _with_dots(name).partition("*")[0]
    if dotted.startswith("net."):
        return "net"
    return "ipc" if dotted in _IPC_SYSCTLS or dotted.startswith("fs.mqueue.") else ""


def _with_dots(name: str) -> str:
    """Return a name whose parts are divided by dots: `net/ipv4/a.b` is `net.ipv4.a/b`."""
    first = re.search(r"[./]", name)
    if first is None or first[0] == ".":
        return name
    return name.translate({ord("."): "/", ord("/"): "."})
