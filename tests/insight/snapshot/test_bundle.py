"""Tars and zips that anybody made: read within bounds, whatever is in them."""

from __future__ import annotations

import io
import random
import tarfile
import zipfile
from collections.abc import Callable
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.insight.errors import ArchiveError
from moorage.insight.snapshot import bundle
from moorage.insight.snapshot.bundle import Bundle, is_bundle, read_bundle

FILES = {"a.yaml": b"kind: A\n", "folder/b.json": b"{}", "notes.txt": b"hello"}
LONG = "folder/" * 30 + "c.yaml"


def tar(files: dict[str, bytes], mode: str = "w", **options: int) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=mode, **options) as archive:  # type: ignore[call-overload]
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def zipped(files: dict[str, bytes], compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def read(data: bytes) -> Bundle:
    return read_bundle(data, lambda name: name.endswith((".yaml", ".json")))


FORMS: list[Callable[[dict[str, bytes]], bytes]] = [
    lambda files: tar(files, "w", format=tarfile.USTAR_FORMAT),
    lambda files: tar(files, "w", format=tarfile.GNU_FORMAT),
    lambda files: tar(files, "w", format=tarfile.PAX_FORMAT),
    lambda files: tar(files, "w:gz"),
    zipped,
    lambda files: zipped(files, zipfile.ZIP_STORED),
]


@pytest.mark.parametrize("form", FORMS)
def test_wanted_files_are_read_from_every_form(form: Callable[[dict[str, bytes]], bytes]) -> None:
    data = form({**FILES, LONG: b"kind: C\n"})
    assert is_bundle(data)
    assert {each.name: each.content for each in read(data).files} == {
        "a.yaml": b"kind: A\n",
        "folder/b.json": b"{}",
        LONG: b"kind: C\n",
    }


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("../../etc/passwd.yaml", "../../etc/passwd.yaml"),
        ("/etc/passwd.yaml", "/etc/passwd.yaml"),
        ("\x1b[2Jx\n.yaml", "\\x1b[2Jx\\n.yaml"),
        ("ü/ö.yaml", "ü/ö.yaml"),
    ],
)
def test_names_are_shown_and_never_used(
    form: Callable[[dict[str, bytes]], bytes], name: str, shown: str
) -> None:
    (file,) = read(form({name: b"x"})).files
    assert file == (shown, b"x")


def test_a_very_long_name_is_shown_in_part() -> None:
    (file,) = read(tar({"x" * 4000 + ".yaml": b"x"})).files
    assert len(file.name) == bundle.NAME_SHOWN_MAX


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE])
def test_links_and_devices_of_a_tar_are_left_out(kind: bytes) -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        info = tarfile.TarInfo("link.yaml")
        info.type, info.linkname = kind, "/etc/shadow"
        archive.addfile(info)
    assert read(buffer.getvalue()) == Bundle((), ("link.yaml",))


def test_links_of_a_zip_are_left_out() -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        info = zipfile.ZipInfo("link.yaml")
        info.external_attr = 0o120777 << 16
        archive.writestr(info, "/etc/shadow")
    assert read(buffer.getvalue()) == Bundle((), ("link.yaml",))


# --- bounds -------------------------------------------------------------------------------


@pytest.mark.parametrize("form", [FORMS[0], FORMS[3], FORMS[4]])
@pytest.mark.parametrize(
    ("name", "bound", "message"),
    [
        ("FILE_BYTES_MAX", 100, r"a\.yaml: larger than 0 MiB"),
        ("BYTES_MAX", 100, "more than 0 MiB to read"),
        ("FILES_MAX", 2, "more than 2 files to read"),
        ("ENTRIES_MAX", 2, "more than 2 members"),
    ],
)
def test_more_than_is_read_is_refused(
    form: Callable[[dict[str, bytes]], bytes],
    name: str,
    bound: int,
    message: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bundle, name, bound)
    with pytest.raises(ArchiveError, match=message):
        read(form({"a.yaml": bytes(200), "b.yaml": b"", "c.yaml": b""}))


def test_a_tar_that_unpacks_to_very_much_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundle, "STREAM_BYTES_MAX", 10_000)
    with pytest.raises(ArchiveError, match="holds more than"):
        read(tar({"log.txt": bytes(1_000_000)}, "w:gz"))


def test_a_zip_that_lies_about_its_size_is_not_unpacked_further() -> None:
    data = bytearray(zipped({"a.yaml": bytes(1_000_000)}))
    at = data.rfind(b"PK\x01\x02")
    data[at + 24 : at + 28] = (10).to_bytes(4, "little")
    with pytest.raises(ArchiveError, match=r"a\.yaml: not what was packed"):
        read(bytes(data))


@pytest.mark.parametrize("format_", [tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
@pytest.mark.parametrize("parts", [3_000, 40_000])
def test_a_name_longer_than_paths_can_be_is_refused(format_: int, parts: int) -> None:
    with pytest.raises(ArchiveError, match="a name is longer than any name"):
        read(tar({"a/" * parts + "c.yaml": b""}, format=format_))


def test_headers_that_say_more_of_members_are_bounded_in_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bundle, "_HEADERS_BYTES_MAX", 1_000)
    with pytest.raises(ArchiveError, match="a name is longer than any name"):
        read(tar({f"{LONG}{number}": b"" for number in range(9)}, format=tarfile.GNU_FORMAT))


def test_records_too_short_to_say_anything_are_refused() -> None:
    data = bytearray(tar({LONG: b""}, format=tarfile.PAX_FORMAT))
    at = data.index(b" path=")
    data[at - 3 : at + 6] = b"3 \n3 \n3 \n"
    with pytest.raises(ArchiveError, match="an extended header cannot be read"):
        read(bytes(data))


# --- damage -------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("part", [0.1, 0.5, 0.8])
def test_what_is_cut_off_is_refused(form: Callable[[dict[str, bytes]], bytes], part: float) -> None:
    data = form({"a.yaml": random.Random(1).randbytes(50_000)})
    with pytest.raises(ArchiveError, match=r"cut off|not a whole archive"):
        read(data[: int(len(data) * part)])


def test_a_gzipped_tar_must_be_whole_to_its_end() -> None:
    with pytest.raises(ArchiveError, match="not a whole archive"):
        read(tar(FILES, "w:gz")[:-4])


def test_an_encrypted_file_is_refused() -> None:
    data = bytearray(zipped({"a.yaml": b"x"}))
    data[data.rfind(b"PK\x01\x02") + 8] |= 1
    with pytest.raises(ArchiveError, match=r"a\.yaml: encrypted"):
        read(bytes(data))


@given(st.sampled_from(FORMS), st.lists(st.tuples(st.integers(0, 5000), st.integers(0, 255))))
def test_damaged_archives_are_read_or_refused(
    form: Callable[[dict[str, bytes]], bytes], damages: list[tuple[int, int]]
) -> None:
    data = bytearray(form({**FILES, LONG: b"kind: C\n"}))
    for at, byte in damages:
        data[at % len(data)] = byte
    with suppress(ArchiveError):
        assert len(read(bytes(data)).files) <= len(FILES) + 1


@given(st.binary(max_size=2000))
def test_anything_is_a_bundle_or_not(data: bytes) -> None:
    for prefix in (b"", b"PK\x03\x04", b"PK\x05\x06", b"\x1f\x8b"):
        if is_bundle(prefix + data):
            with suppress(ArchiveError):
                read(prefix + data)
