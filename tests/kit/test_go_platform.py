"""Machines have the names that Go gives them."""

from __future__ import annotations

import pytest

from moorage.kit.go_platform import go_arch, go_os


@pytest.mark.parametrize(
    ("machine", "name"),
    [
        ("x86_64", "amd64"),
        ("AMD64", "amd64"),  # Windows
        ("amd64", "amd64"),  # the BSDs
        ("i386", "386"),
        ("i686", "386"),
        ("x86", "386"),
        ("aarch64", "arm64"),
        ("arm64", "arm64"),  # macOS
        ("ARM64", "arm64"),
        ("arm", "arm"),
        ("armv6l", "arm"),
        ("armv7l", "arm"),
        ("armv8l", "arm"),  # a 32-bit system on a 64-bit processor
        ("ppc64", "ppc64"),
        ("ppc64le", "ppc64le"),
        ("riscv64", "riscv64"),
        ("s390x", "s390x"),
        ("loongarch64", "loong64"),
        ("wasm32", "wasm"),
        ("sparc64", "sparc64"),
    ],
)
def test_processors_have_go_names(machine: str, name: str) -> None:
    assert go_arch(machine) == name


def test_the_order_of_bytes_is_part_of_some_names() -> None:
    assert [go_arch("mips64", order) for order in ("little", "big")] == ["mips64le", "mips64"]
    assert [go_arch("mips", order) for order in ("little", "big")] == ["mipsle", "mips"]


@pytest.mark.parametrize(
    ("system", "name"),
    [
        ("Linux", "linux"),
        ("Darwin", "darwin"),
        ("Windows", "windows"),
        ("FreeBSD", "freebsd"),
        ("SunOS", "solaris"),
        ("CYGWIN_NT-10.0", "windows"),
    ],
)
def test_systems_have_go_names(system: str, name: str) -> None:
    assert go_os(system) == name
