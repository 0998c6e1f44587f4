"""Rules for the operating system of a pod: what only Windows has, and what it does not have."""

from __future__ import annotations

import re
from collections.abc import Iterable

from mooring.api import names
from mooring.api.core.container import Container
from mooring.api.core.pod import PodSpec
from mooring.api.fieldpath import Path
from mooring.api.names import byte_length
from mooring.validation.checks import each_invalid
from mooring.validation.errors import Errors, forbidden, invalid, not_supported, required
from mooring.validation.pod.field_rules import Tree

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


def check_os(spec: PodSpec, containers: Containers, path: Path) -> Errors:
    """Check the operating system that a pod names, and that it asks for nothing that has not."""
    if spec.os is None:
        return []
    name = spec.os.get("name", "")
    if not name:
        return [required(path.child("os", "name"))]
    match name:
        case "linux":
            return _check_linux(spec, containers, path)
        case "windows":
            return _check_windows(spec, containers, path)
    return [not_supported(path.child("os"), name, (LINUX, WINDOWS))]


def _check_linux(spec: PodSpec, containers: Containers, path: Path) -> Errors:
    detail = "windows options cannot be set for a linux pod"
    contexts = [(spec.security_context, path), *((c.security_context, p) for c, p in containers)]
    return [
        forbidden(place.child("securityContext", "windowsOptions"), detail)
        for context, place in contexts
        if context is not None and "windowsOptions" in context
    ]


def _check_windows(spec: PodSpec, containers: Containers, path: Path) -> Errors:
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


def check_host_processes(spec: PodSpec, containers: Containers, path: Path) -> Errors:
    """Check that all containers of a pod are processes of the host, or none is."""
    whole = (spec.security_context or {}).get("windowsOptions", {}).get("hostProcess")
    found: Errors = []
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


# --- options --------------------------------------------------------------------------------------


def check_windows_options(options: Tree, path: Path) -> Errors:
    """Check the options of a security context for Windows."""
    found: Errors = []
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
    r"""Return what is wrong with the name of a user: [domain "\"] user."""
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
