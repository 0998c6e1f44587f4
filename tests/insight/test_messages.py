"""Similar names are suggested, and names sort as people count."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.insight.messages import counted, most_frequent_first, natural_order, nearest


@pytest.mark.parametrize(
    ("name", "known", "found"),
    [
        ("modle", ["model", "memory"], "model"),
        ("Model", ["model", "memory"], "model"),
        ("gpu.exmple.com", ["gpu.example.com", "nic.example.com"], "gpu.example.com"),
        ("colour", ["model", "memory"], None),
        ("model", ["model"], None),
        ("a", [], None),
        ("ab", ["abc", "abd"], "abc"),
    ],
)
def test_the_most_similar_name_is_found(name: str, known: list[str], found: str | None) -> None:
    assert nearest(name, known) == found


def test_names_sort_as_people_count() -> None:
    found = sorted(["gpu-10", "gpu-9", "gpu-09", "a", "gpu-" + "1" * 5000], key=natural_order)
    assert found[:4] == ["a", "gpu-09", "gpu-9", "gpu-10"]


def test_equally_frequent_names_sort_as_people_count() -> None:
    counts = {"gpu-10": 2, "nic": 3, "gpu-9": 2}
    assert most_frequent_first(counts) == [("nic", 3), ("gpu-9", 2), ("gpu-10", 2)]


def test_pci_addresses_count_in_hexadecimal() -> None:
    names = [
        f"pci-0000-{bus}-00-{function}"
        for bus in ("18", "4f", "9a", "c0", "ce", "d2")
        for function in "01"
    ]
    backwards = names[::-1]
    assert sorted(backwards, key=natural_order) == names
    assert sorted(["pci-10", "pci-0000-4f-00-0-b", "pci-9"], key=natural_order)[:2] == [
        "pci-9",
        "pci-10",
    ]


def test_a_name_comes_before_those_that_go_on_with_a_number() -> None:
    assert sorted(["gpu0", "gpu", "gpu0a"], key=natural_order) == ["gpu", "gpu0", "gpu0a"]


@given(st.permutations(["a", "a1", "a01", "a1b", "a\u0663", "1", "", "a-1"]))
def test_the_order_of_names_is_total(names: list[str]) -> None:
    assert sorted(names, key=natural_order) == ["", "1", "a", "a01", "a1", "a1b", "a-1", "a\u0663"]


@pytest.mark.parametrize(
    ("number", "noun", "text"),
    [
        (1, "fix", "1 fix"),
        (2, "fix", "2 fixes"),
        (2, "class", "2 classes"),
        (2, "policy", "2 policies"),
        (0, "node", "0 nodes"),
        (1200, "pod", "1,200 pods"),
    ],
)
def test_numbers_have_units_in_the_plural(number: int, noun: str, text: str) -> None:
    assert counted(number, noun) == text
