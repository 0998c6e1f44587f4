"""Paths made of names from outside stay below their folder, whatever links are put in the way."""

from __future__ import annotations

import errno
import os
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from moorage.kit.paths_beneath import (
    UnsafePathError,
    check_name,
    folder_beneath,
    open_beneath,
    parts_of,
    remove_beneath,
    write_beneath,
)

HOSTILE = ["..", "/srv/x", "../x", "a/../../x", "a\0b", "a\nb", "\x7f", "x" * 256, "é" * 128]


@pytest.mark.parametrize("name", [*HOSTILE, "", ".", "a/b"])
def test_what_is_no_file_name_is_refused_by_its_name(name: str) -> None:
    with pytest.raises(UnsafePathError, match="cannot be the name of a file"):
        check_name(name)


@pytest.mark.parametrize("path", [*HOSTILE, "a/" * 3000])
def test_what_is_no_path_within_a_folder_is_refused(path: str, tmp_path: Path) -> None:
    with pytest.raises(UnsafePathError):
        open_beneath(tmp_path, path, os.O_RDONLY | os.O_DIRECTORY, folder_mode=0o755)
    assert list(tmp_path.iterdir()) == []


def test_empty_parts_and_dots_are_dropped() -> None:
    assert parts_of("./a//b/.") == ("a", "b")
    assert parts_of("") == ()


def test_files_and_folders_are_made_with_their_modes(tmp_path: Path) -> None:
    write_beneath(tmp_path, "a/b/file", b"old", mode=0o640, folder_mode=0o750)
    with (tmp_path / "a/b/file").open() as before:
        write_beneath(tmp_path, "a/b/file", b"new", mode=0o600)
        assert before.read() == "old"
    assert (tmp_path / "a/b/file").read_text() == "new"
    assert (tmp_path / "a/b/file").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "a/b").stat().st_mode & 0o777 == 0o750
    assert os.listdir(tmp_path / "a/b") == ["file"]


@pytest.mark.parametrize("path", ["link", "link/x", "sub/link/x", "file-link"])
@pytest.mark.parametrize("flags", [os.O_PATH, os.O_RDONLY, os.O_WRONLY | os.O_CREAT])
def test_no_link_is_followed(path: str, flags: int, tmp_path: Path) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    (root / "sub").mkdir(parents=True)
    outside.mkdir()
    (outside / "x").write_text("secret")
    (root / "link").symlink_to(outside)
    (root / "sub/link").symlink_to("..")
    (root / "file-link").symlink_to(outside / "x")
    with pytest.raises(OSError, match=r"symbolic link|Too many levels") as error:
        open_beneath(root, path, flags)
    assert error.value.errno == errno.ELOOP
    assert (outside / "x").read_text() == "secret"


def test_a_file_takes_the_place_of_a_link_and_not_of_its_target(tmp_path: Path) -> None:
    (tmp_path / "target").write_text("of the machine")
    (tmp_path / "root").mkdir()
    (tmp_path / "root/key").symlink_to(tmp_path / "target")
    (tmp_path / "root/..new").symlink_to(tmp_path / "target")
    write_beneath(tmp_path / "root", "key", b"new", mode=0o644)
    assert (tmp_path / "root/key").read_text() == "new"
    assert (tmp_path / "target").read_text() == "of the machine"


def test_a_folder_stays_what_it_was_when_it_is_swapped_for_a_link(tmp_path: Path) -> None:
    (tmp_path / "root/inner").mkdir(parents=True)
    (tmp_path / "outside").mkdir()
    with folder_beneath(tmp_path / "root", "inner") as folder:
        (tmp_path / "root/inner").rename(tmp_path / "root/aside")
        (tmp_path / "root/inner").symlink_to(tmp_path / "outside")
        write_beneath(folder, "a/key", b"x", mode=0o644)
    assert list((tmp_path / "outside").iterdir()) == []
    assert (tmp_path / "root/aside/a/key").read_bytes() == b"x"


def test_a_race_is_never_won(tmp_path: Path) -> None:
    root, outside, over = tmp_path / "root", tmp_path / "outside", threading.Event()
    (root / "dir").mkdir(parents=True)
    outside.mkdir()
    (root / "link").symlink_to(outside)

    def swap() -> None:
        while not over.is_set():
            os.rename(root / "dir", root / "aside")
            os.rename(root / "link", root / "dir")
            os.rename(root / "dir", root / "link")
            os.rename(root / "aside", root / "dir")

    swapping = threading.Thread(target=swap)
    swapping.start()
    try:
        for _ in range(300):
            with suppress(OSError):
                os.close(open_beneath(root, "dir/key", os.O_WRONLY | os.O_CREAT))
    finally:
        over.set()
        swapping.join()
    assert list(outside.iterdir()) == []
    os.close(open_beneath(root, "dir/key", os.O_WRONLY | os.O_CREAT))


def test_removal_follows_no_link_and_takes_any_name(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").touch()
    tree = tmp_path / "root/tree"
    (tree / "a/b\nc/d").mkdir(parents=True)
    (tree / "..0").mkdir()
    (tree / "..0/x").touch()
    (tree / "a/link").symlink_to(outside)
    (tree / "a/b\nc/file\udcff").touch()
    os.mkfifo(tree / "a/pipe")
    (tree / "a/b\nc").chmod(0o500)
    remove_beneath(tmp_path / "root", "tree")
    remove_beneath(tmp_path / "root", "tree")  # nothing is left to do
    assert list((tmp_path / "root").iterdir()) == []
    assert (outside / "kept").exists()
    (tmp_path / "root/link").symlink_to(outside)
    with pytest.raises(OSError, match="symbolic link"):
        remove_beneath(tmp_path / "root", "link")
    assert (outside / "kept").exists()


def test_a_tree_of_any_depth_is_removed(tmp_path: Path) -> None:
    descriptor = open_beneath(tmp_path, "deep", os.O_RDONLY | os.O_DIRECTORY, folder_mode=0o755)
    for _ in range(1100):  # deeper than Python's calls may be
        inner = open_beneath(descriptor, "d", os.O_RDONLY | os.O_DIRECTORY, folder_mode=0o755)
        os.close(descriptor)
        descriptor = inner
    os.close(descriptor)
    remove_beneath(tmp_path, "deep")
    assert list(tmp_path.iterdir()) == []
