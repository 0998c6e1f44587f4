"""Flow: demands can be met at once exactly if some way to give out the items meets them."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moorage.allocator.bounds import Demand, has_flow
from moorage.allocator.pools import bits, mask_of

DEMANDS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2**6 - 1)), max_size=5)


def can_be_met(demands: list[Demand], free: int = 2**6 - 1) -> bool:
    """Return whether demands can be met, by trying every way."""
    if not demands:
        return True
    (need, items), *others = demands
    return any(
        can_be_met(others, free & ~mask_of(chosen))
        for chosen in combinations(bits(items & free), need)
    )


@settings(max_examples=250)
@given(DEMANDS)
def test_there_is_a_flow_exactly_if_some_way_meets_all_demands(demands: list[Demand]) -> None:
    assert has_flow(demands) == can_be_met(demands)


@settings(max_examples=50)
@given(demands=DEMANDS, data=st.data())
def test_the_order_of_demands_does_not_matter(demands: list[Demand], data: st.DataObject) -> None:
    assert has_flow(data.draw(st.permutations(demands))) == has_flow(demands)


@pytest.mark.parametrize(
    ("demands", "is_met"),
    [
        ([], True),
        ([(0, 0)], True),
        ([(1, 0)], False),
        ([(2, 0b11)], True),
        ([(3, 0b11)], False),
        ([(1, 0b01), (1, 0b01)], False),
        ([(1, 0b11), (1, 0b01)], True),
        ([(1, 0b0011), (1, 0b0011), (1, 0b0011), (1, 0b1000)], False),
        # Each can get its item only if all others move on to their second one.
        ([(1, 0b11 << n) for n in range(30)] + [(1, 1)], True),
        ([(1, 0b11 << n) for n in range(30)] + [(1, 1), (1, 1 << 30)], False),
    ],
)
def test_demands_get_items_of_each_other_if_they_must(demands: list[Demand], is_met: bool) -> None:
    assert has_flow(demands) is is_met
