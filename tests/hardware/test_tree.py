"""Trees in memory and in folders are read alike, and nothing in them does harm."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.hardware.errors import TreeError
from moorage.hardware.numbers import PciAddress, format_cpu_list, parse_cpu_list
from moorage.hardware.sysfs_tree import (
    FILE_BYTES_MAX,
    Link,
    MemoryEntries,
    SysfsTree,
    folder_tree,
    write_entries,
)

ENTRIES: dict[str, str | Link] = {
    "a/file": "text\n",
    "a/loop": Link("loop"),
    "a/ring": Link("../b/ring"),
    "b/ring": Link("../a/ring"),
    "b/there": Link("../a"),
    "b/far": Link("there/file"),
    "b/out": Link("../../../etc/passwd"),
    "b/absolute": Link("/etc/passwd"),
    "b/nowhere": Link("../c/d"),
    "a/large": "x" * (FILE_BYTES_MAX + 1),
}


@pytest.fixture(params=["memory", "folder"])
def tree(request: pytest.FixtureRequest, tmp_path: Path) -> SysfsTree:
    if request.param == "memory":
        return SysfsTree(MemoryEntries(ENTRIES))
    write_entries(tmp_path, ENTRIES)
    return folder_tree(tmp_path)


@pytest.mark.parametrize("path", ["a/file", "b/there/file", "b/far", "./a//file", "a/../a/file"])
def test_files_are_read_through_links(tree: SysfsTree, path: str) -> None:
    assert tree.read(path) == "text\n"


@pytest.mark.parametrize(
    ("path", "fact"),
    [
        ("a/none", "no such file or directory"),
        ("b/nowhere", "no such file or directory"),
        ("a/file/more", "no such file or directory"),
        ("a", "is not a file"),
        ("a/loop", "goes through more than 40 links"),
        ("a/ring", "goes through more than 40 links"),
        ("b/out", "leads out of the tree"),
        ("b/absolute", "leads out of the tree"),
        ("../a/file", "leads out of the tree"),
        ("a/large", "larger than 65,536 bytes, which is all that is read"),
        ("a/fi\0le", "no such file or directory"),
    ],
)
def test_what_cannot_be_read_is_named_with_the_fact(tree: SysfsTree, path: str, fact: str) -> None:
    with pytest.raises(TreeError) as caught:
        tree.read(path)
    assert (caught.value.path, caught.value.fact) == (path, fact)
    assert str(caught.value) == f"{path}: {fact}"


def test_links_and_names_are_as_written(tree: SysfsTree) -> None:
    assert tree.link("b/there") == "../a"
    assert tree.names("b/there") == ["file", "large", "loop", "ring"]
    with pytest.raises(TreeError, match="a/file: is not a link"):
        tree.link("a/file")
    with pytest.raises(TreeError, match="a/file: is not a folder"):
        tree.names("a/file")


def test_special_files_and_bytes_are_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "bytes").write_bytes(b"\xff\xfe")
    tree = folder_tree(tmp_path)
    with pytest.raises(TreeError, match="pipe: is not a file"):
        tree.read("pipe")
    with pytest.raises(TreeError, match="bytes: not text"):
        tree.read("bytes")


@given(st.lists(st.sampled_from(["a", "b", "..", "there", "file", "out", "x", ""]), max_size=9))
def test_any_path_is_text_or_an_error(parts: list[str]) -> None:
    with contextlib.suppress(TreeError):
        assert SysfsTree(MemoryEntries(ENTRIES)).read("/".join(parts)) == "text\n"


@given(st.sets(st.integers(0, 8000), max_size=60))
def test_lists_of_cpus_are_read_as_written(cpus: set[int]) -> None:
    assert parse_cpu_list(format_cpu_list(cpus)) == tuple(sorted(cpus))


@pytest.mark.parametrize("text", ["a", "1-", "3-1", "1,,2", "0-99999", "-1", "1 2", "²"])
def test_other_lists_of_cpus_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="CPUs"):
        parse_cpu_list(text)


def test_virtual_functions_go_on_to_the_next_device() -> None:
    first = PciAddress.parse("0000:1d:00.2")
    assert str(first.plus(5)) == "0000:1d:00.7"
    assert str(first.plus(6)) == "0000:1d:01.0"
    assert str(first.plus(15)) == "0000:1d:02.1"
