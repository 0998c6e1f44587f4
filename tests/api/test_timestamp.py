"""Times that are computed from seconds of objects, which may be any number of 64 bits."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import moorage
from moorage.api.timestamp import LATEST, NO_TIME, Timestamp

NOW = Timestamp.parse("2026-11-15T12:00:00Z")
ADDITION = re.compile(r"\.instant\s*[+-]\s*timedelta\(")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (30, "2026-11-15T12:00:30Z"),
        (-30, "2026-11-15T11:59:30Z"),
        (0.5, "2026-11-15T12:00:00Z"),
        (2**31 - 1, "2094-12-03T15:14:07Z"),
        (10**12, "9999-12-31T23:59:59Z"),
        (10**18, "9999-12-31T23:59:59Z"),
        (2**63 - 1, "9999-12-31T23:59:59Z"),
        (float("inf"), "9999-12-31T23:59:59Z"),
        (-(2**63), "0001-01-01T00:00:00Z"),
    ],
)
def test_a_time_some_seconds_later_is_in_the_calendar(seconds: float, text: str) -> None:
    assert str(NOW.after(seconds)) == text
    assert Timestamp.parse(text) == NOW.after(seconds).truncated()


def test_the_first_and_the_last_time_stay() -> None:
    assert LATEST.after(1) == LATEST
    assert NO_TIME.after(-1) == NO_TIME


def test_nobody_else_adds_seconds_to_a_time() -> None:
    package = Path(moorage.__file__).parent
    others = [path for path in package.rglob("*.py") if path.name != "timestamp.py"]
    texts = {str(path.relative_to(package)): path.read_text() for path in others}
    assert len(texts) > 300
    assert {name for name, text in texts.items() if ADDITION.search(text)} == set()
