"""Security contexts as options of podman (pure, but for whether the machine has AppArmor)."""

from __future__ import annotations

from collections.abc import Iterator

from moorage.node.errors import ConfigError
from moorage.node.runtime.contract import ContainerSpec, RuntimeRefusedError
from moorage.node.runtime.security_context import (
    LOCALHOST,
    UNCONFINED,
    SecurityContext,
    check_apparmor,
    check_non_root,
    machine_has_apparmor,
)

CONFIG_ERROR = "CreateContainerConfigError"


def needs_image_user(context: SecurityContext) -> bool:
    """Return whether the user that an image has must be known."""
    return context.user is None and (context.is_non_root or context.group is not None)


def image_user(text: str) -> int | str:
    """Return the user of an image: a number, or a name that only the image knows."""
    user = text.partition(":")[0].strip()
    return int(user) if user.isascii() and user.isdecimal() else user or 0


def check_image_user(spec: ContainerSpec, user: int | str) -> None:
    """Raise RuntimeRefusedError if a container must not run as the user of its image."""
    try:
        check_non_root(spec.security, spec.id.name, user)
        if spec.security.group is not None and isinstance(user, str):
            fact = f"the image has the non-numeric user {user[:128]!r}: set runAsUser, too"
            raise ConfigError(f"runAsGroup {spec.security.group}: {fact}")
    except ConfigError as error:
        raise RuntimeRefusedError(CONFIG_ERROR, str(error)) from None


def security_options(
    context: SecurityContext, user: int | str | None = None, *, is_root: bool
) -> list[str]:
    """Return the options for a container, or raise RuntimeRefusedError.

    `user` is that of the image, where it must be known.
    """
    try:
        _check(context, is_root=is_root)
    except ConfigError as error:
        raise RuntimeRefusedError(CONFIG_ERROR, str(error)) from None
    return [*_identity(context, user), *_rights(context), *_profiles(context), *_shared(context)]


def _check(context: SecurityContext, *, is_root: bool) -> None:
    check_apparmor(context)
    if context.has_only_these_groups:
        text = "supplementalGroupsPolicy Strict: podman always adds the groups of the image"
        raise ConfigError(text)
    if context.fs_group is not None and not is_root:
        raise ConfigError(f"fsGroup {context.fs_group}: it needs an agent that runs as root")
    if context.shares_processes:
        raise ConfigError("shareProcessNamespace: podman runs each container by itself")


def _identity(context: SecurityContext, image: int | str | None) -> Iterator[str]:
    user = image if context.user is None else context.user
    if context.user is not None or context.group is not None:
        group = "" if context.group is None else f":{context.group}"
        yield f"--user={user}{group}"
    yield from (f"--group-add={each}" for each in context.groups)


def _rights(context: SecurityContext) -> Iterator[str]:
    if context.is_privileged:
        yield "--privileged"
    yield from (f"--cap-drop={each}" for each in context.dropped)
    yield from (f"--cap-add={each}" for each in context.added)
    if context.no_new_privileges:
        yield "--security-opt=no-new-privileges"
    if context.is_root_read_only:
        yield from ("--read-only", "--read-only-tmpfs=false")  # /tmp is read-only, too
    if context.proc_mount == "Unmasked":
        yield "--security-opt=unmask=ALL"


def _profiles(context: SecurityContext) -> Iterator[str]:
    if context.seccomp == UNCONFINED:
        yield "--security-opt=seccomp=unconfined"
    if context.apparmor == LOCALHOST:
        yield f"--security-opt=apparmor={context.apparmor_profile}"
    elif context.apparmor == UNCONFINED and machine_has_apparmor():
        yield "--security-opt=apparmor=unconfined"
    for part, value in context.selinux.items():
        yield f"--security-opt=label={part}:{value}"


def _shared(context: SecurityContext) -> Iterator[str]:
    yield from (f"--sysctl={name}={value}" for name, value in context.sysctls.items())
    if context.host_pid:
        yield "--pid=host"
    if context.host_ipc:
        yield "--ipc=host"
