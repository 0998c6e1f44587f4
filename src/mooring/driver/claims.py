"""Claims as drivers see them: fetched, verified, and only what is theirs.

What the node says of a claim is its name and UID. All else is read from the server, and only a
claim that still is the same and has devices is prepared.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from mooring.api.resource.v1 import (
    Device,
    DeviceAllocationConfiguration,
    DeviceRequestAllocationResult,
    ResourceClaim,
)
from mooring.client.contract import Client
from mooring.client.errors import ClientError
from mooring.driver.driver import AllocatedDevice, Claim, ClaimName, PrepareError

FindDevice = Callable[[str, str], Device | None]  # by pool and name

_SOURCES = {"FromClass": 0, "FromClaim": 1}


async def fetch(client: Client, name: ClaimName) -> ResourceClaim:
    """Return a claim as the server has it, or raise PrepareError."""
    try:
        value = await client.get(ResourceClaim, name.namespace, name.name)
    except ClientError as error:
        raise PrepareError(f"retrieve claim {name}: {error}") from None
    if value is None:
        raise PrepareError(
            f'retrieve claim {name}: resourceclaims.resource.k8s.io "{name.name}" not found'
        )
    if value.status.allocation is None:
        raise PrepareError(f"claim {name} not allocated")
    if value.metadata.uid != name.uid:
        raise PrepareError(f"claim {name} got replaced")
    return value


def read_claim(value: ResourceClaim, driver: str, published: FindDevice) -> Claim:
    """Return what a claim has of a driver, or raise PrepareError."""
    allocation = value.status.allocation
    assert allocation is not None
    configs = sorted(
        (
            each
            for each in allocation.devices.config
            if each.opaque is not None and each.opaque.driver == driver
        ),
        key=lambda each: _SOURCES.get(each.source, 2),
    )
    decoded = [(each, _parameters(each, value)) for each in configs]
    metadata = value.metadata
    devices = tuple(
        _device(result, decoded, published)
        for result in allocation.devices.results
        if result.driver == driver
    )
    return Claim(metadata.uid, metadata.namespace, metadata.name, devices, value)


def _device(
    result: DeviceRequestAllocationResult,
    configs: list[tuple[DeviceAllocationConfiguration, Any]],
    published: FindDevice,
) -> AllocatedDevice:
    return AllocatedDevice(
        request=result.request,
        pool=result.pool,
        name=result.device,
        share_id=result.share_id or "",
        consumed=dict(result.consumed_capacity or {}),
        has_admin_access=bool(result.admin_access),
        configs=tuple(
            parameters for config, parameters in configs if _is_for(config, result.request)
        ),
        published=published(result.pool, result.device),
    )


def _is_for(config: DeviceAllocationConfiguration, request: str) -> bool:
    """Tell whether a configuration is for a request; one that names none is for all."""
    base = request.partition("/")[0]
    return not config.requests or request in config.requests or base in config.requests


def _parameters(config: DeviceAllocationConfiguration, value: ResourceClaim) -> Any:
    assert config.opaque is not None
    try:
        return msgspec.json.decode(config.opaque.parameters)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        metadata = value.metadata
        raise PrepareError(
            f"claim {metadata.namespace}/{metadata.name}: parameters cannot be read: {error}"
        ) from None
