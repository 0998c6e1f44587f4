"""What is prepared is kept by a file and the changes since; damage is told, a torn end is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from mooring.driver import checkpoint
from mooring.driver.checkpoint import Checkpoint, PreparedClaim, PreparedDevice
from mooring.driver.errors import CheckpointError
from mooring.driver.files import Files


def claim(uid: str, *, is_complete: bool = False) -> PreparedClaim:
    device = PreparedDevice("all", "node-1", f"lamp-{uid}")
    return PreparedClaim(uid, "default", f"claim-{uid}", (device,), is_complete=is_complete)


def reread(folder: Path) -> dict[str, PreparedClaim]:
    found = Checkpoint(folder, Files())
    found.load()
    return {each.uid: each for each in found}


def filled(folder: Path) -> Checkpoint:
    found = Checkpoint(folder, Files())
    found.load()
    found.put(claim("a"))
    found.put(claim("b"))
    found.put(claim("a", is_complete=True), lasts=False)
    found.remove("b")
    return found


def test_what_was_changed_is_read_again(tmp_path: Path) -> None:
    filled(tmp_path)
    assert reread(tmp_path) == {"a": claim("a", is_complete=True)}


def test_changes_are_added_and_not_all_written_anew(tmp_path: Path) -> None:
    filled(tmp_path)
    before = (tmp_path / checkpoint.FILE).read_bytes()
    found = Checkpoint(tmp_path, Files())
    found.load()
    found.put(claim("c"))
    assert (tmp_path / checkpoint.FILE).read_bytes() == before
    assert list(reread(tmp_path)) == ["a", "c"]


def test_after_many_changes_all_is_written_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoint, "CHANGES_MAX", 3)
    found = filled(tmp_path)
    for number in range(20):
        found.put(claim(str(number)))
        assert str(number) in reread(tmp_path)
    assert len((tmp_path / checkpoint.CHANGES).read_bytes().splitlines()) <= 3
    assert len(reread(tmp_path)) == 21


def test_a_last_line_that_was_never_wholly_written_does_not_count(tmp_path: Path) -> None:
    filled(tmp_path)
    path = tmp_path / checkpoint.CHANGES
    path.write_bytes(path.read_bytes()[:-1])
    assert reread(tmp_path).keys() == {"a", "b"}
    found = Checkpoint(tmp_path, Files())
    found.load()
    found.put(claim("c"))
    assert reread(tmp_path).keys() == {"a", "b", "c"}


def test_changes_of_another_file_do_not_count(tmp_path: Path) -> None:
    filled(tmp_path)
    changes = (tmp_path / checkpoint.CHANGES).read_bytes()
    (tmp_path / checkpoint.CHANGES).unlink()
    found = Checkpoint(tmp_path, Files())
    found.load()
    found.put(claim("c"))
    (tmp_path / checkpoint.CHANGES).write_bytes(changes)  # as before it died in between
    assert reread(tmp_path).keys() == {"a", "c"}


@pytest.mark.parametrize("name", [checkpoint.FILE, checkpoint.CHANGES])
def test_damage_is_told_with_the_file(tmp_path: Path, name: str) -> None:
    filled(tmp_path)
    path = tmp_path / name
    content = path.read_bytes()
    for at in range(0, len(content) - 1, 7):
        path.write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
        with pytest.raises(CheckpointError, match=str(path)):
            reread(tmp_path)
