"""An archive gives back what was written into it, and nothing that was not."""

from __future__ import annotations

import gzip
import io
import tarfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from moorage.api.documents import CORE, expand_lists, read
from moorage.api.gates import Gates
from moorage.api.meta import ObjectMeta
from moorage.api.resource.v1 import (
    DeviceClass,
    DeviceClassConfiguration,
    DeviceClassSpec,
    OpaqueDeviceConfiguration,
)
from moorage.insight.errors import ArchiveError
from moorage.insight.snapshot.archive import (
    MANIFEST,
    Member,
    pack,
    read_archive,
    unpack,
    write_archive,
)
from moorage.insight.snapshot.builder import SnapshotBuilder
from moorage.insight.snapshot.completion import complete
from moorage.insight.snapshot.redaction import redacted
from moorage.insight.snapshot.snapshot import Snapshot
from tests.insight.snapshot.test_builder import intake
from tests.insight.snapshot.test_workloads import CONTEXT, DAEMONS, DEPLOYMENT

EXAMPLES = Path(__file__).parents[3] / "examples"
FILES = sorted((*EXAMPLES.glob("gpu-node/*.yaml"), *EXAMPLES.glob("seeds/*.yaml")))
GATES = Gates.parse("")


def taken(path: Path) -> Snapshot:
    into = SnapshotBuilder(CONTEXT)
    for document in read(path.read_bytes(), source=path.name, schema=CORE):
        for each in expand_lists(document):
            into.add_document(each)
    return into.snapshot()


def replayed(data: bytes) -> Snapshot:
    into = SnapshotBuilder(CONTEXT)
    for place, line in read_archive(data).lines():
        for document in read(line, source=place, schema=CORE):
            into.add_document(document)
    assert not into.refused
    assert not into.unreadable
    return into.snapshot()


def a_snapshot() -> Snapshot:
    return taken(EXAMPLES / "gpu-node" / "cluster.yaml")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_what_is_written_is_what_is_read(path: Path) -> None:
    before = taken(path)
    assert replayed(write_archive(before, gates=GATES)) == before
    clean = redacted(before)
    assert replayed(write_archive(clean, gates=GATES)) == clean


def test_controllers_are_completed_as_before() -> None:
    before = intake(f"{DEPLOYMENT}---\n{DAEMONS}").snapshot()
    after = replayed(write_archive(before, gates=GATES))
    assert complete(after, CONTEXT) == complete(before, CONTEXT)


def test_the_same_objects_give_the_same_bytes() -> None:
    data = write_archive(a_snapshot(), gates=GATES)
    assert data == write_archive(a_snapshot(), gates=GATES)
    assert data == write_archive(replayed(data), gates=GATES)


def test_any_tar_can_read_it() -> None:
    data = write_archive(a_snapshot(), gates=GATES)
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        members = archive.getmembers()
    names = [member.name for member in members]
    assert names[0] == MANIFEST
    assert names == sorted(names)
    assert {member.mtime for member in members} == {0}


def test_the_manifest_says_what_is_in_it() -> None:
    manifest = read_archive(write_archive(a_snapshot(), gates=GATES, redacted=True)).manifest
    kinds = {kind: n for member in manifest.members for kind, n in member.kinds.items()}
    assert kinds == {"DeviceClass": 2, "Node": 1, "ResourceSlice": 2}
    assert (manifest.version, manifest.redacted, manifest.gates) == (1, True, str(GATES))


def test_an_object_is_one_line_whatever_its_raw_parts_are() -> None:
    opaque = OpaqueDeviceConfiguration(driver="d", parameters=Raw(b'{\n"a":\r\n1}'))
    spec = DeviceClassSpec(config=(DeviceClassConfiguration(opaque=opaque),))
    broken = DeviceClass(metadata=ObjectMeta(name="c", uid="u"), spec=spec)
    (read_back,) = replayed(write_archive(Snapshot.of([broken]), gates=GATES)).classes
    (config,) = read_back.spec.config
    assert config.opaque is not None
    assert bytes(config.opaque.parameters) == b'{"a":1}'


NAMES = st.text("abcxyz/.-", min_size=1, max_size=99)


@given(st.lists(st.builds(Member, NAMES, st.binary(max_size=2000))))
def test_unpacking_gives_what_was_packed(members: list[Member]) -> None:
    assert list(unpack(pack(members), bytes_max=10**6)) == members


