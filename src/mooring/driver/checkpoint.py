"""What is prepared, kept across restarts: one file with a checksum.

    {"checksum": crc32 of data, "data": {"version": "v1", "claims": […]}}

A claim is noted before its driver is called, so that a driver that died on the way is asked to
undo it, and its devices are given to nobody else before that.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from zlib import crc32

import msgspec
from msgspec import Raw, Struct, field

from mooring.api.cdi import ContainerEdits
from mooring.api.codec import encode_json, fitting
from mooring.driver.driver import AllocatedDevice, ClaimName
from mooring.driver.errors import CheckpointError
from mooring.driver.files import Files

FILE = "checkpoint.json"
VERSION = "v1"


class PreparedDevice(Struct, frozen=True):
    """A device of a claim that is prepared, or about to be."""

    request: str
    pool: str
    name: str
    share_id: str = ""
    has_admin_access: bool = False
    cdi_ids: tuple[str, ...] = ()  # all that containers need, ours with them
    cdi_name: str = ""  # of our own CDI device; empty: there is none
    edits: Any = None  # what it brings, as JSON

    @property
    def key(self) -> tuple[str, str, str, str]:
        """What tells it from the other devices of its claim."""
        return self.request, self.pool, self.name, self.share_id

    @property
    def is_exclusive(self) -> bool:
        """Whether no other claim may have it at the same time."""
        return not self.share_id and not self.has_admin_access

    @classmethod
    def of(cls, device: AllocatedDevice) -> PreparedDevice:
        """Return a device before it is prepared."""
        return cls(
            device.request, device.pool, device.name, device.share_id, device.has_admin_access
        )


class PreparedClaim(Struct, frozen=True):
    """A claim, and how far it is."""

    uid: str
    namespace: str
    name: str
    devices: tuple[PreparedDevice, ...] = ()
    is_complete: bool = False  # the driver has done its part, and files are written
    boot_id: str = ""  # of the machine when it was prepared

    @property
    def claim(self) -> ClaimName:
        """Which claim it is."""
        return ClaimName(self.uid, self.namespace, self.name)

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class _Data(Struct):
    version: str = ""
    claims: list[PreparedClaim] = field(default_factory=list)


class _Written(Struct):
    version: str
    claims: list[Raw]


class _File(Struct, rename="camel"):
    checksum: int
    data: Raw


class Checkpoint:
    """The claims that are prepared, by UID, as the file has them."""

    def __init__(self, folder: Path, files: Files) -> None:
        self.path = folder / FILE
        self._files = files
        self._claims: dict[str, PreparedClaim] = {}
        self._made: dict[str, tuple[PreparedClaim, Raw]] = {}  # what the file has of each

    def load(self) -> None:
        """Read the file, or raise CheckpointError; without one nothing is prepared."""
        try:
            data = self._files.read(self.path)
        except OSError as error:
            raise CheckpointError(f"checkpoint {self.path} cannot be read: {error}") from None
        self._claims = {} if data is None else _decoded(data, self.path)

    def get(self, uid: str) -> PreparedClaim | None:
        """Return a claim, if it is known."""
        return self._claims.get(uid)

    def __iter__(self) -> Iterator[PreparedClaim]:
        return iter(tuple(self._claims.values()))

    def put(self, claim: PreparedClaim) -> None:
        """Note a claim, on disk first."""
        self._store({**self._claims, claim.uid: claim})

    def remove(self, uid: str) -> None:
        """Forget a claim."""
        if uid in self._claims:
            self._store({key: each for key, each in self._claims.items() if key != uid})

    def _store(self, claims: dict[str, PreparedClaim]) -> None:
        self._made = {uid: (claim, self._encoded(claim)) for uid, claim in claims.items()}
        data = msgspec.json.encode(_Written(VERSION, [made for _, made in self._made.values()]))
        content = msgspec.json.encode(_File(crc32(data), Raw(data)))
        self._files.write(self.path, content, 0o600)
        self._claims = claims

    def _encoded(self, claim: PreparedClaim) -> Raw:
        """Return a claim as the file has it; made once, as long as it stays the same."""
        before, made = self._made.get(claim.uid, (None, None))
        return made if made is not None and before is claim else Raw(msgspec.json.encode(claim))


def edits_of(device: PreparedDevice) -> ContainerEdits:
    """Return what a device brings to containers."""
    found = fitting(device.edits, ContainerEdits) if device.edits is not None else None
    return found if found is not None else ContainerEdits()


def stored_edits(edits: ContainerEdits) -> Any:
    """Return edits as they are kept."""
    return None if edits == ContainerEdits() else msgspec.json.decode(encode_json(edits))


def _decoded(data: bytes, path: Path) -> dict[str, PreparedClaim]:
    remedy = "drain the node, remove the file and start the driver again"
    try:
        file = msgspec.json.decode(data, type=_File)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise CheckpointError(f"checkpoint {path} is corrupted: {error}; {remedy}") from None
    if crc32(bytes(file.data)) != file.checksum:
        raise CheckpointError(
            f"checkpoint {path} is corrupted: its checksum is not that of its data; {remedy}"
        )
    try:
        found = msgspec.json.decode(file.data, type=_Data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise CheckpointError(f"checkpoint {path} cannot be read: {error}; {remedy}") from None
    if found.version != VERSION:
        raise CheckpointError(
            f"checkpoint {path} is of version {found.version[:64]!r}, and this driver knows "
            f"{VERSION!r} only"
        )
    return {each.uid: each for each in found.claims}
