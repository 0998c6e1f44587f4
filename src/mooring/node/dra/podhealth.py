"""The health of a pod's devices, as the status of its containers has it."""

from __future__ import annotations

from collections.abc import Callable

from mooring.api.core import Pod
from mooring.api.core.podstatus import CLAIM_STATUS_PREFIX, ResourceHealth, ResourceStatus
from mooring.claims.references import Named, reference_of
from mooring.node.dra.claimstates import ClaimBook, ClaimKey, ClaimState, PreparedDevice
from mooring.node.dra.healthbook import Health

# The health of a device, by driver, pool and name.
Look = Callable[[str, str, str], Health]


def allocated_resources_status(
    pod: Pod, container: str, book: ClaimBook, look: Look, *, has_messages: bool = True
) -> tuple[ResourceStatus, ...]:
    """Return the health of the devices of a container; only regular containers have it."""
    found = next((each for each in pod.spec.containers if each.name == container), None)
    statuses: dict[str, ResourceStatus] = {}
    for used in found.resources.claims if found is not None else ():
        state = _state(pod, used.name, book)
        if state is None:
            continue
        name = CLAIM_STATUS_PREFIX + used.name + (f"/{used.request}" if used.request else "")
        resources: dict[str, ResourceHealth] = {}
        for driver, device in state.devices:
            if device.serves(used.request):
                health = look(driver, device.pool, device.name)
                entry = _entry(driver, device, health, has_messages=has_messages)
                resources.setdefault(entry.resource_id, entry)
        if resources:
            statuses[name] = ResourceStatus(name=name, resources=tuple(resources.values()))
    return tuple(statuses.values())


def _state(pod: Pod, entry_name: str, book: ClaimBook) -> ClaimState | None:
    for entry in pod.spec.resource_claims:
        if entry.name == entry_name:
            reference = reference_of(pod, entry)
            if isinstance(reference, Named):
                return book.get(ClaimKey(pod.metadata.namespace, reference.name))
    return None


def _entry(
    driver: str, device: PreparedDevice, health: Health, *, has_messages: bool
) -> ResourceHealth:
    return ResourceHealth(
        resource_id=device.cdi_ids[0]
        if device.cdi_ids
        else f"{driver}/{device.pool}/{device.name}",
        health=health.health,
        message=health.message if has_messages and health.message else None,
    )
