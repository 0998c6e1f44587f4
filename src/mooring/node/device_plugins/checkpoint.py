"""What of device plugins outlives the agent: who has which devices, and which resources there were.

    {"version": 1, "checksum": "sha256:…", "data": {"resources": […], "allotments": […]}}

The file is written whole and then renamed, so that there is always an old one or a new one.
"""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec import Raw, Struct

from mooring.node.device_plugins.ledger import Allotment

NAME = "kubelet_internal_checkpoint"
SIZE_MAX = 64 * 1024 * 1024
VERSION = 1


class Saved(Struct, frozen=True):
    """What is in the file."""

    resources: tuple[str, ...] = ()
    allotments: tuple[Allotment, ...] = ()


class CheckpointError(Exception):
    """The file cannot be read; the text says why."""


class _File(Struct, frozen=True):
    version: int
    checksum: str
    data: Raw


def encode(saved: Saved) -> bytes:
    """Return the file."""
    data = msgspec.json.encode(saved)
    return msgspec.json.encode(_File(VERSION, _checksum(data), Raw(data)))


def decode(content: bytes) -> Saved:
    """Return what is in a file, or raise CheckpointError."""
    try:
        file = msgspec.json.decode(content, type=_File)
        if file.version != VERSION:
            raise CheckpointError(f"version {file.version} is not known")
        if file.checksum != _checksum(bytes(file.data)):
            raise CheckpointError("the checksum is not that of the data")
        saved = msgspec.json.decode(file.data, type=Saved)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise CheckpointError(str(error)) from None
    if len({each.key for each in saved.allotments}) < len(saved.allotments):
        raise CheckpointError("a container has devices of one resource twice")
    return saved


def load(path: Path) -> Saved:
    """Read the file; there is nothing in one that is missing."""
    try:
        with path.open("rb") as file:
            content = file.read(SIZE_MAX + 1)
    except FileNotFoundError:
        return Saved()
    except OSError as error:
        raise CheckpointError(f"it cannot be read: {error.strerror}") from None
    if len(content) > SIZE_MAX:
        raise CheckpointError(f"it is longer than {SIZE_MAX} bytes")
    return decode(content)


def save(path: Path, saved: Saved) -> None:
    """Write the file; OSError if that cannot be."""
    new = path.with_name(f".{path.name}.new")
    with new.open("wb") as file:
        file.write(encode(saved))
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)


def put_aside(path: Path) -> None:
    """Keep a file that cannot be read for whoever wants to look at it."""
    with suppress(OSError):
        path.replace(path.with_name(f"{path.name}.corrupt"))


def _checksum(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"
