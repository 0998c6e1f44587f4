from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from mooring.kit.atomic_file import read_bounded, replace_file


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
