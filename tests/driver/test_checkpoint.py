"""The checkpoint: a file and the changes since; damage is reported, a torn end is not."""

from __future__ import annotations

from pathlib import Path
from zlib import crc32

import msgspec
import pytest

from moorage.driver import checkpoint
from moorage.driver.checkpoint import Checkpoint, FileSystem, PreparedClaim, PreparedDevice
from moorage.driver.errors import CheckpointError


def claim(uid: str, *, is_complete: bool = False) -> PreparedClaim:
    device = PreparedDevice("all", "node-1", f"lamp-{uid}")
    return PreparedClaim(uid, "default", f"claim-{uid}", (device,), is_complete=is_complete)


def reread(folder: Path) -> dict[str, PreparedClaim]:
    found = Checkpoint(folder, FileSystem())
    found.load()
    return {each.uid: each for each in found}


def filled(folder: Path) -> Checkpoint:
    found = Checkpoint(folder, FileSystem())
    found.load()
    found.put(claim("a"))
    found.put(claim("b"))
    found.put(claim("a", is_complete=True), is_durable=False)
    found.remove("b")
    return found


def test_what_was_changed_is_read_again(tmp_path: Path) -> None:
    filled(tmp_path)
    assert reread(tmp_path) == {"a": claim("a", is_complete=True)}


def test_changes_are_added_and_not_all_written_anew(tmp_path: Path) -> None:
    filled(tmp_path)
    before = (tmp_path / checkpoint.FILE).read_bytes()
    found = Checkpoint(tmp_path, FileSystem())
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
    found = Checkpoint(tmp_path, FileSystem())
    found.load()
    found.put(claim("c"))
    assert reread(tmp_path).keys() == {"a", "b", "c"}


class Mortal(FileSystem):
    """Files of a program that dies before it writes one of them."""

    def __init__(self, name: str) -> None:
        self._name = name

    def write(self, path: Path, data: bytes, mode: int = 0o644, *, is_durable: bool = True) -> None:
        if path.name == self._name:
            raise OSError("dead")
        super().write(path, data, mode, is_durable=is_durable)


def test_changes_of_another_file_do_not_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(tmp_path)
    monkeypatch.setattr(checkpoint, "CHANGES_MAX", 1)
    found = Checkpoint(tmp_path, Mortal(checkpoint.CHANGES))
    found.load()
    with pytest.raises(OSError, match="dead"):
        found.put(claim("c"))
    assert reread(tmp_path).keys() == {"a", "c"}


@pytest.mark.parametrize("name", [checkpoint.FILE, checkpoint.CHANGES])
def test_who_dies_at_the_first_claim_has_none(tmp_path: Path, name: str) -> None:
    found = Checkpoint(tmp_path, Mortal(name))
    found.load()
    with pytest.raises(OSError, match="dead"):
        found.put(claim("a"))
    assert reread(tmp_path) == {}
    filled(tmp_path)
    assert reread(tmp_path).keys() == {"a"}


@pytest.mark.parametrize("name", [checkpoint.FILE, checkpoint.CHANGES])
def test_a_file_that_is_lost_is_told(tmp_path: Path, name: str) -> None:
    filled(tmp_path)
    path = tmp_path / name
    path.write_bytes(b"")
    with pytest.raises(CheckpointError, match=f"{path} is .*drain the node"):
        reread(tmp_path)
    path.unlink()
    with pytest.raises(CheckpointError, match=f"{path} is missing .*drain the node"):
        reread(tmp_path)


def test_a_file_of_before_there_were_changes_is_read(tmp_path: Path) -> None:
    data = msgspec.json.encode({"version": "v1", "claims": [claim("a")]})
    file = {"checksum": crc32(data), "data": msgspec.Raw(data)}
    (tmp_path / checkpoint.FILE).write_bytes(msgspec.json.encode(file))
    assert reread(tmp_path).keys() == {"a"}
    found = Checkpoint(tmp_path, FileSystem())
    found.load()
    found.put(claim("b"))
    assert reread(tmp_path).keys() == {"a", "b"}


@pytest.mark.parametrize("name", [checkpoint.FILE, checkpoint.CHANGES])
def test_damage_is_told_with_the_file(tmp_path: Path, name: str) -> None:
    filled(tmp_path)
    path = tmp_path / name
    content = path.read_bytes()
    for at in range(0, len(content) - 1, 7):
        path.write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
        with pytest.raises(CheckpointError, match=str(path)):
            reread(tmp_path)
