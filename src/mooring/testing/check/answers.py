"""What a driver answers of claims: is it well formed, and do two answers mean the same?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from mooring.api.resource.v1 import ResourceClaim
from mooring.testing.check.claims import results_of, share_ids_of
from mooring.testing.check.outcomes import CheckFailedError
from mooring.testing.check.plug import ClaimKey
from mooring.wire import dra_v1_pb2 as dra

Said = dra.NodePrepareResourceResponse


def entry_of(answer: Mapping[str, Said], claim: ResourceClaim | ClaimKey) -> Said:
    """Return what is said of a claim; without a word the check fails."""
    uid = claim.uid if isinstance(claim, ClaimKey) else claim.metadata.uid
    if uid not in answer:
        raise CheckFailedError(f"the answer has no entry for the claim with uid {uid}")
    return answer[uid]


def check_devices(claim: ResourceClaim, said: Said) -> None:
    """See whether what was prepared is what was allocated."""
    # A driver need not name any device: only those that the runtime is to give to containers.
    requests = {each.name for each in claim.spec.devices.requests or ()}
    wanted = set(results_of(claim))
    found = {(device.pool_name, device.device_name) for device in said.devices}
    if found - wanted:
        raise CheckFailedError(f"prepared {sorted(found - wanted)}, which the claim does not have")
    shares = share_ids_of(claim)
    for device in said.devices:
        if device.share_id and device.share_id not in shares:
            raise CheckFailedError(f"device {device.device_name}: no share {device.share_id}")
        if unknown := set(device.request_names) - requests:
            raise CheckFailedError(f"device {device.device_name}: no request {sorted(unknown)}")


def check_uids(answer: Mapping[str, object], claims: Iterable[ResourceClaim]) -> None:
    """See whether the answer is about what was asked; a kubelet takes no other."""
    if unknown := set(answer) - {claim.metadata.uid for claim in claims}:
        raise CheckFailedError(f"the answer has claims that were not asked for: {sorted(unknown)}")


def same_devices(one: Mapping[str, Said], other: Mapping[str, Said]) -> bool:
    """Tell whether two answers mean the same; the order of devices and ids means nothing."""
    return {uid: _devices(said) for uid, said in one.items()} == {
        uid: _devices(said) for uid, said in other.items()
    }


def _devices(said: Said) -> list[tuple[object, ...]]:
    return sorted(
        (
            device.pool_name,
            device.device_name,
            device.share_id,
            sorted(device.request_names),
            sorted(device.cdi_device_ids),
        )
        for device in said.devices
    )


def shown(answer: Mapping[str, Said]) -> str:
    """Return what a driver says of claims, in a line."""
    devices = (device for said in answer.values() for device in said.devices)
    parts = (
        f"{device.pool_name}/{device.device_name} ({', '.join(device.cdi_device_ids) or 'no ids'})"
        for device in devices
    )
    return "; ".join(parts) or "nothing"
