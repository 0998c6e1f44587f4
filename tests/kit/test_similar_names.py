from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.kit.similar_names import likeness, nearest, similar


@pytest.mark.parametrize(
    ("name", "known", "meant"),
    [
        ("productname", ["productName", "brand"], "productName"),
        ("product_name", ["productName", "brand"], "productName"),
        ("name", ["productName", "brand"], "productName"),
        ("train-gpus", ["train-gpu", "train-cpu"], "train-gpu"),
        ("nvidia.com", ["gpu.nvidia.com", "gpu.amd.com"], "gpu.nvidia.com"),
        ("gpu.nvidia.con", ["gpu.nvidia.com", "gpu.amd.com"], "gpu.nvidia.com"),
        ("gpu.example.org", ["gpu.example.com"], "gpu.example.com"),
        ("gpu.nvidia.com", ["gpu.amd.com"], None),
        ("gpu.example.com", ["nic.example.com"], None),
        ("nvidia.com/mig-1g.10gb", ["nvidia.com/gpu"], None),
        ("nvidia.com/gpus", ["nvidia.com/gpu"], "nvidia.com/gpu"),
        ("nvida.com/gpu", ["nvidia.com/gpu"], "nvidia.com/gpu"),
        ("rdma.nvidia.com", ["vfio.gpu.nvidia.com"], None),
        ("gpu", [], None),
        ("gpu", ["gpu"], None),
    ],
)
def test_the_name_that_was_meant_is_found(name: str, known: list[str], meant: str | None) -> None:
    assert nearest(name, known) == meant


def test_the_nearest_of_thousands_is_found() -> None:
    known = [f"GPU-{number:08x}-ea92" for number in range(0, 5_000_000, 1000)]
    assert nearest(f"{known[1234]}x", known) == known[1234]


@given(st.text(max_size=30), st.lists(st.text(max_size=30), max_size=10))
def test_similar_names_are_known_and_other_names(name: str, known: list[str]) -> None:
    found = similar(name, known)
    assert set(found) <= set(known) - {name}
    assert len(found) == len(set(found))
    assert all(0 <= likeness(name, each) <= 1 for each in known)
