"""Pending pods grouped by cause, and the devices that they request."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from moorage.api.core.pod import Pod
from moorage.api.quantity import Quantity
from moorage.api.resource.v1 import DeviceRequest, ResourceClaimSpec
from moorage.claims.extended_resources import is_device_resource
from moorage.insight.messages import shortened
from moorage.web.fleet import Group
from moorage.web.owner_rows import PodKey

FindClaim = Callable[[str, str, str], ResourceClaimSpec | None]  # kind, namespace, name
UNSEEN: Final = "no scheduler has looked at it yet"
PARTS_SHOWN_MAX: Final = 4
CAUSE_LENGTH_MAX: Final = 1000
_is_summary: Final = re.compile(r"(?s).*\bMoorage: (.+?)\.?(?: Fix: .*)?").fullmatch


class Cause(NamedTuple):
    """Why a pod waits; the uid tells whether the cause was found for this pod."""

    text: str
    uid: str


def grouped(
    pods: Iterable[Pod],
    causes: Mapping[PodKey, Cause],
    find: FindClaim,
    row_of: Callable[[PodKey], int],
) -> tuple[tuple[Group, ...], dict[PodKey, int]]:
    """Return the groups of pending pods, and the group of each of them."""
    members: dict[str, list[Pod]] = {}
    for pod in pods:
        members.setdefault(cause_of(pod, causes), []).append(pod)
    groups: list[Group] = []
    of_pod: dict[PodKey, int] = {}
    for cause, alike in members.items():
        oldest = min(alike, key=_age)
        wanted = ", ".join(shortened(wants(oldest, find), PARTS_SHOWN_MAX))
        of_pod |= {(p.metadata.namespace, p.metadata.name): len(groups) for p in alike}
        first = row_of((oldest.metadata.namespace, oldest.metadata.name))
        groups.append(Group(cause, len(alike), first, wanted))
    return tuple(groups), of_pod


def cause_of(pod: Pod, causes: Mapping[PodKey, Cause]) -> str:
    """Return why a pod waits: the cause that was found, or else what the scheduler says."""
    known = causes.get((pod.metadata.namespace, pod.metadata.name))
    if known is not None and known.uid == pod.metadata.uid:
        return known.text
    for each in pod.status.conditions:
        if each.type == "PodScheduled" and each.status == "False":
            return _summary(each.message) or (each.message or each.reason)[:CAUSE_LENGTH_MAX]
    return UNSEEN


def _summary(message: str) -> str:
    """Return the cause that Moorage's scheduler adds to its message."""
    found = _is_summary(message)
    return "" if found is None else found[1][:CAUSE_LENGTH_MAX]


def _age(pod: Pod) -> tuple[str, str, str]:
    stamp = pod.metadata.creation_timestamp
    return str(stamp or "9"), pod.metadata.namespace, pod.metadata.name


def wants(pod: Pod, find: FindClaim) -> Iterator[str]:
    """Yield the devices that a pod requests: `3 gpu.nvidia.com`."""
    for spec in claim_specs(pod, find):
        yield from map(_request_text, spec.devices.requests or ())
    yield from (f"{amount} {name}" for name, amount in limits_of(pod).items())


def claim_specs(pod: Pod, find: FindClaim) -> Iterator[ResourceClaimSpec]:
    """Yield the specs of a pod's claims, or of the templates that they will be created from."""
    namespace = pod.metadata.namespace
    made = {s.name: s.resource_claim_name for s in pod.status.resource_claim_statuses or ()}
    for entry in pod.spec.resource_claims:
        name = entry.resource_claim_name or made.get(entry.name)
        spec = find("ResourceClaim", namespace, name) if name else None
        if spec is None and entry.resource_claim_template_name:
            spec = find("ResourceClaimTemplate", namespace, entry.resource_claim_template_name)
        if spec is not None:
            yield spec


def limits_of(pod: Pod) -> dict[str, Quantity]:
    """Return the extended resources that a pod requests, by name."""
    found: dict[str, Quantity] = {}
    for container in (*(pod.spec.init_containers or ()), *pod.spec.containers):
        for name, amount in container.resources.limits.items():
            if is_device_resource(name):
                found[name] = found.get(name, Quantity.ZERO) + amount
    return found


def _request_text(request: DeviceRequest) -> str:
    if request.exactly is not None:
        return _number(request.exactly)
    return " or ".join(_number(each) for each in request.first_available or ())


def _number(wanted: object) -> str:
    count = "all" if getattr(wanted, "allocation_mode", "") == "All" else None
    return (
        f"{count or getattr(wanted, 'count', None) or 1} {getattr(wanted, 'device_class_name', '')}"
    )
