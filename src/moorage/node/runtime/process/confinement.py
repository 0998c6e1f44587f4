"""How the security context of a container becomes the confinement of a process.

A process can get what the agent has, and no more: an agent that is root can run it as anybody, with
any of its own capabilities; any other agent only as itself. What a process cannot get is refused
before it starts, never left out. By default a process has all rights of the agent.
"""

from __future__ import annotations

import os
import pwd
from typing import Final

from msgspec import Struct

from moorage.node.errors import ConfigError
from moorage.node.runtime.contract import ContainerSpec, RuntimeRefusedError
from moorage.node.runtime.security_context import (
    ALL,
    CAPABILITIES,
    RUNTIME_DEFAULT,
    SecurityContext,
    check_apparmor,
    check_non_root,
)
from moorage.node.runtime.shim.confinement import has_filter
from moorage.node.runtime.shim.protocol import Confinement

CONFIG_ERROR: Final = "CreateContainerConfigError"
_NEEDS_ROOT: Final = "needs an agent that runs as root"


class Agent(Struct, frozen=True):
    """What the agent is and may do, and the users of its machine."""

    user: int
    group: int
    groups: tuple[int, ...] = ()
    capabilities: frozenset[int] = frozenset()  # that its descendants can have
    has_filter: bool = True

    @property
    def is_root(self) -> bool:
        """Whether it can run processes as others."""
        return self.user == 0

    @classmethod
    def current(cls) -> Agent:
        """Return what this process is."""
        bits = _bounding_set()
        known = frozenset(number for number in range(len(CAPABILITIES)) if bits >> number & 1)
        return cls(os.geteuid(), os.getegid(), tuple(os.getgroups()), known, has_filter())


def home_of(spec: ContainerSpec) -> str:
    """Return the home folder of the user that a container runs as."""
    user = spec.security.user
    if user is None or user == os.geteuid():
        return os.environ.get("HOME", "/")
    found = _account(user)
    return "/" if found is None else found.pw_dir


def confinement_of(spec: ContainerSpec, agent: Agent) -> Confinement:
    """Return the confinement of a container, or raise RuntimeRefusedError."""
    context = spec.security
    try:
        check_non_root(context, spec.id.name, agent.user)
        _check(context, agent)
        user, group, groups = _identity(context, agent)
        kept = _capabilities(context, agent)
    except ConfigError as error:
        raise RuntimeRefusedError(CONFIG_ERROR, str(error)) from None
    is_filtered = context.seccomp == RUNTIME_DEFAULT and not context.is_privileged
    # Without root, only this keeps programs from gaining what is taken from them.
    is_kept_down = not agent.is_root and (is_filtered or kept is not None)
    return Confinement(
        user=user,
        group=group,
        groups=groups,
        capabilities=kept,
        no_new_privileges=context.no_new_privileges or is_kept_down,
        has_filter=is_filtered,
        is_root_read_only=context.is_root_read_only,
    )


def _check(context: SecurityContext, agent: Agent) -> None:
    """Raise ConfigError for what no process can have."""
    if context.is_privileged and not agent.is_root:
        raise ConfigError(f"privileged: it {_NEEDS_ROOT}")
    if context.selinux:
        raise ConfigError("seLinuxOptions: the process runtime sets no SELinux labels")
    if context.asks_for_apparmor:
        check_apparmor(context)
        raise ConfigError("Cannot enforce AppArmor: the process runtime loads no profiles")
    for name in context.sysctls:  # the others are refused with their pod
        raise ConfigError(f'forbidden sysctl: "{name}" not allowed with host ipc enabled')
    if context.seccomp == RUNTIME_DEFAULT and not agent.has_filter:
        raise ConfigError(f"seccompProfile: no filter for a machine of type {os.uname().machine}")


def _identity(
    context: SecurityContext, agent: Agent
) -> tuple[int | None, int | None, tuple[int, ...] | None]:
    """Return user, group and all supplementary groups; None where they are the agent's."""
    user = None if context.user in (None, agent.user) else context.user
    group = context.group
    if group is None and user is not None:
        group = _group_of(user)
    if group == agent.group:
        group = None
    groups = _groups(context, user, agent)
    if not agent.is_root:
        _check_own(context, agent, group)
        return None, None, None
    return user, group, groups


def _groups(context: SecurityContext, user: int | None, agent: Agent) -> tuple[int, ...] | None:
    if context.has_only_these_groups:
        return tuple(sorted(context.groups))
    if user is None:
        return tuple(sorted({*agent.groups, *context.groups})) if context.groups else None
    found = _account(user)
    own = [] if found is None else os.getgrouplist(found.pw_name, found.pw_gid)
    return tuple(sorted({*own, *context.groups}))


def _check_own(context: SecurityContext, agent: Agent, group: int | None) -> None:
    """Raise ConfigError unless a container gets user and groups of an agent that is not root."""
    here = f"this agent runs as user {agent.user}"
    if context.user not in (None, agent.user):
        raise ConfigError(f"runAsUser {context.user}: it {_NEEDS_ROOT}; {here}")
    if group is not None:
        raise ConfigError(f"runAsGroup {group}: it {_NEEDS_ROOT}; {here}")
    own = {*agent.groups, agent.group}
    for each in context.groups:
        if each not in own:
            name = "fsGroup" if each == context.fs_group else "supplementalGroups"
            raise ConfigError(f"{name} {each}: it {_NEEDS_ROOT}; {here}")
    if context.has_only_these_groups and not own <= {*context.groups, agent.group}:
        raise ConfigError(f"supplementalGroupsPolicy Strict: it {_NEEDS_ROOT}; {here}")


def _group_of(user: int) -> int:
    """Return the primary group of a user.

    One that the machine does not know is in a group of the same number: group 0, which images give
    it, has rights to the machine's files.
    """
    found = _account(user)
    return user if found is None else found.pw_gid


def _account(user: int) -> pwd.struct_passwd | None:
    try:
        return pwd.getpwuid(user)
    except KeyError:
        return None


def _capabilities(context: SecurityContext, agent: Agent) -> tuple[int, ...] | None:
    """Return all capabilities that a container may have; None: those of the agent."""
    if context.is_privileged or not (context.added or context.dropped):
        return None
    wanted = _numbers(context.added)
    missing = wanted - agent.capabilities if agent.is_root else wanted
    if missing and ALL not in context.added:
        names = ", ".join(CAPABILITIES[number] for number in sorted(missing))
        fact = "the agent does not have it" if agent.is_root else f"it {_NEEDS_ROOT}"
        raise ConfigError(f"capability {names}: {fact}")
    if ALL in context.added and not agent.is_root:
        raise ConfigError(f"capability ALL: it {_NEEDS_ROOT}")
    kept = (agent.capabilities - _numbers(context.dropped)) | (wanted & agent.capabilities)
    return tuple(sorted(kept))


def _numbers(names: tuple[str, ...]) -> frozenset[int]:
    everything = range(len(CAPABILITIES))
    return frozenset(everything if ALL in names else map(CAPABILITIES.index, names))


def _bounding_set() -> int:
    with open("/proc/self/status", encoding="ascii", errors="replace") as file:
        for line in file:
            if line.startswith("CapBnd:"):
                return int(line.split()[1], 16)
    return 0
