"""The claims of this node in a file, in the kubelet's own form: it can read ours, and we its.

    {"Data": "{…}", "Checksum": crc32 of Data}

Data is JSON in a string, so that the checksum is of bytes that nobody formats anew.
"""

from __future__ import annotations

import asyncio
import os
from binascii import crc32
from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec
from msgspec import Struct

from mooring.node.dra.claim_info import ClaimInfo, ClaimKey, DriverShare, PreparedDevice
from mooring.node.errors import CheckpointError, SaveError

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
        self._made: dict[ClaimKey, tuple[ClaimInfo, msgspec.Raw]] = {}

    def encode(self, states: Iterable[ClaimInfo]) -> bytes:
        """Return the content of the file for claims."""
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
    """Return the content of the file for claims."""
    return Encoder().encode(states)


def decode(content: bytes) -> list[ClaimInfo]:
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


# ---- from mooring.node.dra.files: Files that are whole or not there: read with a bound, written aside and put in place.


def read_bounded(path: Path, bytes_max: int) -> bytes:
    """Return the content of a file, or raise ValueError if it is too large."""
    with path.open("rb") as file:
        content = file.read(bytes_max + 1)
    if len(content) > bytes_max:
        raise ValueError(f"it is larger than {bytes_max} bytes")
    return content


def write_whole(path: Path, content: bytes) -> None:
    """Replace a file by another that is on the disk, or raise SaveError and leave it as it was."""
    aside = path.with_name(f".{path.name}.new")
    try:
        try:
            aside.unlink(missing_ok=True)  # of a crash
            with open(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            aside.replace(path)
            _sync_folder(path.parent)
        except OSError:
            aside.unlink(missing_ok=True)  # on a full disk, room for the next try
            raise
    except OSError as error:
        raise SaveError(f"{path} could not be written: {error.strerror or error}") from error


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class SavedFile:
    """A file that follows a state; many who wait for it are served by one write.

    `content` is asked in the event loop when a write begins, so it has all that was changed until
    then. Nothing else in the loop waits for the disk.
    """

    def __init__(
        self,
        path: Path,
        content: Callable[[], bytes],
        write: Callable[[Path, bytes], None] = write_whole,
    ) -> None:
        self.path = path
        self.writes = 0
        self.is_behind = False  # the last write failed
        self._content = content
        self._write = write
        self._running: asyncio.Task[None] | None = None
        self._next: asyncio.Task[None] | None = None

    async def save(self) -> None:
        """Return once the state of now is on the disk, or raise SaveError."""
        if self._next is None:
            self._next = asyncio.create_task(self._after(self._running))
            self._next.add_done_callback(_look_at)
        # Whoever is cancelled does not cancel the write for the others.
        await asyncio.shield(self._next)

    async def settled(self) -> None:
        """Return once nothing is being written, so that the folder can be left."""
        while tasks := [each for each in (self._running, self._next) if each and not each.done()]:
            await asyncio.wait(tasks)

    async def _after(self, running: asyncio.Task[None] | None) -> None:
        if running is not None:
            await asyncio.wait([running])
        self._running, self._next = self._next, None
        self.writes += 1
        self.is_behind = True
        await asyncio.to_thread(self._write, self.path, self._content())
        self.is_behind = False


def _look_at(task: asyncio.Task[None]) -> None:
    # Whoever waited may be gone; then nobody else wants to know.
    if not task.cancelled():
        task.exception()


# MOVED
from mooring.node.errors import CheckpointError as CheckpointError  # noqa: E402, F401
