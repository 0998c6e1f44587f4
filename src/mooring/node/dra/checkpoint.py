"""The claims of this node in a file, in the kubelet's own form: it can read ours, and we its.

    {"Data": "{…}", "Checksum": crc32 of Data}

Data is JSON in a string, so that the checksum is of bytes that nobody formats anew.
"""

from __future__ import annotations

from binascii import crc32
from collections.abc import Iterable
from pathlib import Path

import msgspec
from msgspec import Struct

from mooring.node.dra.claimstates import ClaimKey, ClaimState, DriverShare, PreparedDevice
from mooring.node.dra.files import read_bounded

KIND, API_VERSION = "DRACheckpoint", "checkpoint.dra.kubelet.k8s.io/v1"
BYTES_MAX = 256 * 1024 * 1024
FILE_NAME = "dra_manager_state"


class CheckpointError(Exception):
    """The file of claims cannot be used; the text says which and what to do."""


class _Device(Struct, rename="pascal"):
    pool_name: str
    device_name: str
    share_id: str | None = msgspec.field(default=None, name="ShareID")
    request_names: list[str] | None = None
    cdi_ids: list[str] | None = msgspec.field(default=None, name="CDIDeviceIDs")


class _Driver(Struct):
    devices: list[_Device] | None = msgspec.field(default=None, name="Devices")
    skips: list[str] | msgspec.UnsetType = msgspec.field(
        default=msgspec.UNSET, name="skipNodeOperations"
    )


class _Empty(Struct):
    """What Go writes for the members of a set."""


class _Claim(Struct, rename="pascal"):
    uid: str = msgspec.field(name="ClaimUID")
    claim_name: str
    namespace: str
    pod_uids: dict[str, _Empty] | None = msgspec.field(default=None, name="PodUIDs")
    driver_state: dict[str, _Driver] | None = None


class _Data(Struct):
    kind: str = ""
    api_version: str = msgspec.field(default="", name="apiVersion")
    claims: list[_Claim] | None = msgspec.field(default=None, name="ClaimInfoStateList")


class _Written(Struct):
    kind: str
    api_version: str = msgspec.field(name="apiVersion")
    claims: list[msgspec.Raw] = msgspec.field(name="ClaimInfoStateList")


class _Checkpoint(Struct, rename="pascal"):
    data: str
    checksum: int


class Encoder:
    """Makes the content of the file again and again; only claims that changed cost something."""

    def __init__(self) -> None:
        self._made: dict[ClaimKey, tuple[ClaimState, msgspec.Raw]] = {}

    def encode(self, states: Iterable[ClaimState]) -> bytes:
        """Return the content of the file for claims."""
        ordered = sorted(states, key=lambda state: state.key)
        self._made = {state.key: (state, self._claim(state)) for state in ordered}
        claims = [claim for _, claim in self._made.values()]
        data = msgspec.json.encode(_Written(KIND, API_VERSION, claims))
        return msgspec.json.encode(_Checkpoint(data.decode(), crc32(data)))

    def _claim(self, state: ClaimState) -> msgspec.Raw:
        before, made = self._made.get(state.key, (None, None))
        if made is None or before is not state:
            made = msgspec.Raw(msgspec.json.encode(_stored(state)))
        return made


def encode(states: Iterable[ClaimState]) -> bytes:
    """Return the content of the file for claims."""
    return Encoder().encode(states)


def decode(content: bytes) -> list[ClaimState]:
    """Return the claims of a file, or raise ValueError that says what is wrong with it."""
    checkpoint = msgspec.json.decode(content, type=_Checkpoint)
    found = crc32(checkpoint.data.encode())
    if found != checkpoint.checksum:
        raise ValueError(f"its checksum is {checkpoint.checksum}, that of its data is {found}")
    data = msgspec.json.decode(checkpoint.data, type=_Data)
    # Of whatever version: the kubelet reads what it knows of it, too.
    if data.kind != KIND:
        raise ValueError(f"it is {data.kind[:64]!r}, not {KIND}")
    return [_state(claim) for claim in data.claims or ()]


def read(path: Path) -> list[ClaimState]:
    """Return the claims of a file, none if there is no file; else raise CheckpointError."""
    try:
        return decode(read_bounded(path, BYTES_MAX))
    except FileNotFoundError:
        return []
    except (ValueError, UnicodeError, RecursionError) as error:
        raise CheckpointError(
            f"{path}: the checkpoint is corrupted: {error}; "
            "please drain node and remove DRA state file"
        ) from error
    except OSError as error:
        raise CheckpointError(f"{path}: cannot be read: {error.strerror or error}") from error


def _stored(state: ClaimState) -> _Claim:
    return _Claim(
        uid=state.uid,
        claim_name=state.key.name,
        namespace=state.key.namespace,
        pod_uids={uid: _Empty() for uid in sorted(state.pods)},
        driver_state={name: _driver(state.drivers[name]) for name in sorted(state.drivers)},
    )


def _driver(share: DriverShare) -> _Driver:
    devices = [
        _Device(
            each.pool,
            each.name,
            each.share_id,
            list(each.requests) or None,
            list(each.cdi_ids) or None,
        )
        for each in share.devices
    ]
    return _Driver(devices or None, list(share.skips) or msgspec.UNSET)


def _state(claim: _Claim) -> ClaimState:
    return ClaimState(
        key=ClaimKey(claim.namespace, claim.claim_name),
        uid=claim.uid,
        pods=frozenset(claim.pod_uids or ()),
        drivers={name: _share(driver) for name, driver in (claim.driver_state or {}).items()},
    )


def _share(driver: _Driver) -> DriverShare:
    devices = tuple(
        PreparedDevice(
            each.pool_name,
            each.device_name,
            each.share_id,
            tuple(each.request_names or ()),
            tuple(each.cdi_ids or ()),
        )
        for each in driver.devices or ()
    )
    return DriverShare(devices, tuple(driver.skips or ()))