@given(st.lists(st.builds(Member, NAMES, st.binary(max_size=2000))), st.data())
def test_no_part_of_an_archive_passes_for_the_whole(
    members: list[Member], data: st.DataObject
) -> None:
    whole = pack(members)
    cut = data.draw(st.integers(0, len(whole) - 1))
    with pytest.raises(ArchiveError):
        list(unpack(whole[:cut], bytes_max=10**6))


@given(st.binary(max_size=3000))
def test_noise_is_refused(noise: bytes) -> None:
    with pytest.raises(ArchiveError):
        read_archive(noise)
    with pytest.raises(ArchiveError):
        read_archive(gzip.compress(noise))


# --- hostile archives ---------------------------------------------------------------------


def refusal(data: bytes) -> str:
    with pytest.raises(ArchiveError) as caught:
        read_archive(data)
    return str(caught.value)


def members() -> list[Member]:
    return list(unpack(write_archive(a_snapshot(), gates=GATES), bytes_max=10**6))


def test_another_format_version_is_refused() -> None:
    manifest, *rest = members()
    newer = manifest.content.replace(b'"version": 1', b'"version": 2')
    assert refusal(pack([Member(MANIFEST, newer), *rest])) == (
        "a snapshot of format version 2; this moor reads version 1"
    )


def test_another_format_is_refused() -> None:
    assert "does not say moorage-snapshot" in refusal(pack([Member(MANIFEST, b"{}")]))
    assert "is not its first member" in refusal(pack([Member("readme", b"hello")]))
    assert "is not its first member" in refusal(pack([]))
    assert "cannot be read" in refusal(pack([Member(MANIFEST, b"[")]))
    half = b'{"format": "moorage-snapshot", "version": 1}'
    assert "cannot be read" in refusal(pack([Member(MANIFEST, half)]))


def test_a_changed_member_is_refused() -> None:
    manifest, first, *rest = members()
    changed = Member(first.name, first.content.replace(b"example", b"exemple"))
    assert "its SHA-256 differs" in refusal(pack([manifest, changed, *rest]))


def test_missing_added_and_doubled_members_are_refused() -> None:
    manifest, first, *rest = members()
    assert "is missing, which the manifest names" in refusal(pack([manifest, *rest]))
    added = Member("objects/more.jsonl", b"")
    assert "is not in the manifest" in refusal(pack([manifest, first, *rest, added]))
    assert "or there twice" in refusal(pack([manifest, first, first, *rest]))


@pytest.mark.parametrize("name", ["../../etc/passwd", "/etc/passwd", "objects/../x.jsonl", "a\nb"])
def test_unsafe_names_are_refused(name: str) -> None:
    assert "is not the name of a member" in refusal(pack([members()[0], Member(name, b"")]))


@pytest.mark.parametrize(
    "kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE]
)
def test_what_is_no_plain_file_is_refused(kind: bytes) -> None:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz", format=tarfile.USTAR_FORMAT) as archive:
        entry = tarfile.TarInfo(MANIFEST)
        entry.type, entry.linkname = kind, "/etc/passwd"
        archive.addfile(entry)
    assert "is not a plain file" in refusal(file.getvalue())


def test_a_bomb_is_not_unpacked() -> None:
    zeros = gzip.compress(bytes(64 * 2**20), 9)
    with pytest.raises(ArchiveError, match="is not its first member"):
        read_archive(zeros)
    bomb = pack([Member(MANIFEST, bytes(20 * 2**20))])
    assert len(bomb) < 100_000
    with pytest.raises(ArchiveError, match="holds more than 1,000,000 bytes"):
        read_archive(bomb, bytes_max=1_000_000)


def test_many_small_members_are_bounded_too() -> None:
    bomb = pack([members()[0], *[Member("objects/x.jsonl", b"x" * 1000)] * 2000])
    with pytest.raises(ArchiveError):
        read_archive(bomb, bytes_max=100_000)


def test_something_after_the_end_is_refused() -> None:
    data = write_archive(a_snapshot(), gates=GATES)
    assert "after the end of the archive" in refusal(data + b"more")
    assert "after the end of the archive" in refusal(data + data)
    unpacked = gzip.decompress(data)
    assert "after the end of the tar" in refusal(gzip.compress(unpacked + b"more"))


def test_a_wrong_checksum_of_gzip_is_refused() -> None:
    data = bytearray(write_archive(a_snapshot(), gates=GATES))
    data[-8] ^= 1
    assert "not a whole gzip file" in refusal(bytes(data))
