from __future__ import annotations

import errno
import os
import stat
from contextlib import nullcontext
from pathlib import Path

import pytest

from moorage.kit.atomic_file import read_bounded, replace_file, replace_files, sync_folder


def test_a_file_is_made_with_its_mode_and_replaced(tmp_path: Path) -> None:
    path = tmp_path / "state"
    replace_file(path, b"one")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    replace_file(path, b"two", mode=0o644, is_durable=False)
    assert path.read_bytes() == b"two"
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    assert os.listdir(tmp_path) == ["state"]


def test_a_refused_write_leaves_the_old_content_and_nothing_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "state"
    replace_file(path, b"one")

    def full(_handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        replace_file(path, b"two")
    assert path.read_bytes() == b"one"
    assert os.listdir(tmp_path) == ["state"]


def test_files_that_belong_together_are_replaced_together(tmp_path: Path) -> None:
    key, certificate = tmp_path / "a.key", tmp_path / "a.crt"
    replace_files({key: b"1", certificate: b"1"})
    with pytest.raises(FileNotFoundError):
        replace_files({key: b"2", tmp_path / "nowhere" / "a.crt": b"2"})
    assert key.read_bytes() == b"1"
    assert sorted(os.listdir(tmp_path)) == ["a.crt", "a.key"]


@pytest.mark.parametrize(
    ("number", "is_raised"),
    [
        (errno.EIO, True),
        (errno.ENOSPC, True),
        (errno.EROFS, True),
        (errno.EDQUOT, True),
        (errno.EINVAL, False),
        (errno.EOPNOTSUPP, False),
    ],
)
def test_a_folder_that_cannot_be_synced_is_an_error_where_folders_can_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, is_raised: bool
) -> None:
    def fsync(handle: int) -> None:
        if stat.S_ISDIR(os.fstat(handle).st_mode):
            raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", fsync)
    expected = pytest.raises(OSError, match=os.strerror(number)) if is_raised else nullcontext()
    with expected:
        sync_folder(tmp_path)
    with expected:
        replace_file(tmp_path / "x", b"")
    assert (tmp_path / "x").exists()  # it is replaced; whether for good is unknown


def test_a_name_as_long_as_file_systems_allow_can_be_written(tmp_path: Path) -> None:
    path = tmp_path / ("n" * 255)
    replace_file(path, b"x")
    assert path.read_bytes() == b"x"


def test_reading_is_bounded(tmp_path: Path) -> None:
    path = tmp_path / "state"
    path.write_bytes(b"12345")
    assert read_bounded(path, 5) == b"12345"
    with pytest.raises(ValueError, match="larger than 4 bytes"):
        read_bounded(path, 4)
