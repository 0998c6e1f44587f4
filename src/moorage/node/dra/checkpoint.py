"""The claim info cache in a file, in the kubelet's own format: each can read the other's.

    {"Data": "{…}", "Checksum": crc32 of Data}

Data is JSON in a string, so that the checksum covers exact bytes.
"""

from __future__ import annotations

import asyncio
from binascii import crc32
from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec
from msgspec import Struct

from moorage.kit.atomic_file import TEMPORARY_SUFFIX, read_bounded, replace_file
from moorage.kit.bulkhead import FAULTS
from moorage.node.dra.claim_info import ClaimInfo, ClaimKey, DriverShare, PreparedDevice
from moorage.node.errors import CheckpointError, SaveError

KIND, API_VERSION = "DRACheckpoint", "checkpoint.dra.kubelet.k8s.io/v1"
BYTES_MAX = 256 * 1024 * 1024
FILE_NAME = "dra_manager_state"


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
    """A member of a set, as Go writes it."""


class _Claim(Struct, rename="pascal"):
    uid: str = msgspec.field(name="ClaimUID")
    claim_name: str
    namespace: str
    pod_uids: dict[str, _Empty] | None = msgspec.field(default=None, name="PodUIDs")
    driver_state: dict[str, _Driver] | None = None


class _Data(Struct):
    kind: str = ""
    api_version: str = msgspec.field(default="", name="apiVersion")
    claims: list[msgspec.Raw] | None = msgspec.field(default=None, name="ClaimInfoStateList")


class _Written(Struct):
    kind: str
    api_version: str = msgspec.field(name="apiVersion")
    claims: list[msgspec.Raw] = msgspec.field(name="ClaimInfoStateList")


class _Checkpoint(Struct, rename="pascal"):
    data: str
    checksum: int


class Encoder:
    """Encodes the checkpoint again and again; only changed claims cost something."""

    def __init__(self) -> None:
        self._made: dict[ClaimKey, tuple[ClaimInfo, msgspec.Raw]] = {}

    def encode(self, states: Iterable[ClaimInfo]) -> bytes:
        """Return the content of the file."""
        ordered = sorted(states, key=lambda state: state.key)
        self._made = {state.key: (state, self._claim(state)) for state in ordered}
        claims = [claim for _, claim in self._made.values()]
        data = msgspec.json.encode(_Written(KIND, API_VERSION, claims))
        return msgspec.json.encode(_Checkpoint(data.decode(), crc32(data)))

    def _claim(self, state: ClaimInfo) -> msgspec.Raw:
        before, made = self._made.get(state.key, (None, None))
        if made is None or before is not state:
            made = msgspec.Raw(msgspec.json.encode(_stored(state)))
        return made


def encode(states: Iterable[ClaimInfo]) -> bytes:
    """Return the content of the file."""
    return Encoder().encode(states)


def decode(content: bytes) -> list[ClaimInfo]:
    """Return the claims of a file, or raise ValueError with the reason.

    A record that does not fit is left out: its pods prepare the claim again.
    """
    checkpoint = msgspec.json.decode(content, type=_Checkpoint)
    found = crc32(checkpoint.data.encode())
    if found != checkpoint.checksum:
        raise ValueError(f"its checksum is {checkpoint.checksum}, that of its data is {found}")
    data = msgspec.json.decode(checkpoint.data, type=_Data)
    # Whatever its version: the kubelet also reads the fields that it knows.
    if data.kind != KIND:
        raise ValueError(f"it is {data.kind[:64]!r}, not {KIND}")
    found_claims = []
    for number, record in enumerate(data.claims or ()):
        with FAULTS.guard("checkpoint of claims", f"record {number}"):
            found_claims.append(_state(msgspec.json.decode(record, type=_Claim)))
    return found_claims


def read(path: Path) -> list[ClaimInfo]:
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


def _stored(state: ClaimInfo) -> _Claim:
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


def _state(claim: _Claim) -> ClaimInfo:
    return ClaimInfo(
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


# --- files that follow a state --------------------------------------------------------------------


def write_whole(path: Path, content: bytes) -> None:
    """Replace a file durably, or raise SaveError and leave it as it was."""
    try:
        replace_file(path, content)
    except OSError as error:
        raise SaveError(f"{path} could not be written: {error.strerror or error}") from error


class SavedFile:
    """A file that follows a state; one write serves all who wait for it.

    `content` is called in the event loop when a write begins, so it includes all changes until
    then. Nothing else in the loop waits for the disk.
    """

    def __init__(
        self,
        path: Path,
        content: Callable[[], bytes],
        write: Callable[[Path, bytes], None] = write_whole,
    ) -> None:
        for left in path.parent.glob(f".{path.name}.*{TEMPORARY_SUFFIX}"):
            left.unlink(missing_ok=True)  # by a crash
        self.path = path
        self.writes = 0
        self.is_outdated = False  # a write is due, or the last one failed
        self._content = content
        self._write = write
        self._running: asyncio.Task[None] | None = None
        self._next: asyncio.Task[None] | None = None

    async def save(self) -> None:
        """Return once the current state is on disk, or raise SaveError."""
        if self._next is None:
            self._next = asyncio.create_task(self._after(self._running))
            self._next.add_done_callback(_look_at)
        # A cancelled caller does not cancel the write for others.
        await asyncio.shield(self._next)

    async def settled(self) -> None:
        """Return once nothing is being written, so that the folder can be removed."""
        while tasks := [each for each in (self._running, self._next) if each and not each.done()]:
            await asyncio.wait(tasks)

    async def _after(self, running: asyncio.Task[None] | None) -> None:
        if running is not None:
            await asyncio.wait([running])
        self._running, self._next = self._next, None
        self.writes += 1
        self.is_outdated = True
        await asyncio.to_thread(self._write, self.path, self._content())
        self.is_outdated = False


def _look_at(task: asyncio.Task[None]) -> None:
    # If the callers are gone, nobody needs the error.
    if not task.cancelled():
        task.exception()
