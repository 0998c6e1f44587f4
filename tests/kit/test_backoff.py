"""Delays grow up to a bound."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from moorage.kit.backoff import Backoff


def test_each_failure_doubles_the_delay() -> None:
    backoff = Backoff(first_s=1, longest_s=10)
    assert [backoff.delay_s(failures) for failures in range(1, 7)] == [1, 2, 4, 8, 10, 10]


@given(failures=st.integers(0, 10_000), chance=st.floats(0, 1))
def test_a_delay_is_within_its_bounds(failures: int, chance: float) -> None:
    backoff = Backoff(first_s=0.5, longest_s=60, jitter=0.5)
    assert 0.5 <= backoff.delay_s(failures, lambda: chance) <= 90
