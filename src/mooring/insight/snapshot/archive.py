"""A snapshot as one file: written the same way every time, and checked when it is read.

manifest.json           format, version, gates, and of every other member its objects, size and
                        SHA-256
objects/FIELD.jsonl     the objects of one field of the snapshot, one a line, in their order
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterator
from typing import Final, NamedTuple

import msgspec
from msgspec import Struct

from mooring.api.codec import encode_json
from mooring.api.gates import Gates
from mooring.insight.snapshot.snapshot import Snapshot
from mooring.insight.snapshot.tarstream import ArchiveError, Member, pack, unpack

FORMAT: Final = "mooring-snapshot"
VERSION: Final = 1
MANIFEST: Final = "manifest.json"

UNPACKED_BYTES_MAX: Final = 512 * 1024 * 1024
MANIFEST_BYTES_MAX: Final = 1024 * 1024
OBJECTS_BYTES_MAX: Final = UNPACKED_BYTES_MAX - 2 * MANIFEST_BYTES_MAX  # with headers and padding

_is_member_name = re.compile(r"objects/[a-z_]{1,40}\.jsonl").fullmatch


class Contents(Struct, frozen=True, rename="camel"):
    """What the manifest says of a member."""

    name: str
    kinds: dict[str, int]
    bytes: int
    sha256: str


class Manifest(Struct, frozen=True, rename="camel"):
    """What is in an archive."""

    format: str
    version: int
    gates: str
    extensions: bool
    redacted: bool
    anonymised: bool
    members: tuple[Contents, ...]


class _Version(Struct, frozen=True):
    """The part of a manifest that all versions have."""

    format: str = ""
    version: int = 0


class Archive(NamedTuple):
    """An archive that was read: what it says, and its members."""

    manifest: Manifest
    members: tuple[Member, ...]

    def lines(self) -> Iterator[tuple[str, bytes]]:
        """Give all objects as JSON, each with its place in the archive."""
        for member in self.members:
            for number, line in enumerate(member.content.splitlines(), start=1):
                yield f"{member.name}:{number}", line


def write_archive(
    snapshot: Snapshot,
    *,
    gates: Gates,
    extensions: bool = True,
    redacted: bool = False,
    anonymised: bool = False,
) -> bytes:
    """Return the archive of a snapshot, or raise ArchiveError if it is too large to be read.

    The flags say what has been done to the snapshot.
    """
    members: list[Member] = []
    contents: list[Contents] = []
    for field in sorted(snapshot.__struct_fields__):
        objects = getattr(snapshot, field)
        if not objects:
            continue
        content = b"".join(map(_line, objects))
        members.append(Member(f"objects/{field}.jsonl", content))
        kinds = Counter(each.kind for each in objects)
        contents.append(_contents(members[-1], dict(sorted(kinds.items()))))
    if sum(len(member.content) for member in members) > OBJECTS_BYTES_MAX:
        raise ArchiveError(f"the objects have more than {OBJECTS_BYTES_MAX:,} bytes")
    manifest = Manifest(
        format=FORMAT,
        version=VERSION,
        gates=str(gates),
        extensions=extensions,
        redacted=redacted,
        anonymised=anonymised,
        members=tuple(contents),
    )
    text = msgspec.json.format(msgspec.json.encode(manifest), indent=2) + b"\n"
    return pack([Member(MANIFEST, text), *members])


def _line(value: Struct) -> bytes:
    text = encode_json(value)
    # Raw values are written as they were read, and may have been broken into lines.
    return (msgspec.json.format(text, indent=-1) if b"\n" in text else text) + b"\n"


def _contents(member: Member, kinds: dict[str, int]) -> Contents:
    digest = hashlib.sha256(member.content).hexdigest()
    return Contents(member.name, kinds, len(member.content), digest)


def is_snapshot(data: bytes) -> bool:
    """Tell whether data begins as an archive of ours does; whether it is whole is not asked."""
    try:
        first = next(unpack(data, bytes_max=MANIFEST_BYTES_MAX), None)
        return (
            first is not None
            and first.name == MANIFEST
            and msgspec.json.decode(first.content, type=_Version).format == FORMAT
        )
    except (ArchiveError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False


def read_archive(data: bytes, *, bytes_max: int = UNPACKED_BYTES_MAX) -> Archive:
    """Return the archive, or raise ArchiveError if it is not whole, not ours or not safe."""
    members = unpack(data, bytes_max=bytes_max)
    first = next(members, None)
    if first is None or first.name != MANIFEST:
        raise ArchiveError(f"not a snapshot: {MANIFEST} is not its first member")
    manifest = _read_manifest(first.content)
    expected = {each.name: each for each in manifest.members}
    found = tuple(_checked(member, expected) for member in members)
    if expected:
        raise ArchiveError(f"{next(iter(expected))} is missing, which the manifest names")
    return Archive(manifest, found)


def _read_manifest(text: bytes) -> Manifest:
    if len(text) > MANIFEST_BYTES_MAX:
        raise ArchiveError(f"{MANIFEST} is larger than any manifest")
    try:
        said = msgspec.json.decode(text, type=_Version)
        if said.format != FORMAT:
            raise ArchiveError(f"not a snapshot: {MANIFEST} does not say {FORMAT}")
        if said.version != VERSION:
            raise ArchiveError(
                f"a snapshot of format version {said.version}; this moor reads version {VERSION}"
            )
        return msgspec.json.decode(text, type=Manifest)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ArchiveError(f"{MANIFEST} cannot be read: {error}") from None


def _checked(member: Member, expected: dict[str, Contents]) -> Member:
    """Return the member, if the manifest names it and it is as the manifest says."""
    if not _is_member_name(member.name):
        raise ArchiveError(f"{member.name[:100]!r} is not the name of a member")
    said = expected.pop(member.name, None)
    if said is None:
        raise ArchiveError(f"{member.name} is not in the manifest, or there twice")
    if hashlib.sha256(member.content).hexdigest() != said.sha256:
        raise ArchiveError(f"{member.name} is not what was written: its SHA-256 differs")
    return member
