from __future__ import annotations

import pytest

from mooring.insight.messages import nearest


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
def test_the_nearest_name_is_found(name: str, known: list[str], found: str | None) -> None:
    assert nearest(name, known) == found
