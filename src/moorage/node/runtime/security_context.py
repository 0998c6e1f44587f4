"""The effective security context of a container, and what every runtime refuses in it.

A container's own fields override those of its pod, as in Kubernetes. The API server validates them,
but no program relies on another for this: a value of the wrong type is refused here, not ignored.
Each runtime acts on a context or refuses it; `docs/explanation/process-runtime.md` has the table.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct, field

from moorage.api.core import Container, Pod
from moorage.kit.go_quote import go_quote
from moorage.node.errors import ConfigError

ID_MAX: Final = 2**31 - 1
RUNTIME_DEFAULT, UNCONFINED, LOCALHOST = "RuntimeDefault", "Unconfined", "Localhost"
_PROFILES: Final = ("", RUNTIME_DEFAULT, UNCONFINED, LOCALHOST)
ALL: Final = "ALL"
_APPARMOR_SWITCH: Final = "/sys/module/apparmor/parameters/enabled"
# By number: the bits of the kernel's capability sets.
CAPABILITIES: Final = (
    "CHOWN", "DAC_OVERRIDE", "DAC_READ_SEARCH", "FOWNER", "FSETID", "KILL", "SETGID", "SETUID",
    "SETPCAP", "LINUX_IMMUTABLE", "NET_BIND_SERVICE", "NET_BROADCAST", "NET_ADMIN", "NET_RAW",
    "IPC_LOCK", "IPC_OWNER", "SYS_MODULE", "SYS_RAWIO", "SYS_CHROOT", "SYS_PTRACE",
    "SYS_PACCT", "SYS_ADMIN", "SYS_BOOT", "SYS_NICE", "SYS_RESOURCE", "SYS_TIME",
    "SYS_TTY_CONFIG", "MKNOD", "LEASE", "AUDIT_WRITE", "AUDIT_CONTROL", "SETFCAP",
    "MAC_OVERRIDE", "MAC_ADMIN", "SYSLOG", "WAKE_ALARM", "BLOCK_SUSPEND", "AUDIT_READ",
    "PERFMON", "BPF", "CHECKPOINT_RESTORE",
)  # fmt: skip


class SecurityContext(Struct, frozen=True):
    """What a container may do, as whom; None and empty values are those of the runtime."""

    pod: str = ""  # as kubelets name it in messages
    user: int | None = None
    group: int | None = None
    is_non_root: bool = False
    groups: tuple[int, ...] = ()  # supplemental groups, with the fsGroup
    fs_group: int | None = None
    has_only_these_groups: bool = False  # not those that the user has anyway
    is_privileged: bool = False
    no_new_privileges: bool = False
    is_root_read_only: bool = False
    proc_mount: str = ""
    added: tuple[str, ...] = ()  # capabilities, without CAP_
    dropped: tuple[str, ...] = ()
    seccomp: str = ""
    apparmor: str = ""
    apparmor_profile: str = ""
    selinux: Mapping[str, str] = field(default_factory=dict)
    sysctls: Mapping[str, str] = field(default_factory=dict)
    host_pid: bool = False
    host_ipc: bool = False
    shares_processes: bool = False

    @property
    def asks_for_apparmor(self) -> bool:
        """Whether a profile of AppArmor has to be enforced."""
        return self.apparmor in (RUNTIME_DEFAULT, LOCALHOST)


def pod_text(pod: Pod) -> str:
    """Return a pod as kubelets name it in messages: `name_namespace(uid)`."""
    metadata = pod.metadata
    return f"{metadata.name}_{metadata.namespace}({metadata.uid})"


def fs_group(pod: Pod) -> int | None:
    """Return the group that owns the volumes of a pod, None if it names none, or ConfigError."""
    return _Fields(pod.spec.security_context, "spec.securityContext").number("fsGroup")


def security_context_of(pod: Pod, container: Container) -> SecurityContext:
    """Return the effective security context of a container, or raise ConfigError."""
    of_pod = _Fields(pod.spec.security_context, "spec.securityContext")
    own = _Fields(container.security_context, f"container {container.name}: securityContext")
    capabilities = own.part("capabilities")
    seccomp = own.part("seccompProfile", of_pod)
    apparmor = own.part("appArmorProfile", of_pod)
    if seccomp.word("type", *_PROFILES) == LOCALHOST:
        path = go_quote(seccomp.text("localhostProfile"))
        raise ConfigError(f"cannot load seccomp profile {path}: this node has no seccomp profiles")
    if own.part("windowsOptions", of_pod).values:
        raise ConfigError(f"{own.place}.windowsOptions: this node runs Linux")
    fs_group = of_pod.number("fsGroup")
    of_pod.word("fsGroupChangePolicy", "", "Always", "OnRootMismatch")
    of_pod.word("seLinuxChangePolicy", "", "MountOption", "Recursive")
    policy = of_pod.word("supplementalGroupsPolicy", "", "Merge", "Strict")
    escalates = own.flag("allowPrivilegeEscalation")
    found = SecurityContext(
        pod=pod_text(pod),
        user=own.number("runAsUser", of_pod),
        group=own.number("runAsGroup", of_pod),
        is_non_root=bool(own.flag("runAsNonRoot", of_pod)),
        groups=_unique((*of_pod.numbers("supplementalGroups"), fs_group)),
        fs_group=fs_group,
        has_only_these_groups=policy == "Strict",
        is_privileged=bool(own.flag("privileged")),
        no_new_privileges=escalates is False,
        is_root_read_only=bool(own.flag("readOnlyRootFilesystem")),
        proc_mount=own.word("procMount", "", "Default", "Unmasked"),
        added=_capabilities(capabilities, "add"),
        dropped=_capabilities(capabilities, "drop"),
        seccomp=seccomp.word("type", *_PROFILES),
        apparmor=apparmor.word("type", *_PROFILES),
        apparmor_profile=apparmor.text("localhostProfile"),
        selinux=own.part("seLinuxOptions", of_pod).texts("user", "role", "type", "level"),
        sysctls=_sysctls(of_pod),
        host_pid=pod.spec.host_pid,
        host_ipc=pod.spec.host_ipc,
        shares_processes=bool(pod.spec.share_process_namespace),
    )
    if found.is_non_root and found.user == 0:
        about = f"(pod: {go_quote(found.pod)}, container: {container.name})"
        raise ConfigError(f"container's runAsUser breaks non-root policy {about}")
    return found


def check_non_root(context: SecurityContext, container: str, image_user: int | str) -> None:
    """Raise ConfigError if a container must not run as the user it gets without `runAsUser`.

    The user is a number, or a name that only the image knows.
    """
    if not context.is_non_root or context.user is not None:
        return
    about = f"(pod: {go_quote(context.pod)}, container: {container})"
    if isinstance(image_user, str):
        raise ConfigError(
            f"container has runAsNonRoot and image has non-numeric user ({image_user[:128]}), "
            f"cannot verify user is non-root {about}"
        )
    if image_user == 0:
        raise ConfigError(f"container has runAsNonRoot and image will run as root {about}")


def check_apparmor(context: SecurityContext) -> None:
    """Raise ConfigError if AppArmor has to be enforced and the machine does not have it."""
    if context.asks_for_apparmor and not machine_has_apparmor():
        raise ConfigError("Cannot enforce AppArmor: AppArmor is not enabled on the host")


def machine_has_apparmor() -> bool:
    """Return whether AppArmor is enabled on this machine."""
    try:
        descriptor = os.open(_APPARMOR_SWITCH, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    with open(descriptor, "rb") as file:
        return file.read(1) == b"Y"


class _Fields:
    """An object of a pod, whose fields are read with their types checked."""

    def __init__(self, values: Any, place: str) -> None:
        if values is not None and not isinstance(values, Mapping):
            raise ConfigError(f"{place}: it must be an object")
        self.values: Mapping[str, Any] = values or {}
        self.place = place

    def _value(self, name: str, otherwise: _Fields | None = None) -> Any:
        value = self.values.get(name)
        return otherwise.values.get(name) if value is None and otherwise is not None else value

    def _wrong(self, name: str, fact: str) -> ConfigError:
        return ConfigError(f"{self.place}.{name}: it must be {fact}")

    def part(self, name: str, otherwise: _Fields | None = None) -> _Fields:
        return _Fields(self._value(name, otherwise), f"{self.place}.{name}")

    def flag(self, name: str, otherwise: _Fields | None = None) -> bool | None:
        value = self._value(name, otherwise)
        if value is not None and not isinstance(value, bool):
            raise self._wrong(name, "true or false")
        return value

    def number(self, name: str, otherwise: _Fields | None = None) -> int | None:
        value = self._value(name, otherwise)
        return None if value is None else self._id(name, value)

    def numbers(self, name: str) -> tuple[int, ...]:
        return tuple(self._id(name, each) for each in self._list(name))

    def _id(self, name: str, value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= ID_MAX:
            raise self._wrong(name, f"between 0 and {ID_MAX}")
        return value

    def _list(self, name: str) -> list[Any] | tuple[Any, ...]:
        value = self.values.get(name)
        if value is not None and not isinstance(value, list | tuple):
            raise self._wrong(name, "a list")
        return value or ()

    def text(self, name: str) -> str:
        value = self.values.get(name)
        if value is not None and not (isinstance(value, str) and value.isprintable()):
            raise self._wrong(name, "a text without control characters")
        return value or ""

    def texts(self, *names: str) -> dict[str, str]:
        return {name: text for name in names if (text := self.text(name))}

    def word(self, name: str, *known: str) -> str:
        value = self.text(name)
        if value not in known:
            raise self._wrong(name, f"one of {', '.join(filter(None, known))}")
        return value

    def words(self, name: str) -> tuple[str, ...]:
        found = tuple(self._list(name))
        if not all(isinstance(each, str) for each in found):
            raise self._wrong(name, "a list of names")
        return found

    def objects(self, name: str) -> tuple[_Fields, ...]:
        return tuple(
            _Fields(each, f"{self.place}.{name}[{index}]")
            for index, each in enumerate(self._list(name))
        )


def _capabilities(fields: _Fields, name: str) -> tuple[str, ...]:
    """Return capabilities in the kernel's spelling, without CAP_."""
    found = tuple(each.upper().removeprefix("CAP_") for each in fields.words(name))
    for each in found:
        if each != ALL and each not in CAPABILITIES:
            raise ConfigError(f"{fields.place}.{name}: {go_quote(each[:128])} is no capability")
    return _unique(found)


def _sysctls(fields: _Fields) -> dict[str, str]:
    return {each.text("name"): each.text("value") for each in fields.objects("sysctls")}


def _unique(values: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(dict.fromkeys(each for each in values if each is not None))
