"""Counters: amounts packed into one number are taken as if each were taken by itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moorage.allocator.rules.consumption import Counters, amounts_of, counters_of
from moorage.api.quantity import Quantity
from moorage.api.resource.v1 import Counter, CounterSet, Device, DeviceCounterConsumption

Amounts = Mapping[str, str]  # by counter


def counters(amounts: Amounts) -> dict[str, Counter]:
    return {name: Counter(Quantity.parse(text)) for name, text in amounts.items()}


def device(name: str, *consumptions: tuple[str, Amounts]) -> Device:
    """Return a device that takes amounts of counter sets."""
    return Device(
        name=name,
        consumes_counters=tuple(
            DeviceCounterConsumption(counter_set=set_name, counters=counters(amounts))
            for set_name, amounts in consumptions
        ),
    )


def pool(
    sets: Mapping[str, Amounts], devices: Sequence[Device], others: Sequence[Device] = ()
) -> Counters:
    return counters_of(
        devices,
        others,
        {name: CounterSet(name=name, counters=counters(amounts)) for name, amounts in sets.items()},
    )


def take(found: Counters, left: int, position: int) -> int | None:
    """Return what is left after a device was taken; None if that is too much."""
    guards = found.layout.guards
    rest = (left | guards) - found.takes[position]
    return rest ^ guards if rest & guards == guards else None


# --- laws -------------------------------------------------------------------------------------

TAKES = st.dictionaries(
    st.tuples(st.sampled_from(["s", "t"]), st.sampled_from(["a", "b"])), st.integers(0, 6)
)
TOTALS = st.lists(st.integers(0, 12), min_size=4, max_size=4)
FIELDS = [("s", "a"), ("s", "b"), ("t", "a"), ("t", "b")]


@settings(max_examples=120)
@given(
    totals=TOTALS,
    takes=st.lists(TAKES, min_size=1, max_size=5),
    unit=st.sampled_from(["", "m", "Gi", "n"]),
)
def test_devices_are_taken_as_long_as_every_counter_lasts(
    totals: list[int], takes: list[dict[tuple[str, str], int]], unit: str
) -> None:
    sets: dict[str, dict[str, str]] = {"s": {}, "t": {}}
    for (set_name, counter), total in zip(FIELDS, totals, strict=True):
        sets[set_name][counter] = f"{total}{unit}"
    devices = [
        device(
            f"gpu-{number}",
            *((s, {c: f"{amount}{unit}"}) for (s, c), amount in wanted.items()),
            ("s", {}),
        )
        for number, wanted in enumerate(takes)
    ]
    found = pool(sets, devices)
    left = found.left([])
    rest = dict(zip(FIELDS, totals, strict=True))
    taken: list[Device] = []
    for position, wanted in enumerate(takes):
        assert left is not None
        fits = all(amount <= rest[field] for field, amount in wanted.items())
        after = take(found, left, position)
        assert (after is not None) == fits
        if after is not None:
            left = after
            taken.append(devices[position])
            for field, amount in wanted.items():
                rest[field] -= amount
        assert found.left(taken) == left


@settings(max_examples=100)
@given(amounts=st.lists(st.integers(0, 12), min_size=4, max_size=4))
def test_unpacking_gives_back_what_was_packed(amounts: list[int]) -> None:
    ones = {"a": "1n", "b": "1n"}
    found = pool(
        {"s": {"a": "12n", "b": "12n"}, "t": {"a": "12n", "b": "12n"}},
        [device("gpu-0", ("s", ones), ("t", ones))],
    )
    packed = dict(zip(FIELDS, amounts, strict=True))
    assert found.layout.unpack(found.layout.pack(packed)) == packed


# --- cases ------------------------------------------------------------------------------------


def test_amounts_are_counted_in_units_of_what_is_taken() -> None:
    found = pool({"s": {"memory": "80Gi"}}, [device("gpu-0", ("s", {"memory": "10Gi"}))])
    left = found.left([])
    assert left is not None
    assert found.layout.unpack(left) == {("s", "memory"): 8}


def test_what_is_over_a_whole_unit_is_of_no_use() -> None:
    gpu = device("gpu-0", ("s", {"memory": "10Gi"}))
    found = pool({"s": {"memory": "19Gi"}}, [gpu])
    left = found.left([])
    assert left is not None
    after = take(found, left, 0)
    assert after == found.left([gpu])
    assert after is not None
    assert take(found, after, 0) is None


def test_a_device_that_names_a_set_twice_takes_both_amounts() -> None:
    twice = device("gpu-0", ("s", {"memory": "1"}), ("s", {"memory": "2"}))
    for total, fits in (("3", True), ("2", False)):
        found = pool({"s": {"memory": total}}, [twice])
        left = found.left([])
        assert left is not None
        assert (take(found, left, 0) is not None) is fits


def test_one_overdrawn_counter_overdraws_the_pool() -> None:
    greedy = device("gpu-0", ("s", {"memory": "3"}))
    found = pool({"s": {"memory": "2"}, "t": {"memory": "9"}}, [greedy])
    assert found.left([]) is not None
    assert found.left([greedy]) is None


def test_a_negative_total_is_overdrawn_from_the_start() -> None:
    found = pool({"s": {"memory": "-1"}}, [device("gpu-0", ("s", {"memory": "0"}))])
    assert found.left([]) is None


def test_devices_of_other_nodes_are_paid_for_but_not_offered() -> None:
    here, there = device("gpu-0", ("s", {"memory": "1"})), device("gpu-1", ("s", {"memory": "1"}))
    found = pool({"s": {"memory": "1"}}, [here], [there])
    assert list(found.takes) == [0]
    left = found.left([there])
    assert left is not None
    assert take(found, left, 0) is None


def test_a_counter_that_is_gone_costs_nothing() -> None:
    found = pool({"s": {"memory": "1"}}, [device("gpu-0", ("s", {"memory": "1"}))])
    assert found.left([device("old", ("gone", {"memory": "5"}))]) == found.left([])


def test_only_devices_that_name_a_counter_set_are_consumers() -> None:
    found = pool({"s": {"memory": "1"}}, [Device(name="free"), device("gpu-1", ("s", {}))])
    assert found.consumers == 0b10
    assert found.takes == {1: 0}


@pytest.mark.parametrize("total", ["1n", "100E", "9223372036854775807", "1000Ei"])
def test_amounts_of_any_size_are_counted(total: str) -> None:
    whole = device("gpu-0", ("s", {"memory": total, "cores": "1"}))
    found = pool({"s": {"memory": total, "cores": "2"}}, [whole])
    left = found.left([])
    assert left is not None
    after = take(found, left, 0)
    assert after is not None
    assert found.layout.unpack(after) == {("s", "memory"): 0, ("s", "cores"): 1}
    assert take(found, after, 0) is None


def test_what_a_device_takes_is_told_counter_by_counter() -> None:
    found = dict(amounts_of(device("gpu-0", ("s", {"a": "1n", "b": "2n"}), ("t", {"a": "3n"}))))
    assert found == {("s", "a"): 1, ("s", "b"): 2, ("t", "a"): 3}
