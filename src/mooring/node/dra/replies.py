"""What drivers answer, read as from strangers: for other claims, for too few, or too much."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mooring.api.cdi import CdiId
from mooring.node.dra.claimstates import PREPARE, UNPREPARE, ClaimState, PreparedDevice
from mooring.wire import dra_v1_pb2 as dra

DEVICES_MAX = 1024  # of one driver for one claim; a claim itself has at most 32
NAMES_MAX = 128  # requests or CDI ids of one device
TEXT_BYTES_MAX = 1024  # of one name
ERROR_CHARACTERS_MAX = 2048


class ReplyError(Exception):
    """A driver failed, or answered what it may not; the text is told to users of the pod."""


def request_for(claims: Sequence[ClaimState], request: type[Any]) -> Any:
    """Return the message that names claims."""
    return request(
        claims=[dra.Claim(namespace=c.key.namespace, uid=c.uid, name=c.key.name) for c in claims]
    )


def read_prepared(
    claims: Sequence[ClaimState], answers: Mapping[str, dra.NodePrepareResourceResponse]
) -> Iterator[tuple[ClaimState, tuple[PreparedDevice, ...]]]:
    """Yield what was prepared for each claim; raises ReplyError at the first that was not."""
    for claim, answer in _matched(PREPARE, claims, answers):
        if len(answer.devices) > DEVICES_MAX:
            text = f"{len(answer.devices)} devices are more than {DEVICES_MAX}"
            raise ReplyError(_failed(PREPARE, claim, text))
        try:
            yield claim, tuple(_device(each) for each in answer.devices)
        except ValueError as error:
            raise ReplyError(_failed(PREPARE, claim, f"bad device: {error}")) from error
    _check_complete(PREPARE, claims, answers)


def check_unprepared(
    claims: Sequence[ClaimState], answers: Mapping[str, dra.NodeUnprepareResourceResponse]
) -> None:
    """Raise ReplyError unless all claims were unprepared."""
    for _ in _matched(UNPREPARE, claims, answers):
        pass
    _check_complete(UNPREPARE, claims, answers)


def _matched(
    operation: str, claims: Sequence[ClaimState], answers: Mapping[str, Any]
) -> Iterator[tuple[ClaimState, Any]]:
    by_uid = {claim.uid: claim for claim in claims}
    for uid in sorted(answers):
        if uid not in by_uid:
            raise ReplyError(f"{operation} returned result for unknown claim UID {uid[:256]}")
    for uid, claim in by_uid.items():
        if uid not in answers:
            continue
        if answers[uid].error:
            raise ReplyError(_failed(operation, claim, answers[uid].error))
        yield claim, answers[uid]


def _check_complete(
    operation: str, claims: Sequence[ClaimState], answers: Mapping[str, Any]
) -> None:
    if missing := sum(claim.uid not in answers for claim in claims):
        raise ReplyError(f"{operation} skipped {missing} ResourceClaims")


def _failed(operation: str, claim: ClaimState, text: str) -> str:
    shown = text if len(text) <= ERROR_CHARACTERS_MAX else text[:ERROR_CHARACTERS_MAX] + "…"
    return f"{operation} failed for ResourceClaim {claim.key.name}: {shown}"


def _device(device: dra.Device) -> PreparedDevice:
    for names in (device.request_names, device.cdi_device_ids):
        if len(names) > NAMES_MAX:
            raise ValueError(f"{len(names)} names are more than {NAMES_MAX}")
    ids = tuple(device.cdi_device_ids)
    for text in (*device.request_names, *ids, device.pool_name, device.device_name):
        if len(text.encode()) > TEXT_BYTES_MAX:
            raise ValueError(f"{text[:64]!r}… is longer than {TEXT_BYTES_MAX} bytes")
    for each in ids:
        CdiId.parse(each)
    return PreparedDevice(
        pool=device.pool_name,
        name=device.device_name,
        share_id=device.share_id if device.HasField("share_id") else None,
        requests=tuple(device.request_names),
        cdi_ids=ids,
    )
