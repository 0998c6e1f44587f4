"""Rules of parts of a pod status: addresses, users of containers, and how their states change."""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import ip_address
from typing import Any

from moorage.api.core.pod import Container, ContainerStatus, Pod, PodIP, PodSpec
from moorage.api.field_path import Path
from moorage.validation.errors import ErrorList, ErrorType, FieldError, forbidden, invalid
from moorage.validation.pod.field_rules import Tree, in_range, user_id
from moorage.validation.pod.networking import validate_address
from moorage.validation.pod.security_context import LINUX, WINDOWS

UID_MAX = 2**32 - 1  # more than a pod may ask for: a runtime reports what it finds
ADDRESSES_MAX = 2

_ENDED = "may not be transitioned to non-terminated state"
_ALL = "RestartAllContainers"


# --- addresses ----------------------------------------------------------------------------


def validate_addresses(new: Pod, old: Pod, path: Path) -> ErrorList:
    """Validate the addresses of a pod and of its host: at most one of each IP family."""
    status, before = new.status, old.status
    place = path.child("podIPs")
    found = _validate_each(status.pod_ips, before.pod_ips, place)
    found += _validate_families(status.pod_ips, place)
    if bool(status.pod_ip) != bool(status.pod_ips):
        detail = "podIP and podIPs must either both be set or both be unset"
        found.append(invalid(place, _shown(status.pod_ips), detail))
    elif status.pod_ips and status.pod_ip != status.pod_ips[0].ip:
        first = status.pod_ips[0].ip
        found.append(invalid(place.index(0).child("ip"), first, "must be equal to `podIP`"))
    if not status.host_ips:
        return found
    place = path.child("hostIPs")
    if status.host_ip != status.host_ips[0].ip:
        first = status.host_ips[0].ip
        found.append(invalid(place.index(0).child("ip"), first, "must be equal to `hostIP`"))
    found += _validate_each(status.host_ips, before.host_ips, place)
    return found + _validate_families(status.host_ips, place)


def _validate_each(
    addresses: tuple[PodIP, ...], before: tuple[PodIP, ...], path: Path
) -> ErrorList:
    """Validate new addresses; those that are there already may stay."""
    known = {address.ip for address in before}
    found: ErrorList = []
    for position, address in enumerate(addresses):
        if address.ip not in known:
            found += validate_address(address.ip, path.index(position))
    return found


def _validate_families(addresses: tuple[PodIP, ...], path: Path) -> ErrorList:
    if len(addresses) <= 1:
        return []
    found: ErrorList = []
    families = set()
    for position, address in enumerate(addresses):
        try:
            families.add(ip_address(address.ip).version)
        except ValueError:
            words = (
                f"failed to check for dual stack with error:invalid IP[{position}]: {address.ip}"
            )
            found.append(FieldError(ErrorType.INTERNAL, path, words))
            break
    if found or len(families) < ADDRESSES_MAX or len(addresses) > ADDRESSES_MAX:
        detail = "may specify no more than one IP for each IP family"
        found.append(invalid(path, _shown(addresses), detail))
    return found


def _shown(addresses: Iterable[PodIP]) -> list[dict[str, str]] | None:
    """Return addresses as Kubernetes prints them in errors."""
    return [{"IP": address.ip} for address in addresses] or None


# --- users --------------------------------------------------------------------------------


def validate_user(status: ContainerStatus, spec: PodSpec, path: Path) -> ErrorList:
    """Validate the user that a container runs as."""
    linux: Tree | None = (status.user or {}).get("linux")
    if linux is None:
        return []
    system = LINUX if spec.os is None else spec.os.get("name")
    place = path.child("user", "linux")
    if system == WINDOWS:
        return [forbidden(place, "cannot be set for a windows pod")]
    found = in_range(linux.get("uid", 0), 0, UID_MAX, place.child("uid"))
    found += user_id(linux.get("gid", 0), place.child("gid"))
    for position, group in enumerate(linux.get("supplementalGroups", ())):
        found += user_id(group, place.child("supplementalGroups").index(position))
    return found


# --- states -------------------------------------------------------------------------------


def validate_states(new: Pod, old: Pod, path: Path) -> ErrorList:
    """Validate that containers that ended for good do not run again."""
    status, before, spec = new.status, old.status, old.spec
    found: ErrorList = []
    if not _may_all_restart(spec):
        for name, after, statuses, containers in (
            ("containerStatuses", status.container_statuses, before.container_statuses,
             spec.containers),
            ("initContainerStatuses", status.init_container_statuses,
             before.init_container_statuses, spec.init_containers),
        ):  # fmt: skip
            by_name = {container.name: container for container in reversed(containers)}
            found += _validate_ended(after, statuses, spec, by_name, path.child(name))
    return found + _validate_ended(
        status.ephemeral_container_statuses,
        before.ephemeral_container_statuses,
        spec,
        {},
        path.child("ephemeralContainerStatuses"),
    )


def _validate_ended(
    after: tuple[ContainerStatus, ...],
    before: tuple[ContainerStatus, ...],
    spec: PodSpec,
    containers: dict[str, Container],
    path: Path,
) -> ErrorList:
    running = {status.name for status in after if status.state.terminated is None}
    return [
        forbidden(path.index(position).child("state"), _ENDED)
        for position, status in enumerate(before)
        if status.state.terminated is not None
        and status.name in running
        and not _may_restart(containers.get(status.name), spec, status.state.terminated.exit_code)
    ]


def _may_all_restart(spec: PodSpec) -> bool:
    containers = (*spec.init_containers, *spec.containers)
    rules = (rule for container in containers for rule in container.restart_policy_rules)
    return any(rule.get("action") == _ALL for rule in rules)


def _may_restart(container: Container | None, spec: PodSpec, code: int) -> bool:
    """Return whether a container that ended with this code is started again."""
    if container is None:
        return False
    policy = container.restart_policy
    if policy is not None and any(_matches(rule, code) for rule in container.restart_policy_rules):
        return True
    match policy or spec.restart_policy:
        case "OnFailure":
            return code != 0
        case "Never":
            return False
        case _:
            return True


def _matches(rule: Any, code: int) -> bool:
    codes = rule.get("exitCodes") or {}
    is_in = code in codes.get("values", ())
    return is_in if codes.get("operator") == "In" else not is_in
