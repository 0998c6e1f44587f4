"""A short way to a folder whose path is too long for sockets."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from moorage.cluster import state_folder
from moorage.cluster.state_folder import (
    LENGTH_MAX,
    ShortPathError,
    link_of,
    remove_short_path,
    short_path,
)


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    long = tmp_path / ("f" * LENGTH_MAX)
    long.mkdir()
    yield long
    remove_short_path(long)


def test_a_short_path_stays_as_it_is() -> None:
    assert short_path(Path("/tmp/x")) == Path("/tmp/x")


def test_a_long_path_is_reached_by_a_link(folder: Path) -> None:
    link = short_path(folder)
    assert len(os.fsencode(link)) <= LENGTH_MAX
    (link / "file").write_text("here")
    assert (folder / "file").read_text() == "here"


def test_the_same_folder_has_the_same_link_and_another_folder_another(folder: Path) -> None:
    assert short_path(folder) == short_path(folder)
    assert link_of(folder) != link_of(folder / "another")


def test_a_link_that_leads_elsewhere_is_made_anew(folder: Path, tmp_path: Path) -> None:
    link = short_path(folder)
    link.unlink()
    link.symlink_to(tmp_path / "elsewhere")
    assert Path(os.readlink(short_path(folder))) == folder


def test_a_removed_link_is_gone_and_may_be_removed_twice(folder: Path) -> None:
    link = short_path(folder)
    remove_short_path(folder)
    remove_short_path(folder)
    assert not link.is_symlink()


def test_a_folder_of_links_that_others_can_write_is_refused(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(stat.S_IRWXU | stat.S_IRWXG | stat.S_IRWXO)
    monkeypatch.setattr(state_folder, "link_of", lambda _: shared / "link")
    with pytest.raises(ShortPathError, match="others can write there"):
        short_path(folder)
